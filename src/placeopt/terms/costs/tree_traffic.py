"""Traffic between the members of a tree: what the communication cost adds to that inside each of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from placeopt.problem import IntArray, Placement, Problem
from placeopt.problem.tree import Tree


def tree_traffic(problem: Problem, tree: Tree, placed: Mapping[int, Placement]) -> int:
    """
    Return the weighted path between GPUs of different members; with edges, between all workers, ranked over the leaves.

    ``placed``: The members that run or start.
    """
    traffic, parts = tree.communication, _parts(problem, tree, placed)
    if traffic.edges:
        workers = [gpus for part in parts for gpus in part]
        inside = sum(_inside(problem, gpus) for gpus in workers) * traffic.weight
        ranks = ((*edge.ranks, edge.weight) for edge in traffic.edges if max(edge.ranks) < len(workers))
        return inside + sum(weight * _between(problem, workers[a], workers[b]) for a, b, weight in ranks)
    if not traffic.weight:
        return 0
    whole = [np.concatenate(part) for part in parts if part]
    pairs = ((one, other) for i, one in enumerate(whole) for other in whole[:i])
    return sum(traffic.weight * _between(problem, one, other) for one, other in pairs)


def most_tree_traffic(problem: Problem, tree: Tree) -> int:
    """Return a traffic that no placement of the tree exceeds, over the longest path of the cluster."""
    options, traffic = problem.options, tree.communication
    most = 0
    for member in tree.members:
        rows = list(problem.options_of(member))
        most += max((int(options.workers[o] * options.gpus[o]) for o in rows), default=0)
    pairs = most * (most - 1) // 2
    heaviest = max([traffic.weight, *(edge.weight for edge in traffic.edges)])
    return pairs * heaviest * problem.topology.max_distance


def _parts(problem: Problem, tree: Tree, placed: Mapping[int, Placement]) -> list[list[IntArray]]:
    """Return the GPUs of each worker, member by member in the order of the leaves."""
    if not placed:
        return []
    form = tree.forms[problem.options.name[next(iter(placed.values())).option]]
    members = [member for _, of_leaf in form.leaves for member in of_leaf if member in placed]
    return [np.split(np.array(placed[m].gpus, dtype=np.int64), len(placed[m].nodes)) for m in members]


def _inside(problem: Problem, gpus: IntArray) -> int:
    return int(problem.topology.pair_distances(gpus).sum()) // 2


def _between(problem: Problem, one: IntArray, other: IntArray) -> int:
    return int(problem.topology.distances(one[:, None], other[None, :]).sum()) if len(one) and len(other) else 0
