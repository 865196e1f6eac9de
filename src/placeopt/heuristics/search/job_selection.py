"""Choice among jobs that compete for a GPU share: a knapsack."""

from __future__ import annotations

import numpy as np

from placeopt.problem import IntArray

MOST_CELLS = 4_000_000
"""Jobs x units of share up to which the knapsack is solved; beyond, jobs are taken in their order while they fit."""
REACH = 3
"""Jobs are looked at until together they ask for so many times what is there."""
DOMINANCE = 4.0
"""The least value counts so many times as much as the dearest cost: value first, cost among equals."""


def choose(milli: IntArray, value: IntArray, dear: np.ndarray, capacity: int) -> np.ndarray:
    """
    Return which jobs to take, shape (n,), so that they fit into ``capacity`` together: most value, then least cost.

    Parameters
    ----------
    milli, value, dear
        Shape (n,), the best jobs first: GPU share, value, and cost, which may be negative.
    capacity
        GPU share.

    Notes
    -----
    Exact for the jobs looked at, by dynamic programming over the capacity in units that all shares are multiples of. It
    fills gaps that taking one job after the other leaves.
    """
    taken = np.zeros(len(milli), dtype=bool)
    fits = np.flatnonzero(milli <= capacity)
    looked = fits[: int(np.searchsorted(np.cumsum(milli[fits]), REACH * capacity)) + 1]
    if not len(looked):
        return taken
    unit = max(int(np.gcd.reduce(milli[looked])), 1)
    cells = capacity // unit
    if len(looked) * (cells + 1) > MOST_CELLS:
        left = capacity
        for i in fits.tolist():
            if milli[i] <= left:
                taken[i] = True
                left -= int(milli[i])
        return taken
    worth = float(max(value[looked].min(), 1))
    gain = value[looked] * (DOMINANCE * max(float(np.abs(dear[looked]).max()), 1.0) / worth) - dear[looked]
    best, picks = np.zeros(cells + 1), np.zeros((len(looked), cells + 1), dtype=bool)
    for i, (size, plus) in enumerate(zip((milli[looked] // unit).tolist(), gain.tolist(), strict=True)):
        with_it = best[: cells + 1 - size] + plus
        picks[i, size:] = with_it > best[size:]
        best[size:] = np.maximum(best[size:], with_it)
    left = cells
    for i in range(len(looked) - 1, -1, -1):
        if picks[i, left]:
            taken[looked[i]] = True
            left -= int(milli[looked[i]]) // unit
    return taken
