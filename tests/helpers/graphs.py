"""Graphs, distances and brute force for tests of the mapping."""

from itertools import permutations

import numpy as np

from placeopt.problem import IntArray


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
    ways = rng.integers(0, 9, len(parents))
    above = [_path(parents, v) for v in range(inner, inner + n)]
    return np.array([[sum(int(ways[v]) for v in one ^ other) for other in above] for one in above])


def _path(parents: list[int], vertex: int) -> set[int]:
    """Return the vertex and all above it but the root, each for its edge upwards."""
    return set() if parents[vertex] < 0 else {vertex} | _path(parents, parents[vertex])


def mapping_cost(weights: IntArray, distances: IntArray, order: IntArray, size: int = 1, inside: int = 0) -> int:
    """Return the traffic between the GPUs of all pairs of ranks, and inside ranks, each times its distance."""
    rank = np.repeat(np.arange(len(weights)), size)
    traffic = np.where(rank[:, None] == rank, inside, weights[np.ix_(rank, rank)])
    return int((traffic * distances[np.ix_(order, order)]).sum()) // 2


def least_mapping(
    weights: IntArray, distances: IntArray, groups: IntArray | None = None, size: int = 1, inside: int = 0
) -> int:
    """Return the least cost over all orders that keep the GPUs of a rank in one group."""
    groups = np.zeros(len(distances), dtype=np.int64) if groups is None else groups
    costs = []
    for order in permutations(range(len(distances))):
        held = np.array(order).reshape(-1, size)
        nodes = groups[held]
        if (nodes == nodes[:, :1]).all() and (np.diff(held, axis=1) > 0).all():
            costs.append(mapping_cost(weights, distances, held.reshape(-1), size, inside))
    return min(costs)
