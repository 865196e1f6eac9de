"""Jobs under construction from pods: one draft for a single pod, or for the identical pods of a gang."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from placeopt.formats.faults import make_record
from placeopt.formats.import_notes import ImportNotes
from placeopt.formats.kubernetes.pod_groups import PodGroupRules
from placeopt.formats.kubernetes.pods import KUEUE_GATES, Pod, job_id
from placeopt.formats.observed_round import ObservedJob, ObservedWorker
from placeopt.model import Demand, Job, Option, Split


@dataclass
class JobDraft:
    """
    Identical pods that are one job.

    At least ``pods_min`` of them start together. None of them may be on ``excluded_nodes``. The other fields are as in
    `placeopt.model.Option`.
    """

    name: str
    pods: list[Pod]
    pods_min: int
    gpus: int
    cpu_millicores: int
    memory_mib: int
    whole: bool = True
    """Whether no other pods belong to the same gang."""
    topology_key: str | None = None
    """Node label whose value all of them must share."""
    excluded_nodes: frozenset[str] = frozenset()
    single_node: bool = False
    workers_per_node_max: int | None = None
    splits: list[Split] = field(default_factory=list)

    @property
    def first(self) -> Pod:
        """One of the pods, which represents all."""
        return self.pods[0]

    @property
    def runs(self) -> bool:
        """Whether the pods are on nodes; all are, or none."""
        return self.first.node is not None

    @property
    def order_key(self) -> tuple[int, int, int, str]:
        """Sort key where not all jobs can be accepted: most GPUs, highest priority, longest wait."""
        return (-self.gpus * len(self.pods), -self.first.priority, self.first.created_ms, self.name)

    def split(self, level: str, domains: int, workers: int | None = None) -> None:
        """Add a rule about the domains of a level, unless it exists."""
        rule = Split(level=level, domains=domains, workers=workers)
        if rule not in self.splits:
            self.splits.append(rule)


@dataclass(frozen=True)
class GangBuilder:
    """
    Groups pods into job drafts.

    ``rules``: Rules of the listed PodGroups. ``places``: Waiting pod -> where its volumes can be used, as text.
    ``left_out``: Waiting pod -> why it is left out.
    """

    rules: Mapping[str, PodGroupRules]
    places: Mapping[str, str]
    left_out: Mapping[str, str]
    notes: ImportNotes

    def drafts(self, pods: Iterable[Pod]) -> list[JobDraft]:
        """Return the drafts in the order of their first pods; gangs that are left out are counted."""
        groups: dict[tuple[str, bool], list[Pod]] = {}
        for pod in pods:
            alone = pod.group is None or not self._rules(pod).gang
            groups.setdefault((pod.id if pod.group is None or alone else pod.group.id, alone), []).append(pod)
        drafts = [draft for (name, alone), members in groups.items() for draft in self._group(name, alone, members)]
        names: set[str] = set()
        for draft in drafts:
            number, name = 1, job_id(draft.name)
            draft.name = name
            while draft.name in names:
                draft.name, number = f"{name}+{number}", number + 1
            names.add(draft.name)
        return drafts

    def _rules(self, pod: Pod) -> PodGroupRules:
        group = pod.group
        return self.rules.get(group.source or "", PodGroupRules()) if group is not None else PodGroupRules()

    def _group(self, name: str, alone: bool, members: list[Pod]) -> list[JobDraft]:
        if len(members) == 1 and members[0].node is not None:
            return [_draft(name, members, 1)]
        running = [pod for pod in members if pod.node is not None]
        waiting = [pod for pod in members if pod.node is None]
        parts: dict[tuple[object, ...], list[Pod]] = {}
        for pod in running:
            shape = (pod.gpus, *pod.amounts.rounded_down, frozenset(pod.amounts.named.items()))
            parts.setdefault(shape, []).append(pod)
        drafts = [_draft(name, pods, len(pods)) for pods in parts.values()]
        if len(drafts) > 1 or (drafts and waiting):
            self.notes.assume("Of groups of which some pods run, these are jobs of their own, one for each kind.")
            for draft in drafts:
                draft.whole = False
        if waiting:
            least, total = self._numbers(alone, members)
            reason = self._unread(alone, waiting)
            if reason is None and not running and len(members) < total:
                reason = f"a group of which some pods are missing ({len(members)} of {total})"
            if reason is None:
                drafts.append(self._waiting(name, waiting, max(1, min(len(waiting), least - len(running)))))
            else:
                self.notes.leave_out(reason, name)
        return drafts

    def _numbers(self, alone: bool, members: list[Pod]) -> tuple[int, int]:
        """Return the number of pods that must run together, and the number that must exist before any starts."""
        group = members[0].group
        if alone or group is None:
            return 1, 1
        if group.source is not None and group.source not in self.rules and group.pods_min is None:
            self.notes.assume("Gangs whose PodGroup is not listed start with all their pods or not at all.")
        least = self._rules(members[0]).pods_min or group.pods_min
        return least or len(members), max(least or 1, group.count or 1)

    def _unread(self, alone: bool, waiting: list[Pod]) -> str | None:
        """Return why pods that start together are left out: the first reason of any of them."""
        for pod in waiting:
            if set(pod.scheduling_gates) - set(KUEUE_GATES):
                return "behind a scheduling gate"
            if pod.devices:
                return f"waiting for {', '.join(pod.devices)} (--resource reads one kind of GPUs)"
            if pod.shares:
                return f"asking for a part of a GPU, or devices that are not read: {', '.join(pod.shares)}"
            if pod.unsupported is not None:
                return pod.unsupported
            if pod.id in self.left_out:
                return self.left_out[pod.id]
        if alone:
            return None
        if (reason := self._rules(waiting[0]).unsupported) is not None:
            return reason
        kinds: set[tuple[object, ...]] = set()
        for pod in waiting:
            others = frozenset([*pod.other_resources.items(), *pod.amounts.named.items()])
            kinds.add((pod.gpus, pod.rules, pod.topology_key, pod.ports, others, self.places.get(pod.id, "")))
        if len(kinds) > 1:
            return "a gang whose pods that wait are not alike"
        return None

    def _waiting(self, name: str, pods: list[Pod], pods_min: int) -> JobDraft:
        draft = _draft(name, pods, pods_min)
        if len({(pod.amounts.cpu, pod.amounts.memory) for pod in pods}) > 1:
            self.notes.assume("Pods of a gang that differ in CPU or memory alone count with the most of any of them.")
        draft.topology_key = draft.first.topology_key or self._rules(draft.first).topology_key
        return draft


def _draft(name: str, pods: list[Pod], pods_min: int) -> JobDraft:
    if pods[0].node is None:
        rounded = [pod.amounts.rounded_up for pod in pods]
    else:
        rounded = [pod.amounts.rounded_down for pod in pods]
    cpu, memory = rounded[0] if len(rounded) == 1 else map(max, zip(*rounded, strict=True))
    return JobDraft(name, pods, pods_min, pods[0].gpus, cpu, memory)


def unreadable_job(name: str, nodes: tuple[str, ...], reason: str, where: str) -> ObservedJob:
    """Return a running job whose amounts on its nodes are unknown."""
    job = make_record(Job, where, id=name, kind="cpu", options=(Option(workers=len(nodes), demand=Demand(gpus=0)),))
    return ObservedJob(job, tuple(ObservedWorker(node) for node in nodes), where=where, unreadable_reason=reason)
