"""Exact mapping for any distances: depth first branch and bound, hundreds of partial orders at a time."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray, MappingProblem

MAX_STEPS = 20_000
"""Steps of backtracking for one pair; a symmetry not found by then is one not used."""

BATCH = 256
"""Partial orders bounded at once."""

MAX_TASKS = 16
"""A bound takes an array of n x n numbers a partial order."""


def orbits(distances: FloatArray, groups: IntArray) -> list[list[int]]:
    """
    Partition the GPUs: two of one part are exchanged by a permutation that keeps all distances and groups together.

    Each pair of GPUs with equal sorted distances is tried by backtracking; parts may be too small, never too large.
    """
    n = len(distances)
    part = list(range(n))
    same = groups[:, None] == groups
    profile = np.sort(distances, axis=1)
    for a in range(n):
        for b in range(a):
            if part[a] == part[b] or (profile[a] != profile[b]).any():
                continue
            if _symmetry(distances, same, a, b):
                old, new = part[a], part[b]
                part = [new if p == old else p for p in part]
    return [[p for p in range(n) if part[p] == label] for label in dict.fromkeys(part)]


def _symmetry(distances: FloatArray, same: np.ndarray, start: int, image: int) -> bool:
    """Return whether a permutation that maps ``start`` to ``image`` keeps distances and groups."""
    n = len(distances)
    sequence = [start, *(p for p in range(n) if p != start)]
    images: list[int] = []
    steps = 0

    def extend(candidates: list[int]) -> bool:
        nonlocal steps
        if len(images) == n:
            return True
        p = sequence[len(images)]
        done = sequence[: len(images)]
        for q in candidates:
            steps += 1
            if steps > MAX_STEPS:
                return False
            if (
                q in images
                or (distances[p, done] != distances[q, images]).any()
                or (same[p, done] != same[q, images]).any()
            ):
                continue
            images.append(q)
            if extend(list(range(n))):
                return True
            images.pop()
        return False

    return extend([image])


@dataclass(frozen=True, eq=False)
class _Open:
    """Partial orders of one depth with their lower bounds, best first."""

    places: IntArray  # (B, depth) GPUs of the tasks placed, in the order in which tasks are placed
    bounds: FloatArray  # (B,)


def branch(case: MappingProblem, order: IntArray, *, deadline: float, lower: float = 0.0) -> tuple[IntArray, int]:
    """
    Search all orders; return the best one and a proven lower bound, which is its cost unless the deadline came first.

    ``order`` is a known order; reaching the proven bound ``lower`` ends the search. Tasks are placed in a fixed order,
    each the one with the most traffic to those before. A partial order is bounded by Gilmore (1962) and Lawler (1963):
    an assignment problem whose entry (task, GPU) is the cost to what is placed plus half the product of the task's
    weights, falling, and the GPU's distances, rising. The assignment is itself bounded by reduction of rows, then
    columns, which arrays do for a batch at once; exact duals would prune more and cost 100 times as much in Python.
    Ranks of one GPU: the first is tried on one GPU of each orbit of the distances' symmetries. Ranks of several: their
    GPUs ascend.
    """
    search = _BranchAndBound(case, order)
    stack = [_Open(np.empty((1, 0), dtype=np.int64), np.zeros(1))]
    while stack and search.cost > lower:
        if time.monotonic() >= deadline:
            rest = min((float(part.bounds.min()) for part in stack), default=np.inf)
            return search.best, max(round(lower), min(search.cost, int(np.ceil(rest - 1e-6))))
        part = stack.pop()
        keep = part.bounds > search.cost - 1
        places, bounds = part.places[~keep], part.bounds[~keep]
        if len(places) > BATCH:
            stack.append(_Open(places[BATCH:], bounds[BATCH:]))
        if len(places):
            children = search.expand(places[:BATCH])
            if len(children.places):
                stack.append(children)
    return search.best, search.cost


class _BranchAndBound:
    def __init__(self, case: MappingProblem, order: IntArray) -> None:
        self.case, self.best, self.cost = case, order, case.cost(order)
        self.sequence = _sequence(case)
        n = case.num_tasks
        self.traffic = case.traffic[np.ix_(self.sequence, self.sequence)]
        self.rank = self.sequence // case.size
        self.falling = []  # by depth: weights of each later task to the others, (m, m - 1)
        for m in range(n, 0, -1):
            rest = self.traffic[n - m :, n - m :][~np.eye(m, dtype=bool)].reshape(m, m - 1)
            self.falling.append(-np.sort(-rest, axis=1))
        self.first = np.full(n, case.size > 1)  # where GPUs of a rank ascend, its first is not free to be exchanged
        if case.size == 1:
            self.first[[min(orbit) for orbit in orbits(case.distances, case.groups)]] = True

    def expand(self, places: IntArray) -> _Open:
        """Place the next task of each partial order everywhere it may go; bound what results."""
        case, depth = self.case, places.shape[1]
        n = case.num_tasks
        free = np.ones((len(places), n), dtype=bool)
        np.put_along_axis(free, places, False, axis=1)
        if depth == 0:
            free &= self.first
        elif self.rank[depth] == self.rank[depth - 1]:
            last = places[:, -1]
            free &= (case.groups == case.groups[last][:, None]) & (np.arange(n) > last[:, None])
        parent, gpu = np.nonzero(free)
        children = np.hstack([places[parent], gpu[:, None]])
        bounds = self.bound(children)
        keep = bounds <= self.cost - 1 + 1e-6
        children, bounds = children[keep], bounds[keep]
        if depth + 1 == n:
            if len(children):
                best = int(bounds.argmin())
                self.cost = round(float(bounds[best]))
                self.best = np.empty(n, dtype=np.int64)
                self.best[self.sequence] = children[best]
            return _Open(children[:0], bounds[:0])
        order = np.argsort(bounds, kind="stable")
        return _Open(children[order], bounds[order])

    def bound(self, places: IntArray) -> FloatArray:
        """Shape (B,): Gilmore-Lawler bounds of partial orders; the cost where all tasks are placed."""
        count, depth = places.shape
        n, distances = self.case.num_tasks, self.case.distances
        held = distances[places[:, :, None], places[:, None, :]]  # (B, d, d)
        fixed = (held * self.traffic[:depth, :depth]).sum(axis=(1, 2)) / 2
        if depth == n:
            return np.asarray(fixed)
        free = np.ones((count, n), dtype=bool)
        np.put_along_axis(free, places, False, axis=1)
        gpus = np.nonzero(free)[1].reshape(count, n - depth)
        to_placed = self.traffic[depth:, :depth] @ distances[places[:, :, None], gpus[:, None, :]]  # (B, tasks, gpus)
        between = distances[gpus[:, :, None], gpus[:, None, :]]
        rising = np.sort(between, axis=2)[:, :, 1:]  # the first is the GPU itself
        costs = to_placed + (self.falling[depth] @ rising.transpose(0, 2, 1)) / 2
        rows = costs.min(axis=2, keepdims=True)
        columns = (costs - rows).min(axis=1)
        other = costs.min(axis=1, keepdims=True)
        rest = (costs - other).min(axis=2)
        by_task = rows.sum(axis=(1, 2)) + columns.sum(axis=1)
        by_gpu = other.sum(axis=(1, 2)) + rest.sum(axis=1)
        return np.asarray(fixed + np.maximum(by_task, by_gpu))


def _sequence(case: MappingProblem) -> IntArray:
    """Ranks in the order in which they are placed, as tasks: the busiest first, then the most tied to those before."""
    weights = case.weights
    left = list(range(len(weights)))
    ties = np.zeros(len(weights))
    out: list[int] = []
    while left:
        rank = max(left, key=lambda r: (ties[r], weights[r].sum(), -r))
        left.remove(rank)
        out.append(rank)
        ties += weights[rank]
    return (np.array(out)[:, None] * case.size + np.arange(case.size)).reshape(-1)
