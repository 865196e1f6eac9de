"""Fiduccia and Mattheyses: two halves of a graph with little between them, by moves of single vertices."""

from __future__ import annotations

import numpy as np

from placeopt.problem import IntArray

STARTS = 8
"""Vertices from which first halves are grown, at most."""

ENTRIES = 1 << 18
"""Entries of the matrix of weights that the starts of one bisection may read in a pass: 8 starts up to 181 vertices."""

NEVER = np.iinfo(np.int64).min
"""Gain of what may not move."""


def cut(weights: IntArray, sides: IntArray) -> IntArray:
    """Shape (S,): sum of the weights between vertices on different sides, for each row of ``sides``, 0 and 1 (S, n)."""
    between: IntArray = ((sides @ weights) * (1 - sides)).sum(axis=-1)
    return between


def least_cut(weights: IntArray, limits: tuple[int, int], sides: IntArray) -> IntArray:
    """
    Shape (n,): the split that cuts least once all are refined by moving vertices between the halves, pass by pass.

    Parameters
    ----------
    weights
        Shape (n, n), symmetric, at least 0: the edges of the graph; the diagonal is 0.
    limits
        The most vertices of either side, which every split keeps, and so does what is returned.
    sides
        Shape (S, n): 0 or 1 of every vertex, in S splits that are refined side by side.

    Notes
    -----
    Within a pass, in which each vertex moves at most once, a half may exceed its limit by one vertex, so that exchanges
    between full halves are found; a pass ends at the best split that keeps both limits, so none ever cuts more than it
    began with. Fiduccia and Mattheyses 1982; their buckets of gains are here a matrix of splits x vertices.
    """
    gained = np.ones(len(sides), dtype=np.int64)
    while gained.any():
        sides, gained = _one_pass(weights, sides, limits)
    found: IntArray = sides[cut(weights, sides).argmin()]
    return found


def _one_pass(weights: IntArray, sides: IntArray, limits: tuple[int, int]) -> tuple[IntArray, IntArray]:
    """Return the best splits of a pass, and by how much less each cuts."""
    splits, n = sides.shape
    row, sign = np.arange(splits), 1 - 2 * sides  # 1 on side 0, -1 on side 1
    gain = -sign * (sign @ weights)
    fixed = np.zeros(sides.shape, dtype=bool)
    total, most, best = np.zeros(splits, dtype=np.int64), np.zeros(splits, dtype=np.int64), sides
    for _ in range(n):
        over = (sign.sum(axis=1) + n) // 2 - limits[0], (n - sign.sum(axis=1)) // 2 - limits[1]
        may = np.where(sign > 0, (over[1] <= 0)[:, None], (over[0] <= 0)[:, None]) & ~fixed
        fuller = sign * np.sign(over[0] - over[1])[:, None] > 0  # of equal gains the one on the fuller side
        chosen = np.where(may, 2 * gain + fuller, NEVER).argmax(axis=1)
        moves = may[row, chosen]
        if not moves.any():
            break
        side = sign[row, chosen] * moves
        total = total + gain[row, chosen] * moves
        gain += 2 * weights[chosen] * side[:, None] * sign
        sign[row, chosen] -= 2 * side
        fixed[row, chosen] = True
        count = (sign < 0).sum(axis=1)
        better = (total > most) & (n - count <= limits[0]) & (count <= limits[1])
        most = np.where(better, total, most)
        best = np.where(better[:, None], sign < 0, best).astype(np.int64)
    return best, most


def grown(weights: IntArray, counts: tuple[int, int], starts: int = STARTS) -> IntArray:
    """Shape (S, n): first halves of ``counts[0]`` vertices, each grown from a vertex by those most tied to it."""
    n = len(weights)
    seeds = np.linspace(0, n - 1, max(1, min(n, starts, ENTRIES // (n * n)))).round().astype(np.int64)
    row, side = np.arange(len(seeds)), np.ones((len(seeds), n), dtype=np.int64)
    tie = np.tile(-weights.sum(axis=1), (len(seeds), 1))  # to the half, less to all others
    chosen = seeds
    for _ in range(counts[0]):
        side[row, chosen] = 0
        tie += 2 * weights[chosen]
        chosen = np.where(side == 1, tie, NEVER).argmax(axis=1)
    return side
