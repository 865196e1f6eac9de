"""Nodes that must stay in one part, and parts of like size made of them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import networkx as nx
import numpy as np

from placeopt.model import Instance

Group = tuple[int, ...]
"""Nodes by number."""


def groups_of(instance: Instance, *, by_domain: bool) -> list[Group]:
    """
    Return the finest groups of nodes that no running job crosses; ``by_domain`` keeps racks whole as well.

    A rack is the domain that a node lies in directly, of whatever level it is.
    """
    numbers = {node.id: n for n, node in enumerate(instance.cluster.nodes)}
    ties = nx.utils.UnionFind(range(len(numbers)))
    for running in instance.running:
        ties.union(*(numbers[assignment.node] for assignment in running.assignments))
    if by_domain:
        first: dict[str, int] = {}
        for n, node in enumerate(instance.cluster.nodes):
            if node.domain is not None:
                ties.union(first.setdefault(node.domain, n), n)
    return sorted(tuple(sorted(group)) for group in ties.to_sets())


def deal(groups: Iterable[Group], weight: np.ndarray, parts: int) -> list[list[int]]:
    """
    Deal groups one by one, in their order, to the part that weighs least so far.

    Parameters
    ----------
    groups
        The first are dealt first; large groups should be.
    weight
        Shape (N,): of each node.
    parts
        How many; those that would stay empty are left out.

    Returns
    -------
    list of list of int
        Nodes of every part, ascending.
    """
    heap: list[tuple[float, int]] = [(0.0, p) for p in range(parts)]
    dealt: list[list[int]] = [[] for _ in range(parts)]
    for group in groups:
        load, p = heapq.heappop(heap)
        dealt[p].extend(group)
        heapq.heappush(heap, (load + float(weight[list(group)].sum()), p))
    return [sorted(nodes) for nodes in dealt if nodes]
