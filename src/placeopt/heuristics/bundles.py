"""
Counts made into placements: jobs on nodes chosen elsewhere, and jobs counted by node class with GPU fillings.

A bundle is the jobs that share one GPU. The heaviest job goes into the lightest bundle, so that bundles weigh alike;
the heaviest bundle goes to the node with most left per idle GPU, so that nodes do. Where a bundle fits on no node,
``heuristics.exchange`` makes room for it.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import add, ge, sub, truediv

import numpy as np

from placeopt.errors import OutOfTime
from placeopt.heuristics.candidates import Candidates, never
from placeopt.heuristics.exchange import BundleItem, exchange
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import Allocation, IntArray, Move, Placement, Problem, State
from placeopt.terms.rules import fits_beyond_gpus

ANY = -1
"""In place of a share: of GPUs none is needed."""


@dataclass(frozen=True)
class BundleQuota:
    """What the nodes of a class shall take: jobs by option, and GPUs to be filled alike."""

    node_class: int
    jobs: tuple[tuple[int, tuple[int, ...]], ...]  # (option, jobs)
    fillings: tuple[tuple[int, int, tuple[int, ...]], ...]  # (number of GPUs, their free share, sizes of the slots)


def realise(
    state: State, quotas: list[BundleQuota], over: Callable[[], bool] = never
) -> tuple[list[tuple[int, Placement]], Counter[tuple[int, int]]]:
    """
    Place the jobs of ``quotas`` on the nodes of their classes, as many as fit; ``state`` is not changed.

    Returns the placements by job, and how many jobs found no room, by (node class, option). Only options of one bundle
    are placed, with shares of one GPU, whole GPUs, or none. A node's resources and the shares of its GPUs are kept; no
    other rule is checked. Once ``over()`` is true, no further class of nodes is begun and nothing more is exchanged.
    """
    options = _Options(state.problem)
    groups: list[_Nodes] = []
    unplaced: list[BundleItem] = []
    for quota in quotas:
        nodes = _Nodes(state, np.flatnonzero(state.problem.node_class == quota.node_class), options)
        items = _bundle_items(options, quota, nodes)
        unplaced.extend(items if over() else (item for item in items if not nodes.place(item)))
        groups.append(nodes)
    if unplaced and not over():  # exchanged between all node classes
        free = [row for nodes in groups for row in nodes.free]
        idle = [shares for nodes in groups for shares in nodes.idle]
        held = [items for nodes in groups for items in nodes.held]
        unit = np.mean([nodes.unit for nodes in groups], axis=0).tolist()
        node_class = np.concatenate([nodes.node_class for nodes in groups])
        unplaced = exchange(node_class, free, idle, held, unplaced, unit, over)
    short = Counter((item.home, o) for item in unplaced for _, o in item.jobs)
    return [placement for nodes in groups for placement in nodes.placements()], short


class _Options:
    """What bundles look up of options, as plain numbers: resources that no option needs are left out."""

    def __init__(self, problem: Problem) -> None:
        options = problem.options
        needed = np.flatnonzero(options.demand.max(axis=0, initial=0))
        self.resources: IntArray = needed if len(needed) else np.zeros(1, dtype=np.int64)
        self.demand: list[list[int]] = options.demand[:, self.resources].tolist()
        self.workers: list[int] = options.bundle_workers.tolist()
        self.bundles: list[int] = options.bundles.tolist()
        self.gpus: list[int] = options.bundle_gpus.tolist()
        self.milli: list[int] = options.milli.tolist()
        self.value: list[int] = options.value.tolist()
        self._node_class_ok = options.node_class_ok
        self.anywhere = frozenset(range(options.node_class_ok.shape[1]))
        self._sets: dict[bytes, frozenset[int]] = {}
        self._allowed: dict[int, frozenset[int]] = {}

    def allowed(self, option: int) -> frozenset[int]:
        """Return the classes of nodes on which an option may run; options alike share the object."""
        known = self._allowed.get(option)
        if known is None:
            row = self._node_class_ok[option]
            known = self._sets.setdefault(row.tobytes(), frozenset(np.flatnonzero(row).tolist()))
            known = self._allowed[option] = self.anywhere if known == self.anywhere else known
        return known


def _bundle_items(options: _Options, quota: BundleQuota, nodes: _Nodes) -> list[BundleItem]:
    """Jobs of several GPUs, jobs without, then bundles; the heaviest first."""
    shared: list[tuple[float, int, int, int]] = []
    others: list[BundleItem] = []
    for o, jobs in quota.jobs:
        gpus, milli = options.gpus[o], options.milli[o]
        if options.bundles[o] > 1 or (gpus > 1 and milli < 1000):
            continue
        need = [options.workers[o] * amount for amount in options.demand[o]]
        weight = nodes.weight(need)
        if gpus == 1:
            shared.extend((-weight, job, o, milli) for job in jobs)
        else:
            value, allowed = options.value[o], options.allowed(o)
            others.extend(
                BundleItem(gpus, 1000, [(job, o)], need, weight, value, quota.node_class, allowed) for job in jobs
            )
    others.sort(key=lambda item: (-item.gpus, -item.weight))
    bundles = _bundles(options, quota, sorted(shared), nodes)
    bundles.sort(key=lambda item: -item.weight)
    return others + bundles


def _bundles(
    options: _Options, quota: BundleQuota, shared: list[tuple[float, int, int, int]], nodes: _Nodes
) -> list[BundleItem]:
    """One bundle a GPU; ``shared`` are (-weight, job, option, share), the heaviest first."""
    none = [0] * len(options.resources)
    bundles: list[BundleItem] = []
    slots: list[dict[int, int]] = []
    lightest: dict[int, list[tuple[float, int]]] = defaultdict(list)  # size -> heap of (weight, bundle)
    for count, share, sizes in quota.fillings:
        numbers = Counter(sizes)
        for b in range(len(bundles), len(bundles) + count):
            for size in numbers:
                lightest[size].append((0.0, b))
            slots.append(dict(numbers))
            bundles.append(BundleItem(1, share, [], none, 0.0, 0, quota.node_class, options.anywhere))
    for _, job, o, size in shared:
        heap = lightest[size]
        while heap and heap[0][0] < bundles[heap[0][1]].weight:  # it has grown through another size
            heapq.heapreplace(heap, (bundles[heap[0][1]].weight, heap[0][1]))
        if not heap:
            continue
        b = heap[0][1]
        bundle, left = bundles[b], slots[b]
        bundle.jobs.append((job, o))
        bundle.need = list(map(add, bundle.need, options.demand[o]))
        bundle.weight = nodes.weight(bundle.need)
        bundle.worth += options.value[o]
        allowed = options.allowed(o)
        if allowed is not bundle.allowed:
            bundle.allowed &= allowed
        left[size] -= 1
        if left[size]:
            heapq.heapreplace(heap, (bundle.weight, b))
        else:
            heapq.heappop(heap)
    return [bundle for bundle in bundles if bundle.jobs]


class _Nodes:
    """Free capacity of the nodes of a class, and what was put on them."""

    def __init__(self, state: State, nodes: np.ndarray, options: _Options) -> None:
        self.nodes: list[int] = nodes.tolist()
        self.node_class = state.problem.node_class[nodes]
        self._workers = options.workers
        free = state.node_free[nodes][:, options.resources]
        self.free: list[list[int]] = free.tolist()
        self.held: list[list[BundleItem]] = [[] for _ in self.nodes]
        start, share = state.problem.first_gpu, state.gpu_free_milli.tolist()
        self.gpus: list[dict[int, list[int]]] = []  # of each node, by free share
        for node in self.nodes:
            by_share: dict[int, list[int]] = {}
            for gpu in range(start[node], start[node + 1]):
                by_share.setdefault(share[gpu], []).append(gpu)
            self.gpus.append(by_share)
        self.idle = [{s: len(gpus) for s, gpus in by_share.items()} for by_share in self.gpus]
        self._num_idle = [sum(idle.values()) for idle in self.idle]
        parts = max(sum(self._num_idle), len(self.nodes))
        total: list[int] = np.maximum(free, 1).sum(axis=0).tolist()
        self.unit = [t / parts for t in total]  # of each resource, what there is for a GPU
        self._rank = [-self._room(n) for n in range(len(self.nodes))]
        self._roomiest: dict[int, list[tuple[float, int]]] = {}  # by free share, and ``ANY`` for what needs no GPU
        self._refused: dict[tuple[int, int], list[list[int]]] = defaultdict(
            list
        )  # by GPUs and share, what fits nowhere

    def weight(self, need: list[int]) -> float:
        """Largest share of a resource, relative to the mean amount per GPU."""
        share: float = max(map(truediv, need, self.unit))
        return share

    def _room(self, n: int) -> float:
        """Free amount of the scarcest resource per idle GPU."""
        room: float = min(map(truediv, self.free[n], self.unit)) / (self._num_idle[n] or 1)
        return room

    def place(self, item: BundleItem) -> bool:
        """Put the item onto the node with most left per idle GPU on which it fits; nodes never gain room."""
        gpus, share, need = item.gpus, item.share if item.gpus else ANY, item.need
        refused = self._refused[gpus, share]
        if any(all(map(ge, need, least)) for least in refused):
            return False
        passed: list[tuple[float, int]] = []
        roomiest = self._roomiest_with(share)
        placed = False
        while roomiest and not placed:
            rank, n = roomiest[0]
            idle = self.idle[n].get(share, 0)
            if rank != self._rank[n] or (gpus and not idle):
                heapq.heappop(roomiest)  # it has another rank now, or no such GPU any more
                continue
            placed = idle >= gpus and all(map(ge, self.free[n], need))
            if placed:
                self._take(n, item)
            else:
                passed.append(heapq.heappop(roomiest))
        for entry in passed:
            heapq.heappush(roomiest, entry)
        if not placed:
            refused.append(need)
        return placed

    def _roomiest_with(self, share: int) -> list[tuple[float, int]]:
        """Return the heap of the nodes with an idle GPU of this share, by rank."""
        if share not in self._roomiest:
            self._roomiest[share] = [
                (rank, n) for n, rank in enumerate(self._rank) if share == ANY or self.idle[n].get(share, 0)
            ]
            heapq.heapify(self._roomiest[share])
        return self._roomiest[share]

    def _take(self, n: int, item: BundleItem) -> None:
        """Put the item onto a node, whose rank changes."""
        self.free[n] = list(map(sub, self.free[n], item.need))
        self.held[n].append(item)
        idle = self.idle[n]
        if item.gpus:
            idle[item.share] -= item.gpus
            self._num_idle[n] -= item.gpus
        rank = -self._room(n)
        if rank == self._rank[n]:
            return
        self._rank[n] = rank
        for share, roomiest in self._roomiest.items():
            if share == ANY or idle.get(share, 0):
                heapq.heappush(roomiest, (rank, n))

    def placements(self) -> Iterator[tuple[int, Placement]]:
        """Yield job and placement; items of several GPUs choose first."""
        for node, gpus, items in zip(self.nodes, self.gpus, self.held, strict=True):
            for item in sorted(items, key=lambda i: -i.gpus):
                pool = gpus.get(item.share, [])
                taken, gpus[item.share] = tuple(pool[: item.gpus]), pool[item.gpus :]
                for job, option in item.jobs:
                    yield job, Placement(option, (node,) * self._workers[option], taken)


def assign_gpus(
    problem: Problem, wanted: Iterable[tuple[int, int, tuple[int, ...]]], over: Callable[[], bool] = never
) -> Allocation:
    """
    Return the running jobs, and of (job, option, one node a bundle) each that every rule allows, one after the other.

    GPUs are chosen as greedy does. A job that finds no room there, or was placed before, is skipped, and so are all
    that remain once ``over()`` is true.
    """
    state = State(problem)
    candidates = Candidates(state, score_named("first_fit", problem), over)
    workers = problem.options.bundle_workers.tolist()
    gpus = problem.options.gpus.tolist()
    for job, option, nodes in wanted:
        if state.placements[job] is not None:
            continue
        each = workers[option]
        held: list[int] = []
        try:
            for node in nodes:
                held.extend(candidates.choose_gpus(option, node, frozenset(held)))
        except OutOfTime:
            break
        if len(held) != gpus[option] * each * len(nodes):
            continue
        placement = Placement(option, tuple(node for node in nodes for _ in range(each)), tuple(held))
        if fits_beyond_gpus(state, job, placement):
            candidates.apply(Move(job, placement))
    return state.allocation()
