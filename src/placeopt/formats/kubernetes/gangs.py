"""Jobs under construction from pods: which pods form a job, and how many of them start together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from placeopt.formats.faults import make_record
from placeopt.formats.import_notes import ImportNotes
from placeopt.formats.kubernetes.node_selectors import EVERY_NODE, NodeConditions
from placeopt.formats.kubernetes.pod_groups import (
    KUEUE_GATES,
    NO_RULES,
    NO_TOPOLOGY,
    GangMembership,
    GroupRules,
    Topology,
)
from placeopt.formats.kubernetes.pods import Pod, job_id
from placeopt.formats.observed_round import ObservedJob, ObservedWorker
from placeopt.model import Demand, Job, Option, Split

MAX_DEPTH = 8
"""Levels of groups in a gang; Kubernetes allows four."""


@dataclass
class Part:
    """Pods of a gang that wait: some that are alike, or parts of which each has a rule or pods of its own kind."""

    name: str
    pods: list[Pod] = field(default_factory=list)
    pods_min: int = 0
    topology: Topology = NO_TOPOLOGY
    parts: list[Part] = field(default_factory=list)
    optional: bool = False
    """Whether all of its pods may be missing while others of the gang run."""

    def leaves(self) -> Iterator[Part]:
        """Yield the parts that have pods."""
        if self.pods:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def simplified(self) -> Part:
        """
        Return the same rules with as few parts as can be.

        Alike pods without rules of their own are one part, those that may be missing at its end.
        """
        if not self.parts:
            return self
        parts: list[Part] = []
        for part in [one.simplified() for one in self.parts]:
            for one in part.parts if part.is_transparent else [part]:
                other = next((other for other in parts if other.joins(one)), None)
                if other is None:
                    parts.append(one)
                else:
                    first, last = (other, one) if other.pods_min == len(other.pods) else (one, other)
                    other.pods, other.pods_min = first.pods + last.pods, first.pods_min + last.pods_min
        parts.sort(key=lambda part: part.optional)
        parts[0].optional = False
        if len(parts) == 1 and NO_TOPOLOGY in (self.topology, parts[0].topology):
            topology = parts[0].topology if self.topology == NO_TOPOLOGY else self.topology
            return replace(parts[0], name=self.name, topology=topology, optional=self.optional)
        return replace(self, parts=parts)

    @property
    def is_transparent(self) -> bool:
        """Whether its parts can be parts of its parent as well."""
        return bool(self.parts) and self.topology == NO_TOPOLOGY and not self.optional

    def joins(self, other: Part) -> bool:
        """Whether the pods of two parts can be one part."""
        ruled = any(
            one.parts or one.topology != NO_TOPOLOGY or (one.optional and one.pods_min) for one in (self, other)
        )
        full = self.pods_min == len(self.pods) or other.pods_min == len(other.pods)
        return not ruled and full and _kind(self.pods[0]) == _kind(other.pods[0])


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
        return (-sum(pod.gpus for pod in self.pods), -self.first.priority, self.first.created_ms, self.name)

    def split(self, level: str, domains: int, workers: int | None = None) -> None:
        """Add a rule about the domains of a level, unless it exists."""
        rule = Split(level=level, domains=domains, workers=workers)
        if rule not in self.splits:
            self.splits.append(rule)


@dataclass
class Gang:
    """A gang, or a part of one, as its pods and objects state it."""

    name: str
    rules: GroupRules
    pods: list[Pod] = field(default_factory=list)
    parts: dict[object, Gang] = field(default_factory=dict)
    ended: int = 0
    """Pods that count as present although they run no more, or are represented by others."""

    def groups(self) -> Iterator[Gang]:
        """Yield this group and all of its parts."""
        yield self
        for part in self.parts.values():
            yield from part.groups()

    def members(self) -> list[Pod]:
        """Return the pods of this group and of its parts."""
        return [pod for group in self.groups() for pod in group.pods]

    def present(self) -> int:
        """Return the number of pods that run, or ran to their end; one that is being deleted is none of them."""
        return sum(pod.node is not None and not pod.ending for pod in self.members()) + sum(
            group.ended for group in self.groups()
        )

    def place(self, path: Iterable[tuple[object, GroupRules]], name: str) -> Gang:
        """Return the part at the end of a path, which is made if there is none; ``name``: of parts without one."""
        group = self
        for key, rules in path:
            group = group.parts.setdefault(key, Gang(key if isinstance(key, str) else name, rules))
        return group

    def take_room_of_placeholders(self) -> None:
        """Drop a placeholder for each pod that waits for its room, one that runs first; those that are left go last."""
        for group in self.groups():
            pods = [pod for pod in group.pods if not pod.placeholder]
            if len(pods) < len(group.pods):
                waiting = sum(pod.node is None for pod in pods)
                holders = sorted((pod for pod in group.pods if pod.placeholder), key=lambda pod: pod.node is None)
                group.pods = pods + holders[waiting:]
                group.ended += sum(pod.node is not None for pod in holders[:waiting])

    def missing(self) -> str | None:
        """Return how many pods, or groups, of which number there are, if some must exist before any starts."""
        for group in self.groups():
            needed, there = max(group.rules.pods_min or 0, group.rules.count or 0), len(group.members())
            there += sum(one.ended for one in group.groups())
            if there < needed:
                return f"pods are missing ({there} of {needed})"
            if len(group.parts) < (group.rules.parts_min or 0):
                return f"groups are missing ({len(group.parts)} of {group.rules.parts_min})"
            roles, names = group.rules.parts, {one.name for one in group.groups()}
            for role, rules in roles.items():
                above = roles.get(rules.parent or "", group.rules)
                if rules.pods_min and above.parts_min is None and role not in names:
                    return f"pods are missing ({role}: 0 of {rules.pods_min})"
        return None

    def waiting(self) -> Part:
        """
        Return the pods that wait.

        Where some of several kinds, or groups, may stay missing, those with most pods are the ones that may.
        """
        kinds: dict[object, list[Pod]] = defaultdict(list)
        for pod in self.pods:
            if pod.node is None:
                kinds[_kind(pod)].append(pod)
        least = self.rules.pods_min
        leaves = [Part(pods[0].id, pods, len(pods) if least is None else 0) for pods in kinds.values()]
        parts = [(group, part) for group in self.parts.values() if any((part := group.waiting()).leaves())]
        whole = Part(self.name, topology=self.rules.topology, parts=[*(part for _, part in parts), *leaves])
        if least is not None:
            leaves = sorted(whole.leaves(), key=lambda leaf: len(leaf.pods))
            short = least - self.present() - sum(leaf.pods_min for leaf in leaves)
            for leaf in leaves:
                more = max(0, min(short, len(leaf.pods) - leaf.pods_min))
                leaf.pods_min += more
                short -= more
                leaf.optional = not leaf.pods_min
        if self.rules.parts_min is not None:
            begun = sum(group.present() > 0 for group in self.parts.values())
            new = [part for group, part in parts if not group.present()]
            new.sort(key=lambda part: sum(len(leaf.pods) for leaf in part.leaves()))
            for part in new[max(0, self.rules.parts_min - begun) :]:
                part.optional = True
        return whole


def amounts_of(pod: Pod) -> tuple[int, int, int]:
    """Return GPUs, millicores and MiB of a pod: no less than it asks for, no more than it holds."""
    return pod.gpus, pod.amounts.cpu_millicores, pod.amounts.memory_mib


def _kind(pod: Pod) -> object:
    """Return what alike pods have in common."""
    return (*amounts_of(pod), frozenset(pod.named.items()), pod.ending)


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
                path = [((self.near[pod.id], _kind(pod), pod.rules, pod.priority, pod.queue), GroupRules(pods_min=1))]
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
            roles.append((group.role or _kind(pod), replace(last, topology=topology)))
        return [*path, *roles]

    def _alone(self, pod: Pod) -> list[JobDraft]:
        """Return the draft of a pod that starts alone; none if it is left out."""
        reason = self._unread([pod]) if pod.node is None else None
        if reason is not None:
            self.notes.leave_out(reason, pod.id)
            return []
        draft = _draft(pod.id, [pod], 1)
        draft.topology = pod.topology
        return [draft]

    def _drafts(self, gang: Gang) -> list[JobDraft]:
        """Return the drafts of the pods of a gang: of those that run, one for each kind, and of those that wait."""
        gang.take_room_of_placeholders()
        members = gang.members()
        waiting = [pod for pod in members if pod.node is None]
        kinds: dict[object, list[Pod]] = defaultdict(list)
        for pod in members:
            if pod.node is not None:
                kinds[_kind(pod)].append(pod)
        drafts = [_draft(gang.name, pods, len(pods)) for pods in kinds.values()]
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
        draft = _draft(gang.name, pods, max(1, sum(leaf.pods_min for leaf in leaves)))
        draft.topology, draft.parts = part.topology, part.parts
        if len({(pod.amounts.cpu_millicores, pod.amounts.memory_mib) for pod in pods}) > 1:
            self.notes.assume("Pods of a gang that differ in CPU or memory alone count with the most of any of them.")
        return (_bind(draft, gang) if len(waiting) < len(gang.members()) else None) or draft

    def _unread(self, waiting: Sequence[Pod]) -> str | None:
        """Return why pods that start together are left out: the first reason of any of them."""
        for pod in waiting:
            if set(pod.scheduling_gates) - KUEUE_GATES:
                return "behind a scheduling gate"
            if pod.shares:
                return f"asking for a part of a GPU, or devices that are not read: {', '.join(pod.shares)}"
            if pod.unsupported is not None:
                return pod.unsupported
            if (unread := self.conditions[pod.id].unread) is not None:
                return unread
        if len({(pod.rules, pod.ports, self.conditions[pod.id]) for pod in waiting}) > 1:
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


def _draft(name: str, pods: list[Pod], pods_min: int) -> JobDraft:
    return JobDraft(name, pods, pods_min)


def unreadable_job(name: str, nodes: tuple[str, ...], reason: str, where: str) -> ObservedJob:
    """Return a running job whose amounts on its nodes are unknown."""
    job = make_record(Job, where, id=name, kind="cpu", options=(Option(workers=len(nodes), demand=Demand(gpus=0)),))
    return ObservedJob(job, tuple(ObservedWorker(node) for node in nodes), where=where, unreadable_reason=reason)
