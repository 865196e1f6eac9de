"""Graphs, distances and brute force for tests of the mapping."""

from itertools import permutations

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import MappingProblem
from placeopt.topology.machine_distances import tree_distances


def graph(k: int, edges: dict[tuple[int, int], int]) -> IntArray:
    """Shape (k, k): the weights of ``edges``."""
    out = np.zeros((k, k), dtype=np.int64)
    for (a, b), weight in edges.items():
        out[a, b] = out[b, a] = weight
    return out


def ring(k: int) -> IntArray:
    """Rank r talks to r + 1."""
    return graph(k, {(r, (r + 1) % k): 1 for r in range(k)})


def random_graph(rng: np.random.Generator, k: int) -> IntArray:
    """Weights 0 to 3, a good half of them 0."""
    weights = np.triu(rng.integers(0, 4, (k, k)) * (rng.random((k, k)) < 0.6), 1)
    return np.asarray(weights + weights.T)


def random_distances(rng: np.random.Generator, kind: str, groups: IntArray) -> IntArray:
    """
    Distances of one kind, symmetric, zero diagonal.

    ``tree``: any tree; ``nodes``: any matrix in each group, and a way out per GPU and group; ``any``: any matrix.
    """
    n = len(groups)
    table = np.triu(rng.integers(1, 5, (n, n)), 1)
    table = table + table.T
    if kind == "any":
        return np.asarray(table)
    if kind == "nodes":
        way = rng.integers(0, 3, n) + rng.integers(0, 9, groups.max() + 1)[groups]
        out = np.where(groups[:, None] == groups, table, way[:, None] + way)
        np.fill_diagonal(out, 0)
        return out
    inner = int(rng.integers(1, 5))
    parents = [-1, *(int(rng.integers(0, v)) for v in range(1, inner)), *rng.integers(0, inner, n).tolist()]
    return tree_distances(np.array(parents), rng.integers(0, 9, len(parents)))[inner:, inner:]


def brute_force(case: MappingProblem) -> int:
    """Least cost over all orders that keep the GPUs of a rank in one group."""
    costs = []
    for order in permutations(range(case.num_tasks)):
        held = np.array(order).reshape(-1, case.size)
        nodes = case.groups[held]
        if (nodes == nodes[:, :1]).all() and (np.diff(held, axis=1) > 0).all():
            costs.append(case.cost(held.reshape(-1)))
    return min(costs)
