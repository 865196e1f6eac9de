"""Least cuts of small sets, by listing the connected ones."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray

MAX_SETS = 300_000
"""Connected sets of one size up to which they are listed: about 0.3 s."""

WordArray = NDArray[np.uint64]
WORD = 64


class ConnectedCuts:
    """
    For sizes up to ``reach``, while lists stay short: the least cut of a connected set, and of one with vertex v.

    What leaves any set is the sum over its connected pieces, so a set of s vertices has at least the least sum over
    ways to write s as a sum of piece sizes; with vertex v in it, over the sizes of v's piece.
    """

    def __init__(self, weights: FloatArray, reach: int, deadline: float = np.inf) -> None:
        n = len(weights)
        self._with_vertex = [np.zeros(n)]  # [s][v]: least cut of a connected set of s vertices with v; inf if none
        self._list(weights, reach, deadline)
        self._any = [0.0]  # [s]: least cut of any set of s vertices
        for s in range(1, len(self._with_vertex)):
            self._any.append(min(float(self._with_vertex[t].min()) + self._any[s - t] for t in range(1, s + 1)))

    def single(self, size: int) -> float:
        """Lower bound on the cut of any set of ``size`` vertices; 0 where the lists do not reach."""
        return self._any[size] if size < len(self._any) else 0.0

    def shared(self, size: int) -> float:
        """Lower bound on the sum of cuts over a partition into sets of ``size``; 0 where the lists do not reach."""
        # Every vertex pays 1 / size of the least cut of a set that it may be in.
        if size >= len(self._any):
            return 0.0
        least = np.min([self._with_vertex[t] + self._any[size - t] for t in range(1, size + 1)], axis=0)
        return float(least.sum()) / size

    def _list(self, weights: FloatArray, reach: int, deadline: float) -> None:
        n = len(weights)
        near, above = _rows(weights > 0), _rows(np.triu(np.ones((n, n), dtype=bool), 1))
        vertex = _rows(np.eye(n, dtype=bool))
        sets = _Sets(vertex, near & above, vertex | near, np.arange(n), weights.sum(axis=1))
        for size in range(1, reach + 1):
            best = np.full(n, np.inf)  # stays so where no connected set is so large
            for v in range(n):
                best[v] = sets.cuts[_has(sets.sets, v)].min(initial=np.inf)
            self._with_vertex.append(best)
            if size == reach or time.monotonic() >= deadline:
                break
            grown = _grow(weights, near, above, sets)
            if grown is None:
                break
            sets = grown


class _Sets(NamedTuple):
    """Connected sets of one size as bits: one row a set, 64 vertices a word."""

    sets: WordArray  # (S, words)
    growth: WordArray  # (S, words) vertices that this set, among those listed, is to be grown by
    near: WordArray  # (S, words) the set and all its neighbours
    root: IntArray  # (S,) its lowest vertex
    cuts: FloatArray  # (S,)


def _grow(weights: FloatArray, near: WordArray, above: WordArray, now: _Sets) -> _Sets | None:
    """Add one vertex to every set; None if there are too many."""
    # Each connected set comes up once (Wernicke's ESU, 2006): a set grows by a vertex, then no more by those before it;
    # the new vertex brings its neighbours that are above the root and were not near the set.
    degrees = weights.sum(axis=1)
    parts: list[_Sets] = []
    count = 0
    for v in range(len(weights)):
        mine = np.flatnonzero(_has(now.growth, v))
        if not len(mine):
            continue
        count += len(mine)
        if count > MAX_SETS:
            return None
        sets, around = now.sets[mine], now.near[mine]
        root = now.root[mine]
        growth = (now.growth[mine] & above[v]) | (near[v] & ~around & above[root])
        neighbours = np.flatnonzero(weights[v])
        inner = np.zeros(len(mine))
        for u in neighbours.tolist():
            inner += weights[v, u] * _has(sets, u)
        vertex = np.zeros_like(near[v])
        vertex[v // WORD] = np.uint64(1) << np.uint64(v % WORD)
        parts.append(_Sets(sets | vertex, growth, around | near[v], root, now.cuts[mine] + degrees[v] - 2 * inner))
    if not parts:
        return _Sets._make(column[:0] for column in now)
    return _Sets._make(map(np.concatenate, zip(*parts, strict=True)))


def _rows(flags: np.ndarray) -> WordArray:
    """Shape (rows, words): each row of a Boolean matrix as bits."""
    rows, n = flags.shape
    words = -(-n // WORD)
    padded = np.zeros((rows, words * WORD), dtype=bool)
    padded[:, :n] = flags
    values = np.uint64(1) << np.arange(WORD, dtype=np.uint64)
    out: WordArray = np.where(padded.reshape(rows, words, WORD), values, np.uint64(0)).sum(axis=2, dtype=np.uint64)
    return out


def _has(sets: WordArray, v: int) -> NDArray[np.bool_]:
    """Shape (S,): which sets hold vertex ``v``."""
    out: NDArray[np.bool_] = (sets[:, v // WORD] >> np.uint64(v % WORD) & np.uint64(1)).astype(bool)
    return out
