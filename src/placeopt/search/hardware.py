"""Nodes for the local search: kinds of nodes whose GPUs are alike, with their GPUs as bits of a mask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placeopt.problem import IntArray, Problem

MOST_GPUS = np.iinfo(np.int64).bits - 2
"""GPUs of a node that a search sees: sets are bits of a signed integer of 64 bits, with room for one bit more."""
TABLE_GPUS = 8
"""GPUs of a node up to which facts of each of their sets stand in tables, 256 sets."""
INSIDE = ("node", "socket", "numa", "switch")
"""Levels of fragmentation whose domains lie inside of one node."""


def hides_gpus(problem: Problem) -> bool:
    """Tell whether some node has more GPUs than a search sees."""
    return bool(np.diff(problem.node_gpu_start).max(initial=0) > MOST_GPUS)


def in_sight(problem: Problem, seed: int) -> list[range]:
    """Return the GPUs of each node that a search of this seed sees: all, or `MOST_GPUS` beside each other."""
    start, number = problem.node_gpu_start[:-1], np.diff(problem.node_gpu_start)
    seen = np.minimum(number, MOST_GPUS)
    first = start + seed % (number - seen + 1)
    return [range(a, b) for a, b in zip(first.tolist(), (first + seen).tolist(), strict=True)]


def mask_of(gpus: Iterable[int]) -> int:
    """Return the set of GPUs, by their index in the node, as bits."""
    return sum(1 << gpu for gpu in gpus)


def sets_by(label: Sequence[int]) -> list[int]:
    """Return the set of GPUs of each label but -1, in ascending order of the labels; ``label`` has one a GPU."""
    return [mask_of(g for g, name in enumerate(label) if name == one) for one in sorted(set(label) - {-1})]


@dataclass(frozen=True, eq=False)
class Kind:
    """Nodes that cannot be told apart while idle but for their place in the network, by one of them."""

    problem: Problem
    node: int
    slots: slice  # GPUs of the node that stands for all

    @property
    def gpus(self) -> int:
        """Number of GPUs."""
        return int(self.slots.stop) - int(self.slots.start)

    @property
    def _in_machine(self) -> slice:
        first = self.problem.first_gpu[self.node]
        return slice(self.slots.start - first, self.slots.stop - first)

    @cached_property
    def distance(self) -> IntArray:
        """Shape (g, g): distances between the GPUs."""
        topology = self.problem.topology
        table: IntArray = topology.distance[topology.node_machine[self.node]]
        return table[self._in_machine, self._in_machine]

    @cached_property
    def way_out(self) -> IntArray:
        """Shape (g,): distance of each GPU from the domain of the node."""
        topology = self.problem.topology
        out: IntArray = topology.root[topology.node_machine[self.node]] + topology.node_uplink[self.node]
        return out[self._in_machine]

    @cached_property
    def switches(self) -> list[int]:
        """The GPUs of each closest switch."""
        return sets_by(self.problem.gpu_switch[self.slots].tolist())

    @cached_property
    def sockets(self) -> list[int]:
        """The GPUs of each socket."""
        return sets_by(self.problem.gpu_socket[self.slots].tolist())

    @cached_property
    def parts(self) -> list[tuple[int, int]]:
        """Weight of fragmentation and GPUs of each domain inside the node."""
        levels = (level for level in self.problem.levels if level.name in INSIDE)
        return [(level.weight, gpus) for level in levels for gpus in sets_by(level.gpu_to_domain[self.slots].tolist())]

    @cached_property
    def listed(self) -> list[int]:
        """Of each level of fragmentation above nodes, the GPUs that count."""
        levels = (level for level in self.problem.levels if level.name not in INSIDE)
        return [mask_of(np.flatnonzero(level.gpu_to_domain[self.slots] >= 0).tolist()) for level in levels]

    @cached_property
    def alike(self) -> list[int]:
        """Sets of GPUs that swap without changing any cost or rule while they are idle."""
        problem, start = self.problem, self.slots.start
        types = problem.gpu_type[self.slots].tolist()
        memory = problem.gpu_memory_mib[self.slots].tolist()
        inside = [*self.switches, *self.sockets, *(gpus for _, gpus in self.parts), *self.listed]
        named = [part[start : start + self.gpus].tolist() for part in problem.gpu_part.values()]
        marks = [
            (types[g], memory[g], int(self.way_out[g]), *(s >> g & 1 for s in inside), *(part[g] for part in named))
            for g in range(self.gpus)
        ]
        groups: list[list[int]] = []
        for g in range(self.gpus):
            for group in groups:
                first, others = group[0], [x for x in range(self.gpus) if x not in (g, group[0])]
                if marks[g] == marks[first] and (self.distance[g, others] == self.distance[first, others]).all():
                    group.append(g)
                    break
            else:
                groups.append([g])
        return [mask_of(group) for group in groups]


@dataclass(frozen=True, eq=False)
class NodeKinds:
    """The kinds of the nodes of a problem, at least one."""

    kinds: tuple[Kind, ...]
    of_node: IntArray  # (N,)

    def sets(self, of_kind: Sequence[Sequence[int]]) -> IntArray:
        """Shape (kinds, longest): sets of GPUs of each kind, filled up with empty ones."""
        longest = max(map(len, of_kind), default=0)
        return np.array([[*sets, *[0] * (longest - len(sets))] for sets in of_kind], np.int64)


def node_kinds(problem: Problem, seen: Sequence[range]) -> NodeKinds:
    """
    Group the nodes by machine, types of GPUs, and whether they lie in domains of the levels of fragmentation.

    ``seen``: See `in_sight`.
    """
    found: dict[tuple[int, bytes, bytes], int] = {}
    first: list[int] = []
    of_node = np.zeros(problem.num_nodes, dtype=np.int64)
    inside = np.array([level.gpu_to_domain >= 0 for level in problem.levels], dtype=bool).reshape(
        len(problem.levels), problem.num_gpus
    )
    for n, machine in enumerate(problem.topology.node_machine.tolist()):
        slots = slice(seen[n].start, seen[n].stop)
        key = machine, problem.gpu_type[slots].tobytes(), inside[:, slots].tobytes()
        if key not in found:
            found[key] = len(first)
            first.append(n)
        of_node[n] = found[key]
    return NodeKinds(tuple(Kind(problem, n, slice(seen[n].start, seen[n].stop)) for n in first), of_node)


def path_of_sets(kind: Kind) -> IntArray:
    """Shape (256,): path length between all pairs of each set of GPUs; zeros where there are more than 8 GPUs."""
    out = np.zeros(1 << TABLE_GPUS, dtype=np.int64)
    for gpus in range(1, 1 << kind.gpus if kind.gpus <= TABLE_GPUS else 0):
        rest = gpus & (gpus - 1)
        last = (gpus ^ rest).bit_length() - 1
        out[gpus] = out[rest] + sum(int(kind.distance[last, g]) for g in range(kind.gpus) if rest >> g & 1)
    return out
