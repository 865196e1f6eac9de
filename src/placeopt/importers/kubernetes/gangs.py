"""Jobs under construction from pods: which pods form a job, and how many of them start together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from placeopt.documents.faults import make_record
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.kubernetes.gang_groups import Gang, Part, kind_of
from placeopt.importers.kubernetes.node_selectors import EVERY_NODE, NodeConditions
from placeopt.importers.kubernetes.pod_groups import (
    KUEUE_GATES,
    NO_RULES,
    NO_TOPOLOGY,
    GangMembership,
    GroupRules,
    Topology,
)
from placeopt.importers.kubernetes.pods import Pod, job_id
from placeopt.importers.observed_round import ObservedJob, ObservedWorker
from placeopt.model import Demand, Job, Option, Split

MAX_DEPTH = 8
"""Levels of groups in a gang; Kubernetes allows four."""


@dataclass
class JobDraft:
    """
    Pods that are one job.

    At least ``pods_min`` of them start together. They are alike, unless there are ``parts``. The other fields are as in
    `placeopt.model.Option`.
    """

    name: str
    pods: list[Pod]
    pods_min: int
    whole: bool = True
    """Whether no other pods belong to the same gang."""
    topology: Topology = NO_TOPOLOGY
    parts: Sequence[Part] = ()
    bound: Sequence[tuple[str, frozenset[str]]] = ()
    """Node label, and nodes: the job runs where the label has the value that it has there."""
    conditions: NodeConditions = EVERY_NODE
    """What they, their volumes and the pods that run ask of their node."""
    single_node: bool = False
    workers_per_node_max: int | None = None
    splits: list[Split] = field(default_factory=list)

    def groups(self) -> Iterator[Part]:
        """Yield the job itself and all of its parts."""
        yield Part(self.name, topology=self.topology)
        rest = list(self.parts)
        while rest:
            part = rest.pop()
            yield part
            rest += part.parts

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
        return (-sum(pod.gpus for pod in self.pods), -self.first.rules.priority, self.first.created_ms, self.name)

    def split(self, level: str, domains: int, workers: int | None = None) -> None:
        """Add a rule about the domains of a level, unless it exists."""
        rule = Split(level=level, domains=domains, workers=workers)
        if rule not in self.splits:
            self.splits.append(rule)


@dataclass(frozen=True)
class GangBuilder:
    """
    Groups pods into job drafts.

    ``rules``: Rules of the listed objects. ``near``: Pod that wants to be near pods like itself -> the term that says
    so. ``conditions``: Pod -> what it and its volumes ask of nodes. ``ended``: Gangs of pods that succeeded.
    """

    rules: Mapping[str, GroupRules]
    near: Mapping[str, str]
    conditions: Mapping[str, NodeConditions]
    ended: Sequence[GangMembership]
    notes: ImportNotes

    def drafts(self, pods: Iterable[Pod]) -> list[JobDraft]:
        """Return the drafts in the order of their first pods; gangs that are left out are counted."""
        pods = list(pods)
        stated: dict[str, GroupRules] = {}
        for pod in pods:
            if pod.group is not None and pod.group.rules is not NO_RULES:
                stated.setdefault(pod.group.id, pod.group.rules)
        gangs: dict[tuple[object, bool], Gang] = {}
        for pod in pods:
            path = [] if pod.group is None else self._path(pod.group, stated, pod)
            if not path and pod.node is None and pod.id in self.near:
                shape = (self.near[pod.id], kind_of(pod), pod.rules.text, pod.rules.priority, pod.queue)
                path = [(shape, GroupRules(pods_min=1))]
            root, rules = path[0] if path else (pod.id, NO_RULES)
            name = root.partition("|")[0] if isinstance(root, str) else pod.id
            gangs.setdefault((root, not path), Gang(name, rules)).place(path[1:], pod.id).pods.append(pod)
        for group in self.ended:
            path = self._path(group, stated)
            if path and (path[0][0], False) in gangs:
                gangs[path[0][0], False].place(path[1:], group.id).ended += 1
        drafts = [
            draft
            for (_, alone), gang in gangs.items()
            for draft in (self._alone(gang.pods[0]) if alone else self._drafts(gang))
        ]
        names: set[str] = set()
        for draft in drafts:
            number, name = 1, job_id(draft.name)
            draft.name = name
            while draft.name in names:
                draft.name, number = f"{name}+{number}", number + 1
            names.add(draft.name)
        return drafts

    def _path(
        self, group: GangMembership, stated: Mapping[str, GroupRules], pod: Pod | None = None
    ) -> list[tuple[object, GroupRules]]:
        """Return the groups of a pod and their rules, from the gang down; none if it starts alone."""
        said, own = stated.get(group.id, NO_RULES), self.rules.get(group.source or "", NO_RULES)
        if said is not NO_RULES:
            own = replace(
                own,
                pods_min=own.pods_min or said.pods_min,
                count=said.count,
                parts=own.parts or said.parts,
                partners=own.partners or said.partners,
            )
        if own.first is not None:
            if group.role == own.first:
                return []
            own = replace(own, count=max(1, (own.count or 1) - 1))
        topology = NO_TOPOLOGY if pod is None else pod.topology
        if topology.whole and own.topology == NO_TOPOLOGY:
            own, topology = replace(own, topology=topology), NO_TOPOLOGY
        if not own.gang:
            if own.topology == NO_TOPOLOGY:
                return []
            own = replace(own, pods_min=1)
        path: list[tuple[object, GroupRules]] = [(group.id, own)]
        above = own
        while above.parent is not None and len(path) < MAX_DEPTH:
            name, above = above.parent, self.rules.get(above.parent, UNLISTED)
            if above.gang and above.unsupported is None:
                path.insert(0, (name.partition("/")[2], above))
            elif above != INDEPENDENT:
                path[0] = (path[0][0], replace(path[0][1], unsupported=above.unsupported or UNREAD_COMPOSITE))
        if own.partners:
            path.insert(0, ("|".join(own.partners), GroupRules(parts_min=len(own.partners))))
        roles: list[tuple[object, GroupRules]] = []
        role = group.role
        while role in own.parts and len(roles) < MAX_DEPTH:
            roles.insert(0, (role, own.parts[role]))
            role = own.parts[role].parent or ""
        if topology != NO_TOPOLOGY and pod is not None:
            last = roles.pop()[1] if roles else NO_RULES
            roles.append((group.role or kind_of(pod), replace(last, topology=topology)))
        return [*path, *roles]

    def _alone(self, pod: Pod) -> list[JobDraft]:
        """Return the draft of a pod that starts alone; none if it is left out."""
        reason = self._unread([pod]) if pod.node is None else None
        if reason is not None:
            self.notes.leave_out(reason, pod.id)
            return []
        return [JobDraft(pod.id, [pod], 1, topology=pod.topology)]

    def _drafts(self, gang: Gang) -> list[JobDraft]:
        """Return the drafts of the pods of a gang: of those that run, one for each kind, and of those that wait."""
        gang.take_room_of_placeholders()
        members = gang.members()
        waiting = [pod for pod in members if pod.node is None]
        kinds: dict[object, list[Pod]] = defaultdict(list)
        for pod in members:
            if pod.node is not None:
                kinds[kind_of(pod)].append(pod)
        drafts = [JobDraft(gang.name, pods, len(pods)) for pods in kinds.values()]
        if len(drafts) > 1 or (drafts and waiting):
            self.notes.assume("Of groups of which some pods run, these are jobs of their own, one for each kind.")
            for draft in drafts:
                draft.whole = False
        if waiting:
            found = self._waiting(gang, waiting)
            if isinstance(found, str):
                self.notes.leave_out(found, gang.name)
            else:
                drafts.append(found)
        return drafts

    def _waiting(self, gang: Gang, waiting: Sequence[Pod]) -> JobDraft | str:
        """Return the pods of a gang that wait as one job, or why they are left out."""
        unread = (group.rules.unsupported for group in gang.groups())
        reason = self._unread(waiting) or next(filter(None, unread), None)
        if reason is None and not gang.present() and (missing := gang.missing()) is not None:
            reason = f"a group of which some {missing}"
        if reason is not None:
            return reason
        group = gang.pods[0].group if gang.pods else None
        unlisted = group is not None and group.source is not None and group.source not in self.rules
        if unlisted and gang.rules.pods_min is None and gang.rules.count is None:
            self.notes.assume("Gangs whose PodGroup is not listed start with all their pods or not at all.")
        part = gang.waiting().simplified()
        leaves = list(part.leaves())
        pods = [pod for leaf in leaves for pod in leaf.pods]
        least = max(1, sum(leaf.pods_min for leaf in leaves))
        draft = JobDraft(gang.name, pods, least, topology=part.topology, parts=part.parts)
        return (_bind(draft, gang) if len(waiting) < len(gang.members()) else None) or draft

    def _unread(self, waiting: Sequence[Pod]) -> str | None:
        """Return why pods that start together are left out: the first reason of any of them."""
        for pod in waiting:
            if set(pod.rules.scheduling_gates) - KUEUE_GATES:
                return "behind a scheduling gate"
            if pod.shares:
                return f"asking for a part of a GPU, or devices that are not read: {', '.join(pod.shares)}"
            if pod.unsupported is not None:
                return pod.unsupported
            if (unread := self.conditions[pod.id].unread) is not None:
                return unread
        if len({(pod.rules.text, pod.ports, self.conditions[pod.id]) for pod in waiting}) > 1:
            return "a gang whose pods that wait have different rules about nodes"
        return None


def _bind(draft: JobDraft, gang: Gang) -> str | None:
    """Keep pods that wait in the domains of those of their gang that run; return why that cannot be said."""
    for group in gang.groups():
        members, topology = group.members(), group.rules.topology
        here = frozenset(pod.node for pod in members if pod.node is not None and not pod.ending)
        waiting = sum(pod.node is None for pod in members)
        if not here or not waiting or topology == NO_TOPOLOGY:
            continue
        if topology.slices:
            return "a gang of which some pods run, with a rule about slices"
        if topology.required is not None and waiting < len(draft.pods):
            return "a gang of which some pods run, with a domain for a part of those that wait"
        if topology.required is not None:
            draft.bound = [*draft.bound, (topology.required, here)]
    return None


UNLISTED = GroupRules(unsupported="of a PodGroup whose parent is not listed")
INDEPENDENT = GroupRules(gang=False)
UNREAD_COMPOSITE = "of a CompositePodGroup without a gang that has a parent, or rules about domains"


def unreadable_job(name: str, nodes: tuple[str, ...], reason: str, where: str) -> ObservedJob:
    """Return a running job whose amounts on its nodes are unknown."""
    job = make_record(Job, where, id=name, kind="cpu", options=(Option(workers=len(nodes), demand=Demand(gpus=0)),))
    return ObservedJob(job, tuple(ObservedWorker(node) for node in nodes), where=where, unreadable_reason=reason)
