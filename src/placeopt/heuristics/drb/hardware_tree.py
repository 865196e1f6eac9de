"""The hardware halved recursively: a cluster down to its nodes, a machine down to its GPUs (SC'17 algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from placeopt.heuristics.drb.fiduccia_mattheyses import grown, least_cut
from placeopt.problem import IntArray
from placeopt.topology.cluster_topology import ClusterTopology


@dataclass(frozen=True, eq=False)
class HalvingTree:
    """A binary tree over n leaves, parts numbered in preorder: the part after ``v`` is its first half."""

    order: IntArray  # (n,) leaves from left to right; part v has order[first[v]:end[v]]
    first: IntArray  # (2 n - 1,)
    end: IntArray  # (2 n - 1,)
    second: IntArray  # (2 n - 1,) the second half of a part, -1 of a leaf
    last: IntArray  # (2 n - 1,) the parts below v, itself included, are v up to last[v]

    def leaves(self, part: int) -> IntArray:
        """Return the leaves of a part."""
        return self.order[self.first[part] : self.end[part]]

    def sums(self, of_leaf: IntArray) -> IntArray:
        """Shape (2 n - 1,): the sum over the leaves of every part of a number of each leaf, shape (n,)."""
        to_here = np.concatenate([[0], np.cumsum(of_leaf[self.order])])
        inside: IntArray = to_here[self.end] - to_here[self.first]
        return inside


def _halved(items: list[int], halves: Callable[[list[int]], tuple[list[int], ...]]) -> HalvingTree:
    """Return the tree over ``items``; ``halves`` gives two parts of several, or one with the leaf that is all."""
    order: list[int] = []
    parts: list[tuple[int, int, int, int]] = []  # first, end, second, last

    def grow(group: list[int]) -> int:
        part, first, second = len(parts), len(order), -1
        parts.append((0, 0, 0, 0))
        two = halves(group)
        if len(two) == 1:
            order.append(two[0][0])
        else:
            grow(two[0])
            second = grow(two[1])
        parts[part] = (first, len(order), second, len(parts))
        return part

    if items:
        grow(items)
    columns = np.array(parts, dtype=np.int64).reshape(-1, 4).T
    return HalvingTree(np.array(order, dtype=np.int64), columns[0], columns[1], columns[2], columns[3])


def _middle(items: list[int], sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Cut a list so that both parts weigh as alike as possible; neither is empty."""
    sums = np.cumsum(sizes)
    middle = int(np.abs(2 * sums[:-1] - sums[-1]).argmin()) + 1
    return items[:middle], items[middle:]


@lru_cache(maxsize=8)
def cluster_tree(topology: ClusterTopology) -> HalvingTree:
    """Halve the cluster down to nodes along its domains; the trees of a few clusters are kept."""
    # The children of a domain hang on one switch, so all balanced cuts between them cost alike: they are halved in the
    # order of the file, nodes first, as evenly by GPUs as that order allows. Domain d is item nodes + d.
    nodes, domains = len(topology.node_domain), len(topology.domain_parent)
    weight = [*np.maximum(np.diff(topology.node_gpu_start), 1).tolist(), *[0] * (domains + 1)]  # the network is last
    below: list[list[int]] = [[] for _ in range(domains + 1)]
    for node, domain in enumerate(topology.node_domain.tolist()):
        below[domain].append(node)
        weight[nodes + domain if domain >= 0 else -1] += weight[node]
    for domain in range(domains - 1, -1, -1):  # parents come before their children
        if below[domain]:
            above = int(topology.domain_parent[domain])
            below[above].append(nodes + domain)
            weight[nodes + above if above >= 0 else -1] += weight[nodes + domain]

    def halves(group: list[int]) -> tuple[list[int], ...]:
        while len(group) == 1 and group[0] >= nodes:
            group = sorted(below[group[0] - nodes])
        return (group,) if len(group) == 1 else _middle(group, [weight[item] for item in group])

    return _halved(sorted(below[-1]), halves)


def machine_tree(distances: IntArray) -> HalvingTree:
    """
    Halve a machine down to its GPUs.

    Where "at most this far" divides its GPUs into blocks (sockets, switches), the blocks are halved as evenly as their
    order allows. Where it does not (a cube mesh), Fiduccia-Mattheyses finds the balanced cut that separates the fewest
    near pairs: a pair of GPUs is tied by how much nearer it is than the furthest pair.
    """

    def halves(gpus: list[int]) -> tuple[list[int], ...]:
        if len(gpus) == 1:
            return (gpus,)
        between = distances[np.ix_(gpus, gpus)]
        block = _blocks(between)
        names, sizes = np.unique(block, return_counts=True)
        if len(names) > 1:
            first = np.isin(block, _middle(names.tolist(), sizes.tolist())[0])
        else:
            ties, half = (between.max() - between) * (1 - np.eye(len(gpus), dtype=np.int64)), (len(gpus) + 1) // 2
            side = least_cut(ties, (half, half), grown(ties, (half, len(gpus) - half), starts=len(gpus)))
            first = side == side[0]
        return np.array(gpus)[first].tolist(), np.array(gpus)[~first].tolist()

    return _halved(list(range(len(distances))), halves)


def _blocks(distances: IntArray) -> IntArray:
    """Shape (n,): the first GPU of each one's block, the largest ones in which GPUs are nearer than any outside."""
    off = distances[np.triu_indices(len(distances), 1)]
    for limit in reversed(np.unique(off)[:-1].tolist()):
        near = distances <= limit
        if not (near @ near.astype(np.int64) > 0)[~near].any():  # "at most this far" is transitive
            first: IntArray = near.argmax(axis=1)
            return first
    if (off == off[0]).all():  # all alike: any halves will do
        return np.arange(len(distances))
    return np.zeros(len(distances), dtype=np.int64)
