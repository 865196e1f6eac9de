"""Proven lower bounds on the cost of any order: cuts over the tree of blocks, or Gilmore and Lawler's."""

from __future__ import annotations

import time
from collections import defaultdict

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.blocks import Block, Blocks
from placeopt.rank_mapping.case import FloatArray, MappingProblem

ASCENT_STEPS = 32
"""Steps that improve the bound of a partition."""

SLACK = 1e-6
"""What a bound computed in floating point gives away before it is rounded up."""


def cut_bound(case: MappingProblem, blocks: Blocks, deadline: float = np.inf) -> int:
    """
    Return a bound: over all blocks, the least traffic that can leave as many tasks, times the weight of the way out.

    Two GPUs that meet at a star pay its distance. That is the sum over all blocks that one of them leaves of half of
    what the distance grows by there; so an order pays for each block half of the growth times the traffic that leaves
    the block's tasks. Ways out of single GPUs are exact: traffic of tasks and lengths, one falling, one rising. The
    distances of a table count as its least. Blocks of one depth that hold all tasks are bounded together as far as
    they grow alike; where nodes hold whole ranks, in the graph of ranks. What is not computed by the deadline is left
    out.
    """
    n, lengths = case.num_tasks, blocks.out.copy()
    levels: dict[int, list[tuple[IntArray, float]]] = defaultdict(list)  # by depth: blocks and half of their growth

    def visit(block: Block, above: float, depth: int) -> None:
        apart, gpus = block.apart, np.array(block.gpus)
        if block.is_table:
            apart = float(blocks.inner[np.ix_(gpus, gpus)][~np.eye(len(gpus), dtype=bool)].min())
        if not block.children:
            lengths[gpus] += (apart if block.is_table else above) / 2
        if len(gpus) < n:
            levels[depth].append((gpus, (above - apart) / 2 if len(gpus) > 1 else float(lengths[gpus[0]])))
        for child in block.children:
            visit(child, apart, depth + 1)

    def exact() -> float:
        return float(np.sort(case.traffic.sum(axis=1)) @ -np.sort(-lengths))

    visit(blocks.root, 0.0, 0)
    total, least = 0.0, [least_cut(case.traffic, deadline), least_cut(case.weights, deadline) * case.size**2]
    for level in levels.values():
        sizes = np.array([len(gpus) for gpus, _ in level])
        several = np.array([growth for gpus, growth in level if len(gpus) > 1])
        whole = all(case.holds_groups(gpus) for gpus, _ in level)
        total += float(several.sum()) * least[whole]
        common = min(growth for _, growth in level)
        if len(several) and sizes.sum() == n and common > 0:
            graph = case.weights * case.size**2 if whole else case.traffic
            together = partition_bound(graph, sizes // case.size if whole else sizes, deadline)
            before = exact()
            alone = [int(gpus[0]) for gpus, _ in level if len(gpus) == 1]
            gain = common * (together - len(several) * least[whole])
            lengths[alone] -= common
            if exact() + gain > before:
                total += gain
            else:
                lengths[alone] += common
    return max(0, int(np.ceil(total + exact() - SLACK)))


def least_cut(weights: FloatArray, deadline: float = np.inf) -> float:
    """
    Least traffic between any set of vertices, neither empty nor all, and the rest. At least two vertices.

    Stoer and Wagner (1997): in an order where each vertex has the most weight to those before, the last one alone is a
    least cut between itself and the one before; merge the two and repeat. ``O(n^2)`` array operations of length n
    (networkx's takes 20 s for a dense graph of 300 vertices). 0 if the deadline comes first.
    """
    matrix = weights.copy()
    best = np.inf
    for size in range(len(matrix), 1, -1):
        if time.monotonic() >= deadline:
            return 0.0
        ties = matrix[0].copy()
        ties[0] = -1
        before, last = 0, 0
        for _ in range(size - 1):
            before, last = last, int(ties.argmax())
            cut = ties[last]
            ties = np.where(ties < 0, -1, ties + matrix[last])
            ties[last] = -1
        best = min(best, float(cut))
        matrix[before] += matrix[last]
        matrix[:, before] += matrix[:, last]
        matrix[before, before] = 0
        matrix = np.delete(np.delete(matrix, last, axis=0), last, axis=1)
    return best


def partition_bound(weights: FloatArray, sizes: IntArray, deadline: float = np.inf) -> float:
    """
    At least this much traffic leaves the sets of a partition into sets of ``sizes``, summed over the sets.

    With X the sets' indicator columns, L the Laplacian and d numbers that sum to 0, the sum of cuts is tr X'LX = tr
    X'(L + diag d)X, so it is at least the sum of sizes, falling, times the smallest eigenvalues of L + diag d, rising
    (Donath and Hoffman 1973). Where all sizes are equal, the constant vector is left out, and one size (Rendl and
    Wolkowicz 1995). d is improved by a few steps of subgradient ascent; every d gives a bound.
    """
    n, norms = len(weights), -np.sort(-sizes)
    laplacian, basis = np.diag(weights.sum(axis=1)) - weights, np.eye(n)
    if norms[0] == norms[-1]:
        basis = np.linalg.qr(np.column_stack([np.ones(n), basis[:, 1:]]))[0][:, 1:]  # (n, n - 1), off the constant
        norms = norms[1:]
    d, best, step = np.zeros(n), 0.0, weights.sum(axis=1).mean()
    for _ in range(ASCENT_STEPS):
        if time.monotonic() >= deadline:
            break
        values, vectors = np.linalg.eigh(basis.T @ (laplacian + np.diag(d)) @ basis)
        bound = float(norms @ values[: len(norms)])
        if bound <= best:
            step /= 2
        best = max(best, bound)
        slope = (basis @ vectors[:, : len(norms)]) ** 2 @ norms
        slope -= slope.mean()
        d = d + step * slope / max(float(np.linalg.norm(slope)), SLACK)
    unit = 2 * max(1, int(np.gcd.reduce(weights.astype(np.int64), axis=None)))  # each cut has two sides
    return float(np.ceil(best * (1 - SLACK) / unit - SLACK)) * unit


def gilmore_lawler(flows: IntArray, distances: IntArray) -> int:
    """
    Return the bound of Gilmore (1962) and Lawler (1963) on the sum over ordered pairs of flow times distance.

    An assignment problem whose entry (item, place) is the item's flows, falling, times the place's distances, rising,
    and the product of both diagonals. (n, n) integers >= 0 whose sums of products stay below 2^47.
    """
    from ortools.graph.python.linear_sum_assignment import SimpleLinearSumAssignment  # scipy's takes 2 s to load

    n = len(flows)
    off = ~np.eye(n, dtype=bool)
    falling = -np.sort(-flows[off].reshape(n, n - 1), axis=1)
    rising = np.sort(distances[off].reshape(n, n - 1), axis=1)
    item, place = np.divmod(np.arange(n * n), n)
    costs = falling @ rising.T + np.outer(flows.diagonal(), distances.diagonal())
    assignment = SimpleLinearSumAssignment()
    assignment.add_arcs_with_cost(item, place, costs.ravel())
    return int(assignment.optimal_cost()) if assignment.solve() == assignment.OPTIMAL else 0
