"""A proven lower bound on the cost of any order: cuts over the edges of the hierarchy, or Gilmore and Lawler's."""

from __future__ import annotations

import time
from collections import defaultdict

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray, MappingProblem
from placeopt.rank_mapping.cuts import CutBounds
from placeopt.rank_mapping.hierarchy import Block, components

MAX_ASSIGNMENT = 128
"""Tasks up to which Gilmore and Lawler's bound is computed: about 0.3 s there."""


def least_assignment(costs: FloatArray, deadline: float = np.inf) -> float:
    """Least sum of one entry per row, no column twice; ``costs`` has shape (n, n), entries >= 0."""
    # At the deadline the dual variables so far, which bound the sum too, are returned. Exact where entries are
    # multiples of 1/2, as here. Shortest augmenting paths (Jonker and Volgenant 1987, without their start), one row
    # after the other: n^2 array operations of length n at worst.
    n = len(costs)
    u, v = np.zeros(n + 1), np.zeros(n + 1)
    row_of = np.full(n + 1, -1, dtype=np.int64)  # column -> row; the last column is where a path starts
    for row in range(n):
        if time.monotonic() >= deadline:
            break
        row_of[n] = row
        column = n
        least = np.full(n, np.inf)
        way = np.full(n, n, dtype=np.int64)
        used = np.zeros(n + 1, dtype=bool)
        while row_of[column] >= 0:
            used[column] = True
            i = row_of[column]
            reduced = costs[i] - u[i] - v[:n]
            better = (reduced < least) & ~used[:n]
            least[better], way[better] = reduced[better], column
            following = int(np.where(used[:n], np.inf, least).argmin())
            step = least[following]
            u[row_of[used]] += step
            v[used] -= step
            least[~used[:n]] -= step
            column = following
        while column != n:
            row_of[column] = row_of[way[column]]
            column = int(way[column])
    return float(u[:n].sum() + v[:n].sum())


def lower_bound(case: MappingProblem, root: Block, order: IntArray, deadline: float = np.inf) -> int:
    """Return the larger of both bounds, rounded up; what is not computed by the deadline is left out."""
    bounds = [cut_bound(case, root, order, deadline)]
    if case.num_tasks <= MAX_ASSIGNMENT and time.monotonic() < deadline:
        bounds.append(gilmore_lawler(case, deadline))
    return max(0, *(int(np.ceil(bound - 1e-6)) for bound in bounds))


def cut_bound(case: MappingProblem, root: Block, order: IntArray, deadline: float = np.inf) -> float:
    """
    Sum over the hierarchy's edges of weight x least traffic that leaves a set of the block's size.

    Tables are first replaced by the largest ultrametric below them, which is a tree; so distances only shrink. Blocks
    of one size that together hold all tasks are also bounded as a partition. Edges above single GPUs are exact: traffic
    of tasks and weights of edges, one falling, one rising. ``order`` is any order, the better the quicker: a level
    whose bound equals its cost there needs no dearer bound.
    """
    edges = [(block, weight) for block, weight in _edges(root, case.distances) if len(block.members) < case.num_tasks]
    levels: dict[tuple[int, bool], list[float]] = defaultdict(list)
    known: dict[tuple[int, bool], float] = defaultdict(float)
    for block, weight in edges:
        level = len(block.members), block.closed and case.size > 1
        levels[level].append(weight)
        held = np.isin(order, block.members)  # (n,) tasks in the block
        known[level] += float(case.traffic[np.ix_(held, ~held)].sum())
    g = case.size
    tasks = CutBounds(case.traffic, tuple(size for size, whole in levels if not whole), deadline)
    ranks = CutBounds(case.weights, tuple(size // g for size, whole in levels if whole), deadline)
    total = 0.0
    for (size, whole), weights in sorted(levels.items(), reverse=True):  # wide blocks weigh most: they go first
        if size == 1:
            lengths = np.array(weights + [0.0] * (case.num_tasks - len(weights)))
            total += float((np.sort(tasks.degrees) * -np.sort(-lengths)).sum())
        elif whole:
            total += g**2 * _level(ranks, size // g, weights, known[size, whole] / g**2)
        else:
            total += _level(tasks, size, weights, known[size, whole])
    return total


def gilmore_lawler(case: MappingProblem, deadline: float = np.inf) -> float:
    """Least assignment of tasks to GPUs at half the product of the task's weights, falling, and distances, rising."""
    falling, rising = -np.sort(-case.traffic, axis=1), np.sort(case.distances, axis=1)
    # the zero diagonal comes last among weights and first among distances
    return least_assignment(falling[:, :-1] @ rising[:, 1:].T / 2, deadline)


def _level(cuts: CutBounds, size: int, weights: list[float], known: float) -> float:
    """Bound of the edges above blocks of one size, whose cuts sum to ``known`` in some order."""
    positive = [w for w in weights if w > 0]
    total = sum(w * cuts.most(size) for w in weights if w < 0)
    common = 0.0
    if len(positive) * size == len(cuts.weights):  # they hold all tasks
        common = min(positive)
        total += common * cuts.shared(size, known)
    rest = sum(w - common for w in positive)
    return total + (rest * cuts.single(size) if rest else 0.0)


def _edges(block: Block, distances: FloatArray) -> list[tuple[Block, float]]:
    """Return all edges below ``block`` and its own, tables replaced by trees."""
    children, weight = block.children, block.weight
    if block.is_table:
        height, children = _ultrametric(np.array(block.members), distances)
        weight -= height
    below = [edge for child in children for edge in _edges(child, distances)]
    return [*below, (block, weight)] if weight else below


def _ultrametric(gpus: IntArray, distances: FloatArray) -> tuple[float, tuple[Block, ...]]:
    """Return height and children of the largest ultrametric below the distances: single linkage."""
    # Two GPUs are as far apart as the longest step of the path between them whose longest step is shortest; half of
    # that is the height of the block where they meet.
    inner = distances[np.ix_(gpus, gpus)]
    joined = next(t for t in np.unique(inner) if len(components(inner <= t)) == 1)
    children = []
    for part in components((inner < joined) | np.eye(len(gpus), dtype=bool)):
        height, below = (0.0, ()) if len(part) == 1 else _ultrametric(gpus[part], distances)
        children.append(Block(tuple(gpus[part].tolist()), below, weight=joined / 2 - height))
    return joined / 2, tuple(children)
