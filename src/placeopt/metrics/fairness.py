"""Fairness of shares."""

from __future__ import annotations

from collections.abc import Sequence


def jain_index(shares: Sequence[float]) -> float | None:
    """
    Return Jain's index ``(sum x)^2 / (n sum x^2)``: 1 for equal shares, 1/n if one has everything; None without any.

    Notes
    -----
    Jain, Chiu, Hawe 1984. All shares 0 count as equal: 1. Example: 1, 1, 4 give 36 / 54.
    """
    if not len(shares):
        return None
    squares = sum(x * x for x in shares)
    return 1.0 if squares == 0 else float(sum(shares)) ** 2 / (len(shares) * squares)
