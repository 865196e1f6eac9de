"""The hardware halved recursively: a cluster down to its nodes, a machine down to its GPUs (SC'17 algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from weakref import WeakKeyDictionary

import numpy as np

from placeopt.heuristics.drb.fiduccia_mattheyses import bisect, graph_of
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


class _Growing:
    def __init__(self) -> None:
        self.order: list[int] = []
        self.second: list[int] = []
        self._ends: list[tuple[int, int, int]] = []  # first, end and last of each part

    def open(self) -> int:
        self._ends.append((len(self.order), -1, -1))
        self.second.append(-1)
        return len(self.second) - 1

    def close(self, part: int) -> None:
        self._ends[part] = (self._ends[part][0], len(self.order), len(self.second))

    def done(self) -> HalvingTree:
        first, end, last = np.array(self._ends, dtype=np.int64).reshape(-1, 3).T
        order, second = np.array(self.order, dtype=np.int64), np.array(self.second, dtype=np.int64)
        return HalvingTree(order, first, end, second, last)


def cluster_tree(topology: ClusterTopology) -> HalvingTree:
    """Halve the cluster down to nodes along its domains."""
    # The children of a domain hang on one switch, so all balanced cuts between them cost alike: they are halved in the
    # order of the file, as evenly by GPUs as that order allows. The tree of a topology is grown once.
    if topology not in _KNOWN:
        _KNOWN[topology] = _grown(topology)
    return _KNOWN[topology]


_KNOWN: WeakKeyDictionary[ClusterTopology, HalvingTree] = WeakKeyDictionary()
"""Of clusters that stay: their topology is the same object in every round."""


def _grown(topology: ClusterTopology) -> HalvingTree:
    nodes = len(topology.node_domain)
    below: list[list[int]] = [[] for _ in range(len(topology.domain_parent) + 1)]  # the network is last
    weight = [0] * (len(topology.domain_parent) + 1)
    items: list[tuple[int, int]] = []  # (node or -1, domain or -1)
    for n, d in enumerate(topology.node_domain.tolist()):
        below[d].append(len(items))
        items.append((n, -1))
    gpus = np.maximum(np.diff(topology.node_gpu_start), 1).tolist()
    for n, d in enumerate(topology.node_domain.tolist()):
        weight[d] += gpus[n]
    for d in range(len(topology.domain_parent) - 1, -1, -1):
        if below[d]:
            above = int(topology.domain_parent[d])
            below[above].append(len(items))
            weight[above] += weight[d]
            items.append((-1, d))
    for group in below:
        group.sort(key=lambda i: (items[i][1], i))  # nodes, then domains in the order of the file
    out = _Growing()
    sizes = [gpus[n] if n >= 0 else weight[d] for n, d in items]

    def grow(group: list[int]) -> int:
        while len(group) == 1 and items[group[0]][0] < 0:
            group = below[items[group[0]][1]]
        part = out.open()
        if len(group) == 1:
            out.order.append(items[group[0]][0])
        else:
            middle = _middle([sizes[i] for i in group])
            grow(group[:middle])
            out.second[part] = grow(group[middle:])
        out.close(part)
        return part

    if nodes:
        grow(below[-1])
    return out.done()


def _middle(sizes: Sequence[int]) -> int:
    """Return where to cut a list so that both parts weigh as alike as possible; neither is empty."""
    sums = np.cumsum(sizes)[:-1]
    return int(np.abs(2 * sums - sum(sizes)).argmin()) + 1


def machine_tree(distances: IntArray) -> HalvingTree:
    """
    Halve a machine down to its GPUs.

    Where "at most this far" divides its GPUs into blocks (sockets, switches), the blocks are halved as evenly as their
    order allows. Where it does not (a cube mesh), Fiduccia-Mattheyses finds the balanced cut that separates the fewest
    near pairs: a pair of GPUs is tied by how much nearer it is than the furthest pair.
    """
    return _machine_tree(distances.tobytes(), len(distances))


@cache
def _machine_tree(raw: bytes, size: int) -> HalvingTree:
    distances = np.frombuffer(raw, dtype=np.int64).reshape(size, size)
    out = _Growing()

    def grow(gpus: list[int]) -> int:
        part = out.open()
        if len(gpus) == 1:
            out.order.extend(gpus)
        else:
            left_half, other = _halve(gpus, distances[np.ix_(gpus, gpus)])
            grow(left_half)
            out.second[part] = grow(other)
        out.close(part)
        return part

    if size:
        grow(list(range(size)))
    return out.done()


def _halve(gpus: list[int], distances: IntArray) -> tuple[list[int], list[int]]:
    blocks = _blocks(distances)
    if len(blocks) > 1:
        middle = _middle([len(block) for block in blocks])
        halves = [[i for block in part for i in block] for part in (blocks[:middle], blocks[middle:])]
    else:
        half = (len(gpus) + 1) // 2
        graph = graph_of(distances.max() - distances)
        cut = bisect(graph, (half, half), np.random.default_rng(0), starts=len(gpus))
        side = cut[0] if cut is not None else [int(i >= half) for i in range(len(gpus))]
        halves = [[i for i in range(len(gpus)) if side[i] == y] for y in (side[0], 1 - side[0])]
    return [gpus[i] for i in halves[0]], [gpus[i] for i in halves[1]]


def _blocks(distances: IntArray) -> list[list[int]]:
    """Return the largest blocks in which GPUs are nearer to each other than to any outside, or one block of all."""
    for limit in reversed(np.unique(distances[np.triu_indices(len(distances), 1)])[:-1].tolist()):
        near = distances <= limit
        if not (near @ near.astype(np.int64) > 0)[~near].any():  # "at most this far" is transitive
            return [np.flatnonzero(near[i]).tolist() for i in range(len(near)) if near[i].argmax() == i]
    off = distances[np.triu_indices(len(distances), 1)]
    if (off == off[0]).all():  # all alike: any halves will do
        return [[i] for i in range(len(distances))]
    return [list(range(len(distances)))]
