"""Weights of edges, and distances and bandwidths between the GPUs of one machine, as arrays."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from placeopt.errors import OutOfTime
from placeopt.model import Domain, Machine

LEVEL_WEIGHTS = {"gpu": 1, "switch": 10, "numa": 10, "socket": 20, "machine": 100}
"""
Default weight of the edge from a vertex of the level up to its parent.

Amaral et al. (SC'17, section 4.1.2 and fig. 7) print 1 at the GPU and 20 at the socket, call the weights qualitative
and ask only that higher levels weigh more; switch, numa, machine and the domains are ours, chosen to keep that order.
"""

RACK_WEIGHT = 200
"""Default uplink weight of a domain that has no domain below it."""

MAX_WEIGHT = 1_000_000
"""The largest weight that the model accepts; the default of a very deep network stops there."""

ABSENT = 1 << 60
"""Weight of an edge that is not there; the sum of two still fits."""
_ABSENT_32 = 1 << 29
"""The same in 32 bits, which take half the time where no path can be that long."""


def domain_weights(domains: Sequence[Domain]) -> list[int]:
    """Uplink weight of every domain: its own, or ``RACK_WEIGHT`` x (1 + height), at most ``MAX_WEIGHT``."""
    # The height of a domain counts the domains on the longest way down from it: 0 for a rack, 1 for a row of racks. So
    # an edge weighs more the higher it stands, at any depth, whatever the levels are called (the rule is ours). Domains
    # stand parents first, as ``Cluster`` guarantees.
    position = {domain.id: d for d, domain in enumerate(domains)}
    height = [0] * len(domains)
    for d in range(len(domains) - 1, -1, -1):
        parent = domains[d].parent
        if parent is not None:
            above = position[parent]
            height[above] = max(height[above], height[d] + 1)
    return [
        domain.uplink_weight if domain.uplink_weight is not None else min(RACK_WEIGHT * (1 + height[d]), MAX_WEIGHT)
        for d, domain in enumerate(domains)
    ]


IntArray = npt.NDArray[np.int64]


def tree_distances(parent: IntArray, weight: IntArray) -> IntArray:
    """
    Shape ``(V, V)``: path weight between all vertices of a tree, of which vertex 0 is the root.

    ``parent``, ``(V,)``, is below the vertex itself, ``weight`` that of the edge to it. Cost ``O(V^2)``: a path that
    ends in ``v`` and starts at an earlier vertex goes through ``parent[v]``, whose row is known.
    """
    size = len(parent)
    distance = np.zeros((size, size), dtype=np.int64)
    for v in range(1, size):
        distance[v, :v] = distance[parent[v], :v] + weight[v]
        distance[:v, v] = distance[v, :v]
    return distance


def shortest_paths(weight: IntArray, deadline: float = float("inf")) -> IntArray:
    """
    Shape ``(V, V)``: shortest path between all vertices of an undirected graph, ``ABSENT`` where there is none.

    ``weight``, ``(V, V)``, is symmetric with zero diagonal, >= 0, and ``ABSENT`` without an edge. The clock is read at
    every vertex; raises ``OutOfTime`` at the deadline.

    Planken, de Weerdt, van der Krogt: Computing all-pairs shortest paths by leveraging low treewidth (JAIR 43, 2012),
    the algorithm Snowball. Vertices are eliminated, one with the fewest neighbours first, and their neighbours joined;
    taken back in reverse, each finds its paths through the neighbours that it had. ``O(V^2 w)`` for graphs in which no
    eliminated vertex has more than w neighbours: 3 for a ring of GPUs under one switch. Ours: once the vertices left
    have more than half of each other as neighbours, they are closed by Floyd and Warshall's algorithm, and only then
    are the others taken back. So the worst case, a dense graph, takes ``O(V^3)``.
    """
    size = len(weight)
    present = weight < ABSENT
    narrow = size * int(weight[present].max(initial=0)) < _ABSENT_32
    work = np.where(present, weight, _ABSENT_32).astype(np.int32) if narrow else weight.copy()
    absent = work.dtype.type(_ABSENT_32 if narrow else ABSENT)
    order, eliminated = list[int](), list[tuple[IntArray, IntArray]]()
    np.fill_diagonal(present, False)
    degree = present.sum(axis=1)  # (V,) of those left; of the others more than any
    while len(order) < size:
        _ask(deadline)
        v = int(degree.argmin())
        if 2 * int(degree[v]) > size - len(order):
            break
        near = np.flatnonzero(present[v])
        ways = work[v, near]
        block = np.ix_(near, near)
        work[block] = np.minimum(work[block], ways[:, None] + ways[None, :])
        present[v] = present[:, v] = False
        joined = present[block]
        degree[near] += len(near) - 2 - joined.sum(axis=1)  # to each other, without themselves; v is gone
        present[block] = True
        present[near, near] = False
        work[near, near] = 0
        degree[v] = 2 * size
        order.append(v)
        eliminated.append((near, ways))
    core = np.setdiff1d(np.arange(size), np.array(order, dtype=np.int64))
    place = np.empty(size, dtype=np.int64)  # row of each vertex in the table: the core first, the rest reversed
    place[core] = np.arange(len(core))
    place[order[::-1]] = np.arange(len(core), size)
    out = np.zeros((size, size), dtype=work.dtype)
    out[: len(core), : len(core)] = _closed(work[np.ix_(core, core)], deadline)
    for at, (near, ways) in enumerate(reversed(eliminated), len(core)):
        _ask(deadline)
        row = (out[place[near], :at] + ways[:, None]).min(axis=0, initial=absent)
        out[at, :at] = out[:at, at] = row
    paths = out[np.ix_(place, place)].astype(np.int64)
    paths[paths >= absent] = ABSENT
    return paths


def _closed(distance: np.ndarray, deadline: float) -> np.ndarray:
    """Floyd and Warshall's algorithm, in place, a vertex at a time."""
    through = np.empty_like(distance)
    for k in range(len(distance)):
        _ask(deadline)
        np.add(distance[:, k : k + 1], distance[k : k + 1, :], out=through)
        np.minimum(distance, through, out=distance)
    return distance


def _ask(deadline: float) -> None:
    if time.monotonic() >= deadline:
        raise OutOfTime("the deadline passed while distances between GPUs were computed")


def gpu_distances(machine: Machine, deadline: float = float("inf")) -> IntArray:
    """
    Distance between all GPUs of a machine: the stated matrix, or shortest paths over the tree and the direct links.

    Shape ``(g, g)``, symmetric, zero diagonal, read-only, in link-cost units. Raises ``OutOfTime`` at the deadline, of
    ``time.monotonic()``, which is checked where there are direct links.

    Amaral et al. (SC'17, section 4.1.2): the distance is the sum of the weights on the shortest path. A path may pass
    through other GPUs: on a DGX-1, GPUs 0 and 5 have no link, but 0-1-5 costs 2. That is the paper's graph; hardware
    does not forward by itself, a library that builds rings does. A tree alone takes ``O(V^2)``; with direct links,
    ``O(V^2 w)`` for graphs of treewidth about w (a ring: 3), and ``O(V^3)`` at worst (`shortest_paths`).
    """
    if machine.gpu_distance_matrix is not None:
        size = len(machine.gpus)
        distance = np.array(machine.gpu_distance_matrix, dtype=np.int64).reshape(size, size)
    else:
        parent, weight = _tree(machine)
        first = 1 + len(machine.parts)
        if machine.links:
            distance = shortest_paths(_edges(machine, parent, weight), deadline)
        else:
            distance = tree_distances(parent, weight)
        distance = distance[first:, first:].copy()
    distance.setflags(write=False)
    return distance


def root_distances(machine: Machine) -> IntArray:
    """Shape ``(g,)``: path weight from each GPU up the tree to the machine's own vertex, read-only."""
    # Through the tree only, also where a matrix is stated: a matrix states nothing about the way out of the machine.
    parent, weight = _tree(machine)
    to_root = np.zeros(len(parent), dtype=np.int64)
    for v in range(1, len(parent)):
        to_root[v] = to_root[parent[v]] + weight[v]
    root = to_root[1 + len(machine.parts) :].copy()
    root.setflags(write=False)
    return root


def _tree(machine: Machine) -> tuple[IntArray, IntArray]:
    """Parent and uplink weight of each vertex: the machine, its parts, its GPUs."""
    position = {part.id: 1 + p for p, part in enumerate(machine.parts)}
    parent, weight = [-1], [0]
    for part in machine.parts:
        parent.append(0 if part.parent is None else position[part.parent])
        weight.append(LEVEL_WEIGHTS[part.level] if part.uplink_weight is None else part.uplink_weight)
    for gpu in machine.gpus:
        parent.append(0 if gpu.part is None else position[gpu.part])
        weight.append(LEVEL_WEIGHTS["gpu"] if gpu.uplink_weight is None else gpu.uplink_weight)
    return np.array(parent, np.int64), np.array(weight, np.int64)


def _edges(machine: Machine, parent: IntArray, weight: IntArray) -> IntArray:
    """Shape (V, V): weight of the edge between two vertices of tree and links, `ABSENT` without one."""
    edges = np.full((len(parent), len(parent)), ABSENT, dtype=np.int64)
    np.fill_diagonal(edges, 0)
    below = np.arange(1, len(parent))
    edges[below, parent[1:]] = edges[parent[1:], below] = weight[1:]
    a, b = np.array([link.gpus for link in machine.links], dtype=np.int64).T + 1 + len(machine.parts)
    edges[a, b] = edges[b, a] = [link.weight for link in machine.links]  # a pair is linked once, and never by the tree
    return edges
