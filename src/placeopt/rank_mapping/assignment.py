"""The linear assignment problem, for bounds."""

from __future__ import annotations

import time

import numpy as np

from placeopt.rank_mapping.case import FloatArray


def least_assignment(costs: FloatArray, deadline: float = np.inf) -> float:
    """
    Least sum of one entry per row, no column twice; ``costs`` has shape (n, n), entries >= 0.

    Stopped by the deadline it returns the dual variables so far, which bound the sum too.

    Exact where entries are multiples of 1/2, as there. Shortest augmenting paths (Jonker and
    Volgenant 1987, without their start), one row after the other: n^2 array operations of length n at worst.
    """
    n = len(costs)
    u, v = np.zeros(n + 1), np.zeros(n + 1)
    row_of = np.full(n + 1, -1, dtype=np.int64)  # column -> row; the last column is where a path starts
    for row in range(n):
        if time.monotonic() >= deadline:
            break
        row_of[n] = row
        column = n
        least = np.full(n, np.inf)
        way = np.full(n, n, dtype=np.int64)
        used = np.zeros(n + 1, dtype=bool)
        while row_of[column] >= 0:
            used[column] = True
            i = row_of[column]
            reduced = costs[i] - u[i] - v[:n]
            better = (reduced < least) & ~used[:n]
            least[better], way[better] = reduced[better], column
            following = int(np.where(used[:n], np.inf, least).argmin())
            step = least[following]
            u[row_of[used]] += step
            v[used] -= step
            least[~used[:n]] -= step
            column = following
        while column != n:
            row_of[column] = row_of[way[column]]
            column = int(way[column])
    return float(u[:n].sum() + v[:n].sum())
