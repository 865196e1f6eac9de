"""Graphs, distances and brute force for tests of the mapping."""

from itertools import permutations

import numpy as np

from placeopt.problem import IntArray
from strategies import Choice, make_distances


def graph(k: int, edges: dict[tuple[int, int], int]) -> IntArray:
    """Shape (k, k): the weights of ``edges``."""
    out = np.zeros((k, k), dtype=np.int64)
    for (a, b), weight in edges.items():
        out[a, b] = out[b, a] = weight
    return out


def ring(k: int) -> IntArray:
    """Rank r talks to r + 1."""
    return graph(k, {(r, (r + 1) % k): 1 for r in range(k)})


def any_distances(choice: Choice, kind: str, groups: IntArray) -> IntArray:
    """
    Distances of one kind, symmetric, zero diagonal.

    ``tree``: any tree; ``nodes``: any matrix in each group, and a way out per GPU and group; ``any``: any matrix.
    """
    n = len(groups)
    table = make_distances(choice, n, low=1, high=4)
    if kind == "any":
        return table
    if kind == "nodes":
        out = [choice.number(0, 8) for _ in range(groups.max() + 1)]
        way = np.array([choice.number(0, 2) + out[group] for group in groups])
        ways = way[:, None] + way
        np.fill_diagonal(ways, 0)
        return np.where(groups[:, None] == groups, table, ways)
    inner = choice.number(1, 4)
    above: list[set[int]] = [set()]  # edges from each vertex up to the root
    for vertex in range(1, inner + n):
        above.append(above[choice.number(0, min(vertex, inner) - 1)] | {vertex})
    ways = [choice.number(0, 8) for _ in above]
    return np.array([[sum(ways[edge] for edge in one ^ other) for other in above[inner:]] for one in above[inner:]])


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
