"""Waiting times that double with every failure in a row, up to a bound."""

from __future__ import annotations


class Backoff:
    """
    Seconds to wait after the n-th failure in a row: ``first_s`` times 2^(n-1), at most ``most_s``.

    A success ends the row.
    """

    def __init__(self, first_s: float, most_s: float) -> None:
        self._first_s, self._most_s = first_s, most_s
        self._failures = 0

    def failed(self) -> float:
        """Note a failure, and return how many seconds to wait."""
        self._failures += 1
        return min(self._most_s, self._first_s * 2.0 ** min(self._failures - 1, 60))

    def succeeded(self) -> None:
        """Note a success."""
        self._failures = 0
