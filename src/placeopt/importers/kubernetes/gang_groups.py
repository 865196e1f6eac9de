"""Groups of a gang: who is there, who must exist before any starts, and how many of whom start together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from placeopt.importers.kubernetes.pod_groups import NO_TOPOLOGY, GroupRules, Topology
from placeopt.importers.kubernetes.pods import Pod


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
                kinds[kind_of(pod)].append(pod)
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
        return not ruled and full and kind_of(self.pods[0]) == kind_of(other.pods[0])


def amounts_of(pod: Pod) -> tuple[int, int, int]:
    """Return GPUs, millicores and MiB of a pod: no less than it asks for, no more than it holds."""
    return pod.gpus, pod.amounts.cpu_millicores, pod.amounts.memory_mib


def kind_of(pod: Pod) -> object:
    """Return what alike pods have in common."""
    return (*amounts_of(pod), frozenset(pod.named.items()), pod.ending)
