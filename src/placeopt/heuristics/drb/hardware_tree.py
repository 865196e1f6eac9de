"""The hardware halved recursively: a cluster down to its nodes, a machine down to its GPUs (SC'17 algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

import numpy as np

from placeopt.heuristics.drb.fiduccia_mattheyses import grown, least_cut
from placeopt.problem import IntArray
from placeopt.topology.cluster_topology import ClusterTopology
from placeopt.topology.machine_distances import components

Part = tuple[int, Union[int, "list[Part]"]]
"""GPUs of a part of the hardware, and the leaf that it is or what it consists of."""


@dataclass(frozen=True, eq=False)
class HalvingTree:
    """A binary tree over n leaves, parts numbered in preorder: the part after ``v`` is its first half."""

    order: IntArray  # (n,) leaves from left to right; part v has order[first[v]:end[v]]
    first: IntArray  # (2 n - 1,)
    end: IntArray  # (2 n - 1,)
    second: list[int]  # (2 n - 1) the second half of a part, -1 of a leaf
    height: np.ndarray  # (2 n - 1,) distance between the halves of a part, in link-cost units; of a leaf, inside it

    def below(self, part: int) -> slice:
        """Return the numbers of the parts of a part, itself included."""
        return slice(part, part + 2 * int(self.end[part] - self.first[part]) - 1)

    def sums(self, of_leaf: IntArray) -> tuple[IntArray, IntArray]:
        """Shape (2 n - 1,) each: sums of a number of each leaf, (n,), over those left of each part, and to its end."""
        to_here = np.zeros(len(self.order) + 1, dtype=np.int64)
        np.cumsum(of_leaf[self.order], out=to_here[1:])
        return to_here[self.first], to_here[self.end]


def cluster_tree(topology: ClusterTopology) -> HalvingTree:
    """
    Halve the cluster down to nodes along its domains; nodes are as far apart as the first GPUs of each half.

    The children of a domain hang on one switch, so all balanced cuts between them cost alike: they are halved in the
    order of the file, nodes first, as evenly by GPUs as that order allows.
    """
    gpus, network = np.diff(topology.node_gpu_start), len(topology.domain_parent)
    nodes: list[list[Part]] = [[] for _ in range(network + 1)]
    for node, domain in enumerate(topology.node_domain.tolist()):
        nodes[domain].append((max(1, int(gpus[node])), node))
    domains: list[list[Part]] = [[] for _ in nodes]
    for domain in range(network - 1, -1, -1):  # parents come before their children
        if inside := nodes[domain] + domains[domain][::-1]:
            domains[topology.domain_parent[domain]].append((sum([weight for weight, _ in inside]), inside))
    order, first, end, halves = _halved(nodes[-1] + domains[-1][::-1])
    machine, halved = topology.node_machine[order], halves >= 0
    height = np.zeros(len(halves))
    longest = np.array([distances.max(initial=0) for distances in topology.distance])
    height[~halved] = longest[machine[first[~halved]]]
    way = topology.node_uplink[order] + np.array([root.min(initial=0) for root in topology.root])[machine]
    a, b = first[halved], first[halves[halved]]
    between = topology.domain_distances(topology.node_domain[order[a]], topology.node_domain[order[b]])
    height[halved] = way[a] + between + way[b]
    return HalvingTree(order, first, end, halves.tolist(), height)


def machine_tree(distances: IntArray) -> HalvingTree:
    """
    Halve a machine down to its GPUs; two halves are as far apart as their GPUs are on the mean.

    Where GPUs fall apart once the largest distance is cut (sockets, switches), these blocks are halved as evenly as
    their order allows. Where they do not (a cube mesh), Fiduccia-Mattheyses finds the balanced cut that separates the
    fewest near pairs: a pair of GPUs is tied by how much nearer it is than the furthest pair.
    """

    def inside(gpus: IntArray) -> Part:
        if len(gpus) == 1:
            return 1, int(gpus[0])
        between = distances[np.ix_(gpus, gpus)]
        block = components(between < between.max())
        if not block.any():
            ties, half = (between.max() - between) * (1 - np.eye(len(gpus), dtype=np.int64)), (len(gpus) + 1) // 2
            side = least_cut(ties, (half, half), grown(ties, (half, len(gpus) - half), starts=len(gpus)))
            block = np.abs(side - side[0])
        return len(gpus), [inside(gpus[block == one]) for one in np.unique(block)]

    order, first, end, halves = _halved([inside(np.arange(len(distances)))] if len(distances) else [])
    height = np.zeros(len(halves))
    for part in np.flatnonzero(halves >= 0):
        left, right = (order[first[half] : end[half]] for half in (part + 1, halves[part]))
        height[part] = distances[np.ix_(left, right)].mean()
    return HalvingTree(order, first, end, halves.tolist(), height)


def _halved(parts: Sequence[Part]) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return ``order``, ``first``, ``end`` and ``second`` of the tree that halves parts as evenly as their order is."""
    order: list[int] = []
    rows: list[tuple[int, int, int]] = []

    def grow(group: Sequence[Part]) -> int:
        row, first, second = len(rows), len(order), -1
        rows.append((0, 0, 0))
        while len(group) == 1:
            inside = group[0][1]
            if isinstance(inside, int):
                order.append(inside)
                break
            group = inside
        else:
            sums = np.cumsum([weight for weight, _ in group])
            middle = int(np.abs(2 * sums[:-1] - sums[-1]).argmin()) + 1
            grow(group[:middle])
            second = grow(group[middle:])
        rows[row] = first, len(order), second
        return row

    if parts:
        grow(parts)
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return np.array(order, dtype=np.int64), columns[0], columns[1], columns[2]
