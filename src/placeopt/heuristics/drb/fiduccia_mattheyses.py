"""Fiduccia and Mattheyses: two halves of a graph with little between them, by moves of single vertices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from placeopt.problem import IntArray

PASSES = 16
"""Passes after which refinement ends even if it still gains; a handful is usual."""

STARTS = 8
"""Vertices from which ``bisect`` grows a first half."""


@dataclass(frozen=True)
class Graph:
    """
    An undirected graph with integer weights: ``sizes`` of the vertices, > 0; ``near``: neighbour -> weight of the edge.

    Edge weights are > 0 and symmetric; no vertex is its own neighbour.
    """

    sizes: tuple[int, ...]
    near: tuple[dict[int, int], ...]

    def cut(self, side: Sequence[int]) -> int:
        """Sum of the weights of edges whose ends are on different sides."""
        return sum(w for v, near in enumerate(self.near) for u, w in near.items() if u > v and side[u] != side[v])


def graph_of(weights: IntArray, sizes: Iterable[int] | None = None) -> Graph:
    """Return the graph of a symmetric matrix; 0: no edge; the diagonal is not read. Vertices weigh 1 by default."""
    near: list[dict[int, int]] = [{} for _ in weights]
    rows, columns = np.nonzero(weights)
    for a, b, w in zip(rows.tolist(), columns.tolist(), weights[rows, columns].tolist(), strict=True):
        if a != b:
            near[a][b] = w
    return Graph(tuple(sizes) if sizes is not None else (1,) * len(near), tuple(near))


class Buckets:
    """
    Vertices by gain: the last one put in of the highest gain is found without a search.

    A bucket is a dict of vertices in order of arrival. Gains may be any integers, so a heap of gains holds the
    non-empty buckets, cleared of empty ones as they come up; the array of the original is as long as the largest gain.
    """

    def __init__(self) -> None:
        self.gain: dict[int, int] = {}
        self._buckets: dict[int, dict[int, None]] = {}
        self._heap: list[int] = []

    def put(self, vertex: int, gain: int) -> None:
        """Put a vertex that is not in, or move one that is in to another gain."""
        if vertex in self.gain:
            self.take(vertex)
        bucket = self._buckets.get(gain)
        if not bucket:
            bucket = self._buckets.setdefault(gain, {})
            heappush(self._heap, -gain)
        bucket[vertex] = None
        self.gain[vertex] = gain

    def take(self, vertex: int) -> None:
        """Take a vertex out."""
        del self._buckets[self.gain.pop(vertex)][vertex]

    def best(self, sizes: Sequence[int], most: int) -> int | None:
        """Return the vertex of highest gain with a size of at most ``most``, None if there is none."""
        passed: list[int] = []
        candidate: int | None = None
        while self._heap:
            gain = -self._heap[0]
            bucket = self._buckets[gain]
            if not bucket:
                heappop(self._heap)
                continue
            candidate = next((v for v in reversed(bucket) if sizes[v] <= most), None)
            if candidate is not None:
                break
            passed.append(heappop(self._heap))
        for entry in passed:
            heappush(self._heap, entry)
        return candidate


def refine(
    graph: Graph, side: Sequence[int], limits: tuple[int, int], fixed: frozenset[int] = frozenset()
) -> tuple[list[int], int]:
    """
    Return sides and cut after moving vertices between two halves, pass by pass: never more is cut than before.

    ``side`` is 0 or 1 of every vertex and keeps ``limits``, the most weight on either side; ``fixed`` vertices stay and
    only pull their neighbours. Within a pass, in which each vertex moves at most once, a half may exceed its limit by
    the heaviest vertex, so that exchanges between full halves are found; a pass ends at the best split that keeps both
    limits.

    Fiduccia and Mattheyses 1982, with weights of vertices and edges. A pass costs one update of a bucket per edge.
    """
    sides = list(side)
    cut = graph.cut(sides)
    for _ in range(PASSES):
        moved, better = _one_pass(graph, sides, limits, fixed, cut)
        for vertex in moved:
            sides[vertex] ^= 1
        if better >= cut:
            break
        cut = better
    return sides, cut


def _one_pass(
    graph: Graph, start: Sequence[int], limits: tuple[int, int], fixed: frozenset[int], cut: int
) -> tuple[list[int], int]:
    """Return the moves up to the best split of a pass, and its cut."""
    sides, sizes = list(start), graph.sizes
    slack = max(sizes, default=0)
    weight = [0, 0]
    free = (Buckets(), Buckets())
    for vertex, near in enumerate(graph.near):
        here = sides[vertex]
        weight[here] += sizes[vertex]
        if vertex not in fixed:
            free[here].put(vertex, sum(w if sides[u] != here else -w for u, w in near.items()))
    moves: list[int] = []
    best, kept = cut, 0
    while True:
        chosen = _next(free, sizes, weight, limits, slack)
        if chosen is None:
            return moves[:kept], best
        here = sides[chosen]
        cut -= free[here].gain[chosen]
        free[here].take(chosen)
        sides[chosen] ^= 1
        weight[here] -= sizes[chosen]
        weight[1 - here] += sizes[chosen]
        for u, w in graph.near[chosen].items():
            buckets = free[sides[u]]
            if u in buckets.gain:
                buckets.put(u, buckets.gain[u] + (2 * w if sides[u] == here else -2 * w))
        moves.append(chosen)
        if cut < best and weight[0] <= limits[0] and weight[1] <= limits[1]:
            best, kept = cut, len(moves)


def _next(
    free: tuple[Buckets, Buckets], sizes: Sequence[int], weight: list[int], limits: tuple[int, int], slack: int
) -> int | None:
    """Return the vertex of highest gain that may move; of two, the one whose side is fuller by its limit."""
    best: tuple[tuple[int, int], int] | None = None
    for here in (0, 1):
        there = 1 - here
        over = weight[there] > limits[there]  # a side above its limit takes nothing before it gave something
        candidate = None if over else free[here].best(sizes, limits[there] + slack - weight[there])
        if candidate is not None:
            key = (free[here].gain[candidate], weight[here] - limits[here])
            if best is None or key > best[0]:
                best = (key, candidate)
    return None if best is None else best[1]


def bisect(
    graph: Graph, limits: tuple[int, int], rng: np.random.Generator, starts: int = STARTS
) -> tuple[list[int], int] | None:
    """Return sides and cut of two halves within ``limits``, with a small cut; None where no start keeps the limits."""
    # A half is grown from a vertex, always by the outside vertex that is tied to it most beyond its ties elsewhere, and
    # both are refined; the best of ``starts`` vertices counts, all of them where there are no more. Vertex weights may
    # make the limits hard or impossible to keep.
    n = len(graph.sizes)
    seeds = list(range(n)) if n <= starts else sorted(rng.choice(n, size=starts, replace=False).tolist())
    best: tuple[list[int], int] | None = None
    for seed in seeds:
        side = _grown(graph, seed, limits)
        if side is None:
            continue
        candidate = refine(graph, side, limits)
        if best is None or candidate[1] < best[1]:
            best = candidate
    return best


def _grown(graph: Graph, seed: int, limits: tuple[int, int]) -> list[int] | None:
    """Grow side 0 from a vertex up to its part of the weight, in proportion to the limits."""
    sizes, total = graph.sizes, sum(graph.sizes)
    goal = min(limits[0], max(total - limits[1], total * limits[0] // max(1, sum(limits))))
    side, weight = [1] * len(sizes), 0
    outside = Buckets()
    for v, near in enumerate(graph.near):
        outside.put(v, -sum(near.values()))
    vertex: int | None
    while weight < goal:
        vertex = outside.best(sizes, limits[0] - weight) if weight else seed
        if vertex is None or weight + sizes[vertex] > limits[0]:
            break
        outside.take(vertex)
        side[vertex] = 0
        weight += sizes[vertex]
        for u, w in graph.near[vertex].items():
            if u in outside.gain:
                outside.put(u, outside.gain[u] + 2 * w)
    return side if total - weight <= limits[1] else None
