"""Counts and minima of rows of few columns: added up by column, since NumPy takes its time for every row."""

from __future__ import annotations

import numpy as np

from placeopt.problem import BoolArray, IntArray

NARROW = 16
"""Columns up to which rows are taken column by column."""

MANY_ROWS = 64


def row_counts(rows: BoolArray) -> IntArray:
    """Shape (n,): entries of each row, (n, width), that are true."""
    if rows.shape[1] > NARROW or len(rows) < MANY_ROWS:
        counts: IntArray = np.add.reduce(rows, axis=1, dtype=np.int64)
        return counts
    counts = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        counts += column
    return counts


def row_minima(rows: np.ndarray) -> np.ndarray:
    """Shape (n,): least entry of each row, (n, width) with at least one column."""
    if rows.shape[1] > NARROW or len(rows) < MANY_ROWS:
        return np.asarray(rows.min(axis=1))
    least: np.ndarray = rows[:, 0].copy()
    for column in rows.T[1:]:
        np.minimum(least, column, out=least)
    return least
