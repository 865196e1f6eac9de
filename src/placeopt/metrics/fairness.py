"""How evenly something is dealt out."""

from __future__ import annotations

from collections.abc import Sequence


def jain_index(shares: Sequence[float]) -> float | None:
    """
    Jain's index ``(sum x)^2 / (n sum x^2)``: 1 where all have the same, 1/n where one has everything. None of none.

    Notes
    -----
    Jain, Chiu, Hawe 1984. Where all are 0, all have the same: 1. Example: 1, 1, 4 give 36 / 54.
    """
    if not len(shares):
        return None
    squares = sum(x * x for x in shares)
    return 1.0 if squares == 0 else float(sum(shares)) ** 2 / (len(shares) * squares)
