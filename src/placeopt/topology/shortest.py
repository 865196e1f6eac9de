"""Shortest paths between all vertices of a sparse graph, as arrays."""

from __future__ import annotations

import time

import numpy as np

from placeopt.errors import OutOfTime
from placeopt.topology.tree import IntArray

ABSENT = 1 << 60
"""Weight of an edge that is not there; the sum of two still fits."""
_ABSENT_32 = 1 << 29
"""The same in 32 bits, which take half the time where no path can be that long."""


def shortest_paths(weight: IntArray, deadline: float = float("inf")) -> IntArray:
    """
    Shortest path between all vertices of an undirected graph.

    Parameters
    ----------
    weight
        Shape ``(V, V)``, symmetric, zero diagonal, >= 0; ``ABSENT`` where there is no edge.
    deadline
        Of ``time.monotonic()``; the clock is asked at every vertex.

    Returns
    -------
    IntArray
        Shape ``(V, V)``; ``ABSENT`` where there is no path.

    Raises
    ------
    OutOfTime
        At the deadline.

    Notes
    -----
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
    place = np.empty(size, dtype=np.int64)  # where each vertex stands in the table: the core first, the rest reversed
    place[core] = np.arange(len(core))
    place[order[::-1]] = np.arange(len(core), size)
    out = np.zeros((size, size), dtype=work.dtype)
    out[: len(core), : len(core)] = _closed(work[np.ix_(core, core)], deadline)
    for at, (near, ways) in enumerate(reversed(eliminated), len(core)):
        _ask(deadline)
        row = (out[place[near], :at] + ways[:, None]).min(axis=0, initial=absent)
        out[at, :at] = out[:at, at] = row
    found = out[np.ix_(place, place)].astype(np.int64)
    found[found >= absent] = ABSENT
    return found


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
