"""Prices of GPU shares when GPUs are cut as well as possible: Gilmore and Gomory's cutting stock, relaxed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.problem import GPU_MILLI, IntArray

FloatArray = np.ndarray

MOST_PATTERNS = 512
"""Patterns tried; prices are valid after any number of them, and best when no pattern is left to try."""

GRID = 25
MOST_SIZES = GPU_MILLI // GRID
"""
Where there are more sizes, they are rounded up to multiples of ``GRID`` thousandths first; prices are then valid for
sets that fit when rounded up.
"""

EPSILON, NUDGE = 2.0**-30, 2.0**-23
"""Relative change of demands, each by another multiple: no two patterns run out at once and nothing cycles."""


@dataclass(frozen=True, eq=False)
class SharePrices:
    """Prices in GPUs: no set of shares that fits on a GPU is worth more than 1, and all of the demand is worth most."""

    sizes: IntArray  # (Z,) thousandths of a GPU, ascending
    worth: FloatArray  # (Z,) of one share of that size
    level: FloatArray  # (1001,) by free thousandths of a GPU: the dearest shares that fit into them

    def loss(self, size: int) -> FloatArray:
        """Return what a GPU loses by a share of ``size`` beyond its worth, by its free thousandths."""
        # Shape (1001,), 0 where the share is part of a best filling of what is left; 0 below ``size`` too.
        at = int(np.searchsorted(self.sizes, size))
        worth = float(self.worth[at]) if at < len(self.sizes) and self.sizes[at] == size else float(self.level[size])
        lost = np.zeros(len(self.level))
        lost[size:] = np.maximum(self.level[size:] - self.level[: len(lost) - size] - worth, 0)
        return lost


def share_prices(sizes: IntArray, demand: FloatArray) -> SharePrices:
    """
    Price shares by the relaxation that packs ``demand`` into as few GPUs as possible; its duals are the prices.

    ``sizes``, (Z,), are ascending, distinct, 1 to 999 thousandths; ``demand``, (Z,), above 0, in any unit. Columns are
    patterns of shares that fit on a GPU, found by a knapsack (Gilmore and Gomory, Operations Research 9, 1961). Rows
    demand at least ``demand``: a size may be packed more often than requested, so no price is negative. After an early
    stop, prices are divided by the dearest pattern's, which makes them valid.
    """
    if len(sizes) > MOST_SIZES:
        coarse, which = np.unique(-(-sizes // GRID) * GRID, return_inverse=True)
        rough = share_prices(coarse, np.bincount(which, weights=demand))
        return SharePrices(sizes, rough.worth[which], rough.level)
    unit = int(np.gcd.reduce(np.append(sizes, GPU_MILLI)))
    small = (sizes // unit).tolist()
    worth = _duals(small, demand, GPU_MILLI // unit)
    best = _dearest(small, worth, GPU_MILLI // unit)
    scale = max(float(best[-1]), 1.0)
    return SharePrices(sizes, worth / scale, (best / scale)[np.arange(GPU_MILLI + 1) // unit])


def _duals(small: list[int], demand: FloatArray, room: int) -> FloatArray:
    """Shape (Z,): the duals of the last basis, none below 0."""
    count = len(small)
    each = room // np.array(small, dtype=np.int64)
    basis: FloatArray = np.diag(each.astype(float))
    cost: FloatArray = np.ones(count)
    amount: FloatArray = demand * (1 + NUDGE * np.arange(1, count + 1)) / each
    worth: FloatArray = np.zeros(count)
    for _ in range(MOST_PATTERNS if count else 0):
        worth = np.linalg.solve(basis.T, cost)
        negative = int(worth.argmin())
        if worth[negative] < -EPSILON:
            column, price = -np.eye(count)[negative], 0.0  # one share packed that is not in the demand
        else:
            best = _dearest(small, worth, room)
            if best[room] <= 1 + EPSILON:
                break
            column, price = _pattern(small, worth, best), 1.0
        step = np.linalg.solve(basis, column)
        leaving = np.where(step > EPSILON, amount / np.maximum(step, EPSILON), np.inf)
        out = int(leaving.argmin())
        amount = amount - leaving[out] * step
        amount[out] = leaving[out]
        basis[:, out], cost[out] = column, price
    positive: FloatArray = np.maximum(worth, 0)
    return positive


def _dearest(small: list[int], worth: FloatArray, room: int) -> FloatArray:
    """Shape (room + 1,): the most that shares are worth that fit together, by units of room."""
    best = np.zeros(room + 1)
    for size, value in zip(small, worth.tolist(), strict=True):
        if value <= 0:
            continue
        times = room // size + 1
        rows = np.full(times * size, -np.inf)
        rows[: room + 1] = best[: times * size]
        ladder = rows.reshape(times, size)  # row j: j shares of this size
        paid = value * np.arange(times)[:, None]
        np.maximum.accumulate(ladder - paid, axis=0, out=ladder)
        best = np.maximum(best, (ladder + paid).reshape(-1)[: room + 1])
    return np.maximum.accumulate(best)


def _pattern(small: list[int], worth: FloatArray, best: FloatArray) -> FloatArray:
    """Return how many of each size make up the dearest filling."""
    left, counts = len(best) - 1, np.zeros(len(small))
    while left > 0:
        for i, size in enumerate(small):
            if worth[i] > 0 and size <= left and best[left - size] + worth[i] >= best[left] - EPSILON:
                counts[i] += 1
                left -= size
                break
        else:
            left -= 1
    return counts
