"""Spans: jobs that lie across rooms of one node, and what else the rooms can hold beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.branch_and_price.gpu_groups import GpuGroups, NodeGroup, OpenGroups
from placeopt.problem import IntArray

MAX_PATTERNS = 30_000
"""Sets of jobs across rooms, over all groups of nodes, up to which they are listed."""

Span = tuple[int, tuple[int, ...]]
"""A kind, and how many of its GPUs lie in each room of the node."""


@dataclass(frozen=True, eq=False)
class CrossGroupPatterns:
    """Q sets of jobs across rooms of one node, not empty. R is the most rooms of a node."""

    spans: list[tuple[Span, ...]]
    group: IntArray  # (Q,) node group
    uses: IntArray  # (Q, K)
    cost: (
        IntArray  # (Q,) all that the set costs by itself; each job where its GPUs are closest, regardless of the others
    )
    opens: IntArray  # (Q, A) rooms of each place, idle so far, that have parts of its jobs
    scene: IntArray  # (Q, R) row of ``scenes`` for each room of the node, -1 where nothing more fits
    scenes: OpenGroups  # (Z,) rooms with parts of such jobs in them
    scene_place: IntArray  # (Z,) row of ``rooms.places``

    def __len__(self) -> int:
        """Q."""
        return len(self.spans)


def make_cross_group_patterns(rooms: GpuGroups) -> CrossGroupPatterns:
    """List every set of jobs across rooms that fits a node, with its price but for what the rooms hold besides."""
    spans: list[tuple[Span, ...]] = []
    group: list[int] = []
    cost: list[int] = []
    uses: list[IntArray] = []
    scene: list[list[int]] = []
    opens: list[IntArray] = []
    scenes: dict[tuple[int, int, tuple[int, ...]], int] = {}
    widest = max((len(g.parts) for g in rooms.groups), default=0)
    for number, nodes in enumerate(rooms.groups):
        distances = _Distances(rooms, nodes)
        for pattern in _sets(rooms, nodes):
            if len(spans) == MAX_PATTERNS:
                raise Unsupported(f"jobs across rooms of nodes make more than {MAX_PATTERNS} sets")
            spans.append(pattern)
            group.append(number)
            uses.append(np.bincount([kind for kind, _ in pattern], minlength=len(rooms.kinds)))
            cost.append(_cost(rooms, nodes, pattern) + sum(distances.least(span) for span in pattern))
            mine = [-1] * widest
            for r, place in enumerate(nodes.room):
                held = sum(split[r] for _, split in pattern)
                beside = tuple(sorted(int(rooms.kinds.profile[kind]) for kind, split in pattern if split[r]))
                if rooms.places.units[place] - 1000 * held >= rooms.shares[0]:
                    mine[r] = scenes.setdefault((place, held, beside), len(scenes))
            scene.append(mine)
            opens.append(_opened(rooms, nodes, pattern))
    scene_place = np.array([key[0] for key in scenes], dtype=np.int64)
    return CrossGroupPatterns(
        spans=spans,
        group=np.array(group, dtype=np.int64),
        uses=np.array(uses, dtype=np.int64).reshape(len(spans), len(rooms.kinds)),
        cost=np.array(cost, dtype=np.int64),
        opens=np.array(opens, dtype=np.int64).reshape(len(spans), len(rooms.places)),
        scene=np.array(scene, dtype=np.int64).reshape(len(spans), widest),
        scenes=_scenes(rooms, list(scenes), scene_place),
        scene_place=scene_place,
    )


def _opened(rooms: GpuGroups, nodes: NodeGroup, pattern: tuple[Span, ...]) -> IntArray:
    """Shape (A,): rooms of each place that are opened."""
    places = [place for r, place in enumerate(nodes.room) if any(split[r] for _, split in pattern)]
    return np.bincount(places, minlength=len(rooms.places)) * (rooms.places.opening > 0)


def _scenes(rooms: GpuGroups, keys: list[tuple[int, int, tuple[int, ...]]], place: IntArray) -> OpenGroups:
    """Rooms with parts of jobs in them: fewer GPUs, more neighbours, and opened where there is a part."""
    kinds, plain = rooms.kinds, rooms.places.take(place)
    held = np.array([key[1] for key in keys], dtype=np.int64)
    beside = np.zeros((len(keys), len(kinds.pair)), dtype=np.int64)
    for row, (_, _, profiles) in enumerate(keys):
        for profile in profiles:
            beside[row] += kinds.pair[profile]
    return OpenGroups(
        slots=plain.slots - held[:, None] * (1000 // rooms.shares),
        units=plain.units - 1000 * held,
        idle=plain.idle - held,
        opening=np.where(held > 0, 0, plain.opening),
        busy=plain.busy,
        beside=plain.beside + beside,
        fixed=plain.fixed,
        ok=plain.ok,
    )


def _sets(rooms: GpuGroups, nodes: NodeGroup) -> Iterator[tuple[Span, ...]]:
    """Yield every multiset of jobs across rooms that the idle GPUs of a node of the group can hold."""
    kinds, places = rooms.kinds, rooms.places
    idle = [len(free) for free in nodes.free]
    spans: list[Span] = []
    for kind in range(len(kinds)):
        if kinds.gpus[kind] > 1 and kinds.milli[kind] == 1000:
            most = [n if places.ok[place, kind] else 0 for n, place in zip(idle, nodes.room, strict=True)]
            splits = product(*(range(min(n, int(kinds.gpus[kind])) + 1) for n in most))
            gpus = int(kinds.gpus[kind])
            spans.extend((kind, s) for s in splits if sum(s) == gpus and sum(part > 0 for part in s) > 1)
    count = np.zeros(len(kinds), dtype=np.int64)

    def extend(first: int, left: list[int], held: tuple[Span, ...]) -> Iterator[tuple[Span, ...]]:
        for i in range(first, len(spans)):
            kind, split = spans[i]
            if count[kind] < kinds.supply[kind] and all(part <= n for part, n in zip(split, left, strict=True)):
                count[kind] += 1
                yield (*held, spans[i])
                yield from extend(i, [n - part for n, part in zip(left, split, strict=True)], (*held, spans[i]))
                count[kind] -= 1

    return extend(0, idle, ())


def _cost(rooms: GpuGroups, nodes: NodeGroup, pattern: tuple[Span, ...]) -> int:
    """What a set costs but for the paths inside the node: neighbours once each, busy GPUs, the way out."""
    kinds, places = rooms.kinds, rooms.places
    total = 0
    inside = [
        (int(kinds.profile[kind]), frozenset(r for r, part in enumerate(split) if part)) for kind, split in pattern
    ]
    for i, (profile, mine) in enumerate(inside):
        for other, theirs in (*inside[:i], *nodes.jobs):
            if mine & theirs:
                total += int(kinds.pair[profile, other])
    for r, place in enumerate(nodes.room):
        held = sum(split[r] for _, split in pattern)
        total += int(places.opening[place]) * (held > 0) - int(places.busy[place]) * held
    for kind, _ in pattern:
        crossing = int(kinds.gpus[kind] * (kinds.total[kind] - kinds.gpus[kind]))
        total += int(kinds.traffic[kind]) * crossing * nodes.leave
    return total + nodes.opening


class _Distances:
    """Paths between the GPUs of jobs across the rooms of a node."""

    def __init__(self, rooms: GpuGroups, nodes: NodeGroup) -> None:
        topology = rooms.problem.topology
        self._distance = topology.distance[int(topology.node_machine[nodes.nodes[0]])]
        self._free, self._kinds = nodes.free, rooms.kinds
        self._choices: dict[tuple[int, ...], list[tuple[int, frozenset[int]]]] = {}

    def choices(self, split: tuple[int, ...]) -> list[tuple[int, frozenset[int]]]:
        """Sets of idle GPUs with so many in each room, with the sum of their paths, the shortest first."""
        if split not in self._choices:
            parts = product(*(combinations(free, n) for free, n in zip(self._free, split, strict=True)))
            gpus = np.array([[gpu for part in choice for gpu in part] for choice in parts], dtype=np.int64)
            paths = self._distance[gpus[:, :, None], gpus[:, None, :]].sum(axis=(1, 2)) // 2
            order = np.argsort(paths, kind="stable")
            held = [frozenset(row) for row in gpus[order].tolist()]
            self._choices[split] = list(zip(paths[order].tolist(), held, strict=True))
        return self._choices[split]

    def least(self, span: Span) -> int:
        """Cost of the shortest paths that a job can have if it is alone."""
        kind, split = span
        return int(self._kinds.traffic[kind]) * self.choices(split)[0][0]


def lay(rooms: GpuGroups, nodes: NodeGroup, pattern: tuple[Span, ...]) -> tuple[int, list[frozenset[int]]]:
    """Return how much longer the paths of a set must be than its ``cost`` says, as cost, and its positions then."""
    distances = _Distances(rooms, nodes)
    traffic = [int(rooms.kinds.traffic[kind]) for kind, _ in pattern]
    choices = [distances.choices(split) for _, split in pattern]
    rest = [0] * (len(pattern) + 1)
    for i in reversed(range(len(pattern))):
        rest[i] = rest[i + 1] + traffic[i] * choices[i][0][0]
    best: list[tuple[int, list[frozenset[int]]]] = []

    def place(i: int, cost: int, taken: frozenset[int], held: list[frozenset[int]]) -> None:
        if best and cost + rest[i] >= best[0][0]:
            return
        if i == len(pattern):
            best[:] = [(cost, list(held))]
            return
        for paths, gpus in choices[i]:
            if not gpus & taken:
                place(i + 1, cost + traffic[i] * paths, taken | gpus, [*held, gpus])

    place(0, 0, frozenset(), [])
    cost, held = best[0]
    return cost - rest[0], held
