"""The least cut of a graph."""

from __future__ import annotations

import time

import numpy as np

from placeopt.rank_mapping.case import FloatArray


def least_cut(weights: FloatArray, deadline: float = np.inf) -> float:
    """
    Least traffic between any set of vertices, neither empty nor all, and the rest. At least two vertices.

    Stoer and Wagner (1997): in an order where each vertex has the most weight to those before, the last one alone is a
    least cut between itself and the one before; merge the two and repeat. ``O(n^2)`` array operations of length n. 0 if
    the deadline comes first.
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
