"""Cross-group jobs: jobs that lie across GPU groups of one node, and what else the GPU groups can hold beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice, product

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.branch_and_price.gpu_groups import GpuGroups, NodeGroup, OpenGroups
from placeopt.problem import IntArray

MAX_PATTERNS = 30_000
"""Sets of jobs across GPU groups, over all groups of nodes, up to which they are listed."""

CrossGroupJob = tuple[int, tuple[int, ...]]
"""A bundle group, and how many of its GPUs lie in each room of the node."""


@dataclass(frozen=True, eq=False)
class CrossGroupPatterns:
    """Q sets of jobs across GPU groups of one node, not empty. R is the most GPU groups of a node."""

    cross_group_jobs: list[tuple[CrossGroupJob, ...]]
    group: IntArray  # (Q,) node group
    uses: IntArray  # (Q, K)
    cost: IntArray  # (Q,) of the set by itself; each job where its GPUs are closest, regardless of the others
    opens: IntArray  # (Q, A) GPU groups of each GPU group, idle so far, that have parts of its jobs
    occupied_group: IntArray  # (Q, R) row of ``occupied_groups`` for each room of the node, -1 where nothing more fits
    occupied_groups: OpenGroups  # (Z,) GPU groups with parts of such jobs in them
    occupied_row: IntArray  # (Z,) row of ``gpu_groups.open_groups``

    def __len__(self) -> int:
        """Q."""
        return len(self.cross_group_jobs)


def make_cross_group_patterns(gpu_groups: GpuGroups) -> CrossGroupPatterns:
    """
    List every set of jobs across GPU groups that fits a node, with its price but for what the GPU groups hold besides.

    Raises ``Unsupported`` where there are more than ``MAX_PATTERNS``, before any is priced.
    """
    bundle_groups, size = gpu_groups.bundle_groups, len(gpu_groups.bundle_groups)
    listed = list(islice(_all_sets(gpu_groups), MAX_PATTERNS + 1))
    if len(listed) > MAX_PATTERNS:
        raise Unsupported(f"jobs across rooms of nodes make more than {MAX_PATTERNS} sets")
    patterns = [pattern for _, pattern in listed]
    rows: list[tuple[int, IntArray, int, IntArray]] = []  # node group, uses, cost, opens
    occupied_group: list[list[int]] = []
    occupied_groups: dict[tuple[int, int, tuple[int, ...]], int] = {}
    widest = max((len(g.parts) for g in gpu_groups.node_groups), default=0)
    distances = [_Distances(gpu_groups, nodes) for nodes in gpu_groups.node_groups]
    for number, pattern in listed:
        nodes = gpu_groups.node_groups[number]
        uses = np.bincount([bundle_group for bundle_group, _ in pattern], minlength=size)
        cost = _cost(gpu_groups, nodes, pattern) + sum(map(distances[number].least, pattern))
        rows.append((number, uses, cost, _opened(gpu_groups, nodes, pattern)))
        selected = [-1] * widest
        for r, open_group in enumerate(nodes.room):
            inside = [(bundle_group, split[r]) for bundle_group, split in pattern if split[r]]
            held = sum(part for _, part in inside)
            beside = tuple(sorted(int(bundle_groups.profile[bundle_group]) for bundle_group, _ in inside))
            if gpu_groups.open_groups.units[open_group] - 1000 * held >= gpu_groups.shares[0]:
                selected[r] = occupied_groups.setdefault((open_group, held, beside), len(occupied_groups))
        occupied_group.append(selected)
    occupied_row = np.array([key[0] for key in occupied_groups], dtype=np.int64)
    group, uses_of, cost_of, opens = zip(*rows, strict=True) if rows else ((),) * 4
    return CrossGroupPatterns(
        cross_group_jobs=patterns,
        group=np.array(group, dtype=np.int64),
        uses=np.array(uses_of, dtype=np.int64).reshape(len(patterns), size),
        cost=np.array(cost_of, dtype=np.int64),
        opens=np.array(opens, dtype=np.int64).reshape(len(patterns), len(gpu_groups.open_groups)),
        occupied_group=np.array(occupied_group, dtype=np.int64).reshape(len(patterns), widest),
        occupied_groups=_search_occupied(gpu_groups, list(occupied_groups), occupied_row),
        occupied_row=occupied_row,
    )


def _all_sets(gpu_groups: GpuGroups) -> Iterator[tuple[int, tuple[CrossGroupJob, ...]]]:
    """Yield (node group, set) of all groups of nodes: first the sets of one job, which alone may be too many."""
    jobs = [_jobs(gpu_groups, nodes) for nodes in gpu_groups.node_groups]
    yield from ((number, (job,)) for number, alone in enumerate(jobs) for job in alone)
    for number, nodes in enumerate(gpu_groups.node_groups):
        for pattern in _sets(gpu_groups, nodes, jobs[number]):
            if len(pattern) > 1:
                yield number, pattern


def _opened(gpu_groups: GpuGroups, nodes: NodeGroup, pattern: tuple[CrossGroupJob, ...]) -> IntArray:
    """Shape (A,): GPU groups of each GPU group that are opened."""
    open_groups = [open_group for r, open_group in enumerate(nodes.room) if any(split[r] for _, split in pattern)]
    return np.bincount(open_groups, minlength=len(gpu_groups.open_groups)) * (gpu_groups.open_groups.opening > 0)


def _search_occupied(
    gpu_groups: GpuGroups, keys: list[tuple[int, int, tuple[int, ...]]], open_group: IntArray
) -> OpenGroups:
    """Rooms with parts of jobs in them: fewer GPUs, more neighbours, and opened where there is a part."""
    bundle_groups, plain = gpu_groups.bundle_groups, gpu_groups.open_groups.take(open_group)
    held = np.array([key[1] for key in keys], dtype=np.int64)
    beside = np.zeros((len(keys), len(bundle_groups.pair)), dtype=np.int64)
    for row, (_, _, profiles) in enumerate(keys):
        for profile in profiles:
            beside[row] += bundle_groups.pair[profile]
    return OpenGroups(
        slots=plain.slots - held[:, None] * (1000 // gpu_groups.shares),
        units=plain.units - 1000 * held,
        idle=plain.idle - held,
        opening=np.where(held > 0, 0, plain.opening),
        busy=plain.busy,
        beside=plain.beside + beside,
        fixed=plain.fixed,
        ok=plain.ok,
    )


def _jobs(gpu_groups: GpuGroups, nodes: NodeGroup) -> list[CrossGroupJob]:
    """Return every job across GPU groups, in each split, that the idle GPUs of a node of the group can hold."""
    bundle_groups, open_groups = gpu_groups.bundle_groups, gpu_groups.open_groups
    idle = [len(free) for free in nodes.free]
    jobs: list[CrossGroupJob] = []
    for k in np.flatnonzero((bundle_groups.gpus > 1) & (bundle_groups.milli == 1000)).tolist():
        most = tuple(n if open_groups.ok[room, k] else 0 for n, room in zip(idle, nodes.room, strict=True))
        jobs.extend((k, split) for split in _splits(int(bundle_groups.gpus[k]), most))
    return jobs


@lru_cache(maxsize=10_000)
def _splits(gpus: int, most: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return every way to split ``gpus`` over two or more parts that hold up to ``most`` each."""
    splits = product(*(range(min(n, gpus) + 1) for n in most))
    return tuple(split for split in splits if sum(split) == gpus and sum(part > 0 for part in split) > 1)


def _sets(gpu_groups: GpuGroups, nodes: NodeGroup, jobs: list[CrossGroupJob]) -> Iterator[tuple[CrossGroupJob, ...]]:
    """Yield every multiset of ``jobs`` that the idle GPUs of a node of the group can hold."""
    bundle_groups, idle = gpu_groups.bundle_groups, [len(free) for free in nodes.free]
    count = np.zeros(len(bundle_groups), dtype=np.int64)

    def extend(first: int, left: list[int], held: tuple[CrossGroupJob, ...]) -> Iterator[tuple[CrossGroupJob, ...]]:
        for i in range(first, len(jobs)):
            k, split = jobs[i]
            rest = [n - part for n, part in zip(left, split, strict=True)]
            if count[k] < bundle_groups.supply[k] and min(rest) >= 0:
                count[k] += 1
                yield (*held, jobs[i])
                yield from extend(i, rest, (*held, jobs[i]))
                count[k] -= 1

    return extend(0, idle, ())


def _cost(gpu_groups: GpuGroups, nodes: NodeGroup, pattern: tuple[CrossGroupJob, ...]) -> int:
    """What a set costs but for the paths inside the node: neighbours once each, busy GPUs, the way out."""
    bundle_groups, open_groups = gpu_groups.bundle_groups, gpu_groups.open_groups
    total = 0
    inside = [
        (int(bundle_groups.profile[bundle_group]), frozenset(r for r, part in enumerate(split) if part))
        for bundle_group, split in pattern
    ]
    for i, (profile, selected) in enumerate(inside):
        for other, theirs in (*inside[:i], *nodes.jobs):
            if selected & theirs:
                total += int(bundle_groups.pair[profile, other])
    for r, open_group in enumerate(nodes.room):
        held = sum(split[r] for _, split in pattern)
        total += int(open_groups.opening[open_group]) * (held > 0) - int(open_groups.busy[open_group]) * held
    for bundle_group, _ in pattern:
        crossing = int(
            bundle_groups.gpus[bundle_group] * (bundle_groups.total[bundle_group] - bundle_groups.gpus[bundle_group])
        )
        total += int(bundle_groups.traffic[bundle_group]) * crossing * nodes.leave
    return total + nodes.opening


class _Distances:
    """Paths between the GPUs of jobs across the GPU groups of a node."""

    def __init__(self, gpu_groups: GpuGroups, nodes: NodeGroup) -> None:
        topology = gpu_groups.problem.topology
        self._distance = topology.distance[int(topology.node_machine[nodes.nodes[0]])]
        self._free, self._bundle_groups = nodes.free, gpu_groups.bundle_groups
        self._choices: dict[tuple[int, ...], list[tuple[int, frozenset[int]]]] = {}

    def choices(self, split: tuple[int, ...]) -> list[tuple[int, frozenset[int]]]:
        """Sets of idle GPUs, split over the GPU groups as given, each with the sum of its paths, the shortest first."""
        if split not in self._choices:
            parts = product(*(combinations(free, n) for free, n in zip(self._free, split, strict=True)))
            gpus = np.array([[gpu for part in choice for gpu in part] for choice in parts], dtype=np.int64)
            paths = self._distance[gpus[:, :, None], gpus[:, None, :]].sum(axis=(1, 2)) // 2
            order = np.argsort(paths, kind="stable")
            held = [frozenset(row) for row in gpus[order].tolist()]
            self._choices[split] = list(zip(paths[order].tolist(), held, strict=True))
        return self._choices[split]

    def least(self, cross_group_job: CrossGroupJob) -> int:
        """Cost of the shortest paths that a job can have if it is alone."""
        bundle_group, split = cross_group_job
        return int(self._bundle_groups.traffic[bundle_group]) * self.choices(split)[0][0]


def distribute(
    gpu_groups: GpuGroups, nodes: NodeGroup, pattern: tuple[CrossGroupJob, ...]
) -> tuple[int, list[frozenset[int]]]:
    """Return how much longer the paths of a set must be than its ``cost`` says, as cost, and its positions then."""
    distances = _Distances(gpu_groups, nodes)
    traffic = [int(gpu_groups.bundle_groups.traffic[bundle_group]) for bundle_group, _ in pattern]
    choices = [distances.choices(split) for _, split in pattern]
    rest = [0] * (len(pattern) + 1)
    for i in reversed(range(len(pattern))):
        rest[i] = rest[i + 1] + traffic[i] * choices[i][0][0]
    best: list[tuple[int, list[frozenset[int]]]] = []

    def open_group(i: int, cost: int, taken: frozenset[int], held: list[frozenset[int]]) -> None:
        if best and cost + rest[i] >= best[0][0]:
            return
        if i == len(pattern):
            best[:] = [(cost, list(held))]
            return
        for paths, gpus in choices[i]:
            if not gpus & taken:
                open_group(i + 1, cost + traffic[i] * paths, taken | gpus, [*held, gpus])

    open_group(0, 0, frozenset(), [])
    cost, held = best[0]
    return cost - rest[0], held
