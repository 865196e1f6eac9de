"""Which pods form a job: who is there of a gang, who must exist before any starts, and how many of whom start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.kubernetes.makers import NO_RULES, NO_TOPOLOGY, GangMembership, GroupRules, Topology
from placeopt.importers.kubernetes.pods import Pod

MAX_DEPTH = 8
"""Levels of groups in a gang; Kubernetes allows four."""
UNLISTED = GroupRules(unsupported="of a PodGroup whose parent is not listed")
INDEPENDENT = GroupRules(gang=False)
UNREAD_COMPOSITE = "of a CompositePodGroup without a gang that has a parent, or rules about domains"
Path = list[tuple[object, GroupRules]]
"""Keys of groups with their rules, from the gang down."""


@dataclass
class PodGroup:
    """
    A gang, or a part of one: as its pods and objects state it, or those of its pods that start together.

    ``pods``: Alike ones, where they start together: at least ``pods_min`` of them. ``parts``: With rules of their own.
    ``ended``: Pods that count as present although they run no more, or are represented by others. ``optional``:
    Whether all of its pods may be missing while others of the gang run.
    """

    name: str
    rules: GroupRules = NO_RULES
    pods: list[Pod] = field(default_factory=list)
    parts: list[PodGroup] = field(default_factory=list)
    ended: int = 0
    pods_min: int = 0
    optional: bool = False

    @property
    def topology(self) -> Topology:
        """Rules about the domains in which its pods lie."""
        return self.rules.topology

    def groups(self) -> Iterator[PodGroup]:
        """Yield the group itself and all of its parts."""
        yield self
        for part in self.parts:
            yield from part.groups()

    def leaves(self) -> list[PodGroup]:
        """Return the parts that have pods."""
        return [part for part in self.groups() if part.pods]

    def members(self) -> list[Pod]:
        """Return the pods of the group and of its parts."""
        return [pod for group in self.groups() for pod in group.pods]

    def simplified(self) -> PodGroup:
        """
        Return the same rules with as few parts as can be.

        Alike pods without rules of their own are one part, those that may be missing at its end.
        """
        if not self.parts:
            return self
        parts: list[PodGroup] = []
        for part in [one.simplified() for one in self.parts]:
            transparent = part.parts and part.topology == NO_TOPOLOGY and not part.optional
            for one in part.parts if transparent else [part]:
                other = next((other for other in parts if other.joins(one)), None)
                if other is None:
                    parts.append(one)
                else:
                    first, last = (other, one) if other.pods_min == len(other.pods) else (one, other)
                    other.pods, other.pods_min = first.pods + last.pods, first.pods_min + last.pods_min
        parts.sort(key=lambda part: part.optional)
        parts[0].optional = False
        if len(parts) == 1 and NO_TOPOLOGY in (self.topology, parts[0].topology):
            rules = parts[0].rules if self.topology == NO_TOPOLOGY else self.rules
            return replace(parts[0], name=self.name, rules=rules, optional=self.optional)
        return replace(self, parts=parts)

    def joins(self, other: PodGroup) -> bool:
        """Whether the pods of two parts can be one part."""
        both = (self, other)
        ruled = any(one.parts or one.topology != NO_TOPOLOGY or (one.optional and one.pods_min) for one in both)
        full = any(one.pods_min == len(one.pods) for one in both)
        return not ruled and full and len({(one.pods[0].kind, one.pods[0].conditions) for one in both}) == 1

    def present(self) -> int:
        """Return the number of pods that run, or ran to their end; one that is being deleted is none of them."""
        running = sum(pod.node is not None and not pod.ending for pod in self.members())
        return running + sum(group.ended for group in self.groups())

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
            rules, inner = group.rules, list(group.groups())
            needed, there = max(rules.pods_min or 0, rules.count or 0), sum(len(one.pods) + one.ended for one in inner)
            if there < needed:
                return f"pods are missing ({there} of {needed})"
            if len(group.parts) < (rules.parts_min or 0):
                return f"groups are missing ({len(group.parts)} of {rules.parts_min})"
            for role, own in rules.parts.items():
                above = rules.parts.get(own.parent or "", rules)
                if own.pods_min and above.parts_min is None and role not in {one.name for one in inner}:
                    return f"pods are missing ({role}: 0 of {own.pods_min})"
        return None

    def waiting(self) -> PodGroup:
        """
        Return the pods that wait.

        Where some of several kinds, or groups, may stay missing, those with most pods are the ones that may.
        """
        kinds: dict[object, list[Pod]] = defaultdict(list)
        for pod in self.pods:
            if pod.node is None:
                kinds[pod.kind, pod.conditions].append(pod)
        least = self.rules.pods_min
        leaves = [PodGroup(of[0].id, pods=of, pods_min=len(of) if least is None else 0) for of in kinds.values()]
        parts = [(group, part) for group in self.parts if (part := group.waiting()).leaves()]
        whole = PodGroup(self.name, self.rules, parts=[*(part for _, part in parts), *leaves])
        if least is not None:
            short = least - self.present() - sum(leaf.pods_min for leaf in whole.leaves())
            for leaf in sorted(whole.leaves(), key=lambda leaf: len(leaf.pods)):
                more = max(0, min(short, len(leaf.pods) - leaf.pods_min))
                leaf.pods_min += more
                short -= more
                leaf.optional = not leaf.pods_min
        if self.rules.parts_min is not None:
            begun = sum(group.present() > 0 for group in self.parts)
            new = [part for group, part in parts if not group.present()]
            new.sort(key=lambda part: len(part.members()))
            for part in new[max(0, self.rules.parts_min - begun) :]:
                part.optional = True
        return whole


class Draft(NamedTuple):
    """
    Pods that are one job; all run, or none.

    ``tree``: The same pods, with how many of whom start together. ``whole``: Whether no other pods belong to the same
    gang. ``bound``: Node label, and nodes: the job runs where the label has the value that it has there. ``waits_for``:
    What is missing before it may start. ``left_out``: Why it cannot be said in a round.
    """

    name: str
    pods: Sequence[Pod]
    tree: PodGroup
    whole: bool = True
    bound: Sequence[tuple[str, frozenset[str]]] = ()
    waits_for: str | None = None
    left_out: str | None = None

    @property
    def first(self) -> Pod:
        """One of the pods, which represents all."""
        return self.pods[0]

    @property
    def runs(self) -> bool:
        """Whether the pods are on nodes."""
        return self.first.node is not None


def gang_drafts(
    pods: Sequence[Pod],
    rules: Mapping[str, GroupRules],
    ended: Iterable[GangMembership],
    notes: ImportNotes,
) -> list[Draft]:
    """
    Return the jobs that pods form, in the order of their first pods.

    ``rules``: Rules of the listed objects. ``ended``: Gangs of pods that succeeded.
    """
    stated: dict[str, GroupRules] = {}
    for pod in pods:
        if pod.group is not None and pod.group.rules is not NO_RULES:
            stated.setdefault(pod.group.id, pod.group.rules)
    groups: dict[tuple[object, ...], PodGroup] = {}
    """Keys of a group from the gang down -> the group."""
    found: list[PodGroup | Draft] = []

    def at_end(path: Path, name: str) -> PodGroup:
        """Return the group at the end of a path, which is made if there is none; ``name``: of one without."""
        for i, (key, own) in enumerate(path):
            keys = tuple(key for key, _ in path[: i + 1])
            if keys not in groups:
                groups[keys] = PodGroup(str(key).partition("|")[0] if not i or isinstance(key, str) else name, own)
                (groups[keys[:-1]].parts if i else found).append(groups[keys])
        return groups[keys]

    for pod in pods:
        path = [] if pod.group is None else _path(pod.group, rules, stated.get(pod.group.id, NO_RULES), pod)
        if path:
            at_end(path, pod.id).pods.append(pod)
        else:
            own = NO_RULES if pod.node or pod.topology == NO_TOPOLOGY else GroupRules(topology=pod.topology)
            tree = PodGroup(pod.id, own, [pod], pods_min=1)
            found.append(Draft(pod.id, tree.pods, tree))
    for group in ended:
        path = _path(group, rules, stated.get(group.id, NO_RULES))
        if path and (path[0][0],) in groups:
            at_end(path, group.id).ended += 1
    return [draft for one in found for draft in ([one] if isinstance(one, Draft) else _drafts(one, rules, notes))]


def _path(group: GangMembership, rules: Mapping[str, GroupRules], said: GroupRules, pod: Pod | None = None) -> Path:
    """Return the groups of a pod, none if it starts alone; ``said``: rules that pods of its gang state."""
    own = rules.get(group.source or "", NO_RULES)
    if said is not NO_RULES:
        filled = {key: getattr(own, key) or getattr(said, key) for key in ("pods_min", "parts", "partners")}
        own = replace(own, count=said.count, **filled)
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
    path: Path = [(group.id, own)]
    above = own
    while above.parent is not None and len(path) < MAX_DEPTH:
        name, above = above.parent, rules.get(above.parent, UNLISTED)
        if above.gang and above.unsupported is None:
            path.insert(0, (name.partition("/")[2], above))
        elif above != INDEPENDENT:
            path[0] = (path[0][0], replace(path[0][1], unsupported=above.unsupported or UNREAD_COMPOSITE))
    if own.partners:
        path.insert(0, ("|".join(own.partners), GroupRules(parts_min=len(own.partners))))
    roles: Path = []
    role = group.role
    while role in own.parts and len(roles) < MAX_DEPTH:
        roles.insert(0, (role, own.parts[role]))
        role = own.parts[role].parent or ""
    if topology != NO_TOPOLOGY and pod is not None:
        last = roles.pop()[1] if roles else NO_RULES
        roles.append((group.role or pod.kind, replace(last, topology=topology)))
    return [*path, *roles]


def _drafts(gang: PodGroup, rules: Mapping[str, GroupRules], notes: ImportNotes) -> Iterator[Draft]:
    """Yield the jobs of a gang: of the pods that run, one for each kind, and of those that wait."""
    gang.take_room_of_placeholders()
    kinds: dict[object, list[Pod]] = defaultdict(list)
    waiting = []
    for pod in gang.members():
        if pod.node is None:
            waiting.append(pod)
        else:
            kinds[pod.kind].append(pod)
    whole = len(kinds) + bool(waiting) == 1
    if not whole:
        notes.assume("Of groups of which some pods run, these are jobs of their own, one for each kind.")
    fewest = gang.rules.pods_min if whole and not gang.parts else None
    for pods in kinds.values():
        least = len(pods) if fewest is None else max(1, min(fewest, len(pods)))
        yield Draft(gang.name, pods, PodGroup(gang.name, pods=pods, pods_min=least), whole)
    if not waiting:
        return
    reason = next((group.rules.unsupported for group in gang.groups() if group.rules.unsupported), None)
    missing = None if reason is not None or gang.present() else gang.missing()
    group, stated = gang.pods[0].group if gang.pods else None, (gang.rules.pods_min, gang.rules.count)
    if group is not None and group.source is not None and group.source not in rules and stated == (None, None):
        notes.assume("Gangs whose PodGroup is not listed start with all their pods or not at all.")
    tree = gang.waiting().simplified()
    if not tree.parts:
        tree.pods_min = max(1, tree.pods_min)
    bound = _bound(gang, len(waiting)) if kinds else ()
    if isinstance(bound, str):
        reason, bound = reason or bound, ()
    waits_for = None if missing is None else f"a group of which some {missing}"
    yield Draft(gang.name, tree.members(), tree, True, bound, waits_for, reason)


def _bound(gang: PodGroup, num_waiting: int) -> Sequence[tuple[str, frozenset[str]]] | str:
    """Return `Draft.bound` of the pods of a gang that wait beside others that run, or why it cannot be said."""
    bound = []
    for group in gang.groups():
        members, topology = group.members(), group.rules.topology
        here = frozenset(pod.node for pod in members if pod.node is not None and not pod.ending)
        waiting = sum(pod.node is None for pod in members)
        if not here or not waiting or topology == NO_TOPOLOGY:
            continue
        if topology.slices:
            return "a gang of which some pods run, with a rule about slices"
        if topology.required is not None and waiting < num_waiting:
            return "a gang of which some pods run, with a domain for a part of those that wait"
        if topology.required is not None:
            bound.append((topology.required, here))
    return bound
