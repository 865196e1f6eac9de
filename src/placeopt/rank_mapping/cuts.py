"""Proven lower bounds on the traffic that leaves a set of given size, or a partition into sets of one size."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from placeopt.rank_mapping.case import FloatArray
from placeopt.rank_mapping.connected import ConnectedCuts

ROUTING_ROUNDS = 60
STEEPNESS = 0.25

ROUNDS, ROUNDS_LARGE, LARGE = 30, 4, 128
"""Steps of ascent, and those above ``LARGE`` vertices, where an eigenvalue problem takes 0.1 s."""

SLACK = 1e-6
"""What a bound computed in floating point gives away before it is rounded up."""

SPECTRAL_SHARE = 0.3
"""Share of the time left that one level's eigenvalue bound may take."""

MAX_SPECTRAL = 256

MAX_ROUTED = 160

MAX_GLOBAL = 300
"""Vertices up to which each bound is computed; 0.1 to 0.5 s each there on a 2-core machine."""


def congestion(weights: FloatArray, deadline: float = np.inf) -> float:
    """
    Route a unit between every pair of vertices and return the largest load / weight of an edge; inf if disconnected.

    A set of s vertices sends s (n - s) units over its border, which cannot carry more than congestion x its weight, so
    its cut is at least s (n - s) / congestion (Leighton and Rao 1988). Any routing proves that. Each round sends all
    pairs along shortest paths, with lengths that grow with the load of the rounds before; the mean of the rounds is
    what is sent.
    """
    n = len(weights)
    edges = weights > 0
    load = np.zeros((n, n))
    best, length = np.inf, np.where(edges, 1 / np.maximum(weights, 1), np.inf)
    base = length.copy()
    for done in range(1, ROUTING_ROUNDS + 1):
        if time.monotonic() >= deadline:
            break
        sent = _send(length)
        if sent is None:
            return float("inf")
        load += sent
        used = np.divide(load + load.T, weights, out=np.zeros((n, n)), where=edges) / done
        worst = float(used.max())
        best = min(best, worst)
        length = np.where(edges, base * np.exp(STEEPNESS * done * (used / worst - 1)), np.inf)
    return best


def _send(length: FloatArray) -> FloatArray | None:
    """Shape (n, n): units over each directed edge when every unordered pair sends one along a shortest path."""
    n = len(length)
    distance = length.copy()
    np.fill_diagonal(distance, 0)
    via = np.tile(np.arange(n), (n, 1))  # (i, j): first vertex on the way from i to j
    for m in range(n):
        through = distance[:, m, None] + distance[m]
        shorter = through < distance
        distance = np.where(shorter, through, distance)
        via = np.where(shorter, via[:, m, None], via)
    if not np.isfinite(distance).all():
        return None
    flow = np.zeros((n, n))
    at, to = np.triu_indices(n, 1)
    while len(at):
        step = via[at, to]
        np.add.at(flow, (at, step), 1.0)
        going = step != to
        at, to = step[going], to[going]
    return flow


def partition_bound(weights: FloatArray, size: int, deadline: float = np.inf) -> float:
    """
    At least this much traffic leaves the sets of a partition into sets of ``size``, summed over the sets.

    With X the sets' indicator columns, L the Laplacian and d numbers that sum to 0, the sum of cuts is tr X'LX = tr
    X'(L + diag d)X; off the constant vector X spans k - 1 directions of norm ``size``, so it is at least ``size`` x the
    k - 1 smallest eigenvalues of L + diag d there (Donath and Hoffman 1973; the projection by Rendl and Wolkowicz
    1995). d is improved by a few steps of subgradient ascent; every d gives a bound.
    """
    n = len(weights)
    k = n // size
    if k < 2 or k * size != n:
        return 0.0
    laplacian = np.diag(weights.sum(axis=1)) - weights
    basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:]  # (n, n - 1), off the constant
    d, best, step = np.zeros(n), 0.0, weights.sum(axis=1).mean()
    for _ in range(ROUNDS if n <= LARGE else ROUNDS_LARGE):
        if time.monotonic() >= deadline:
            break
        values, vectors = np.linalg.eigh(basis.T @ (laplacian + np.diag(d)) @ basis)
        bound = size * float(values[: k - 1].sum())
        if bound > best * (1 + 1e-4):
            best = bound
        else:
            step *= 0.7
        slope = ((basis @ vectors[:, : k - 1]) ** 2).sum(axis=1)
        slope -= slope.mean()
        length = float(np.linalg.norm(slope))
        if length < 1e-9:
            break
        d = d + step * slope / length
    return best


def least_cut(weights: FloatArray, deadline: float = np.inf) -> float:
    """
    Least traffic between any set of vertices, neither empty nor all, and the rest. At least two vertices.

    Stoer and Wagner (1997): in an order where each vertex has the most weight to those before, the last one alone is a
    least cut between itself and the one before; merge the two and repeat. ``O(n^2)`` array operations of length n
    (networkx's takes 20 s for a dense graph of 300 vertices). 0 if the deadline comes first.
    """
    matrix = weights.copy()
    best = np.inf
    for size in range(len(matrix), 1, -1):
        if time.monotonic() >= deadline:
            return 0.0
        ties = matrix[0].copy()
        ties[0] = -1
        before, last = 0, 0
        for _ in range(size - 1):
            before, last = last, int(ties.argmax())
            cut = ties[last]
            ties = np.where(ties < 0, -1, ties + matrix[last])
            ties[last] = -1
        best = min(best, float(cut))
        matrix[before] += matrix[last]
        matrix[:, before] += matrix[:, last]
        matrix[before, before] = 0
        matrix = np.delete(np.delete(matrix, last, axis=0), last, axis=1)
    return best


@dataclass(frozen=True, eq=False)
class CutBounds:
    """
    Bounds for one graph, each computed when first read; the largest counts.

    ``weights`` has shape (n, n): integers, symmetric, zero diagonal. ``sizes`` are those that will be read. After
    ``deadline``, of ``time.monotonic()``, what is not computed counts as 0.
    """

    weights: FloatArray
    sizes: tuple[int, ...]
    deadline: float = np.inf
    _least: dict[int, float] = field(default_factory=dict)
    _shared: dict[int, float] = field(default_factory=dict)

    @cached_property
    def unit(self) -> int:
        """Largest number of which every weight, so every cut, is a multiple."""
        return max(1, int(np.gcd.reduce(self.weights.astype(np.int64), axis=None)))

    @cached_property
    def degrees(self) -> FloatArray:
        """Shape (n,): traffic of each vertex."""
        return np.asarray(self.weights.sum(axis=1))

    def single(self, size: int) -> float:
        """At least this much traffic leaves any set of ``size`` vertices."""
        n = len(self.weights)
        size = min(size, n - size)
        if size <= 0:
            return 0.0
        if size not in self._least:
            bounds = [self._connected.single(size), self._global, size * (n - size) * self._rate]
            self._least[size] = self._up(max(bounds))
        return self._least[size]

    def most(self, size: int) -> float:
        """At most this much traffic leaves any set of ``size`` vertices."""
        degrees = np.sort(self.degrees)
        return float(min(degrees[len(degrees) - size :].sum(), degrees.sum() / 2))

    def shared(self, size: int, known: float = np.inf) -> float:
        """
        At least this much leaves the sets of a partition into sets of ``size``, summed over the sets.

        ``known`` is the sum for some partition: dearer bounds are computed only below it.
        """
        n = len(self.weights)
        if size not in self._shared:
            bounds = [n // size * self._global]
            if max(bounds) < known and n <= MAX_SPECTRAL:
                now = time.monotonic()
                until = now + SPECTRAL_SHARE * (self.deadline - now)  # the next level needs its own
                bounds.append(partition_bound(self.weights, size, until))
            if self._up(max(bounds) / 2) * 2 < known:
                bounds += [n // size * self.single(size), self._connected.shared(size)]
            self._shared[size] = 2 * self._up(max(bounds) / 2)
        return self._shared[size]

    @cached_property
    def _connected(self) -> ConnectedCuts:
        n = len(self.weights)
        return ConnectedCuts(self.weights, max((min(s, n - s) for s in self.sizes), default=0), self.deadline)

    @cached_property
    def _global(self) -> float:
        return least_cut(self.weights, self.deadline) if len(self.weights) <= MAX_GLOBAL else 0.0

    @cached_property
    def _rate(self) -> float:
        """Cut of any set / (its size x size of the rest), at least: by eigenvalue, or by routing all pairs."""
        n = len(self.weights)
        rate = 0.0
        if n <= MAX_SPECTRAL and time.monotonic() < self.deadline:
            laplacian = np.diag(self.degrees) - self.weights
            rate = max(0.0, float(np.linalg.eigvalsh(laplacian)[1])) / n
        if n <= MAX_ROUTED:
            rate = max(rate, 1 / congestion(self.weights, self.deadline))
        return rate

    def _up(self, bound: float) -> float:
        """Round up to a multiple of ``unit``."""
        return float(np.ceil(bound * (1 - SLACK) / self.unit - SLACK) * self.unit)
