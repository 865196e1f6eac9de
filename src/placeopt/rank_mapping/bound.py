"""Proven lower bounds on the cost of any order: least cuts over the tree of blocks, and Gilmore and Lawler's."""

from __future__ import annotations

import time

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray, MappingProblem
from placeopt.rank_mapping.tree import Block, Tree

SLACK = 2.0**-20
"""What a bound computed in floating point gives away before it is rounded up."""


def cut_bound(case: MappingProblem, tree: Tree, deadline: float = np.inf) -> int:
    """
    Return a bound: over all blocks, the least traffic that can leave some of the tasks times the weight of the way out.

    Two GPUs that meet at a star pay its distance. That is the sum over all blocks that one of them leaves of half of
    what the distance grows by there; so an order pays for each block half of the growth times the traffic that leaves
    the block's tasks, which is a least cut of the graph or more: of the graph of ranks where the block holds whole
    ranks. Ways out of single GPUs are exact: traffic of tasks and lengths, one falling, one rising. The distances of a
    table count as its least. A cut that is not there by the deadline counts as 0. Tight on rings and chains.
    """
    lengths, growth = tree.out.copy(), {False: 0.0, True: 0.0}

    def visit(block: Block, above: float) -> None:
        if 1 < len(block.gpus) < case.num_tasks:
            growth[case.size > 1 and case.holds_groups(block.gpus)] += (above - block.apart) / 2
        if not block.children:
            lengths[block.gpus] += (block.apart if len(block.gpus) > 1 else above) / 2
        for child in block.children:
            visit(child, block.apart)

    visit(tree.root, 0.0)
    total = float(np.sort(case.traffic.sum(axis=1)) @ -np.sort(-lengths))
    for graph, weight in ((case.traffic, growth[False]), (case.weights * case.size**2, growth[True])):
        total += weight * least_cut(graph, deadline) if weight else 0
    return max(0, int(np.ceil(total - SLACK)))


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


def gilmore_lawler(flows: IntArray | FloatArray, distances: IntArray | FloatArray) -> int:
    """
    Return the bound of Gilmore (1962) and Lawler (1963) on the sum over ordered pairs of flow times distance.

    An assignment problem whose entry (item, place) is the item's flows, falling, times the place's distances, rising,
    and the product of both diagonals. (n, n) integers >= 0, n above 1, whose sums of products stay below 2^47. Takes a
    second for 1,024 items.
    """
    from ortools.graph.python.linear_sum_assignment import SimpleLinearSumAssignment  # scipy's takes 2 s to load

    n = len(flows)
    off = ~np.eye(n, dtype=bool)
    falling = -np.sort(-flows[off].reshape(n, n - 1), axis=1).astype(np.float64)  # floats: products run in BLAS
    rising = np.sort(distances[off].reshape(n, n - 1), axis=1).astype(np.float64)
    item, place = np.divmod(np.arange(n * n), n)
    costs = falling @ rising.T + np.outer(flows.diagonal(), distances.diagonal())
    assignment = SimpleLinearSumAssignment()
    assignment.add_arcs_with_cost(item, place, costs.ravel().astype(np.int64))
    return int(assignment.optimal_cost()) if assignment.solve() == assignment.OPTIMAL else 0
