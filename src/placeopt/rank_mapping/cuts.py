"""Proven lower bounds on the traffic that leaves a set of so many vertices, or a partition into sets of one size."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from placeopt.rank_mapping.case import FloatArray
from placeopt.rank_mapping.connected import ConnectedCuts
from placeopt.rank_mapping.global_cut import least_cut
from placeopt.rank_mapping.routing import congestion
from placeopt.rank_mapping.spectral import partition_bound

SLACK = 1e-6
"""What a bound computed in floating point gives away before it is rounded up."""

SPECTRAL_SHARE = 0.3
"""Share of the time left that one level's eigenvalue bound may take."""

MAX_SPECTRAL = 256
MAX_ROUTED = 160
MAX_GLOBAL = 300
"""Vertices up to which each bound is computed; 0.1 to 0.5 s each there on a 2-core machine."""


@dataclass(frozen=True, eq=False)
class CutBounds:
    """
    Bounds for one graph, each computed when first asked for; the largest wins.

    ``weights`` has shape (n, n): integers, symmetric, zero diagonal. ``sizes`` are those that will be asked for. After
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
                until = now + SPECTRAL_SHARE * (self.deadline - now)  # the next level wants its own
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
