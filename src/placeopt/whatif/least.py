"""The least that suffices: which numbers on one or several axes to try next, and what those tried prove."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

MOST_CELLS = 4_000_000
"""Size of the grid beyond which it is not made; then no lower bound of the price is proven."""
Counts = tuple[int, ...]
"""A number on each axis."""
Grid = npt.NDArray[np.bool_]


class LeastSearch:
    """
    The cheapest counts that suffice, among those that more and more are tried of.

    More suffices where less does: counts that do not suffice refute all that have no more on any axis. Until some
    suffice, equal counts grow; then the counts that cost less are a grid, whose open ones are halved by price. Where
    more turns out not to suffice, less is no longer taken for enough: so measured answers may contradict each other.

    Parameters
    ----------
    prices
        Of one on each axis, at least 1.
    most
        On each axis: more never help.
    sizes
        Of one on each axis: of equally cheap counts the largest are tried.
    """

    def __init__(self, prices: Sequence[int], most: int, sizes: Sequence[int]) -> None:
        self._prices, self._sizes = (np.array(each, dtype=np.int64) for each in (prices, sizes))
        self.most = most
        self.found: Counts | None = None
        """The cheapest counts that suffice."""
        self.refuted: list[Counts] = []
        self._enough: list[Counts] = []
        self._undecided: list[tuple[Counts, bool]] = []
        self._open: Grid | None = None
        self._all_prices = np.zeros((), dtype=np.int64)
        self._equal: int | None = None
        self._step = 1

    @property
    def price(self) -> int | None:
        """The price of the cheapest counts found."""
        return None if self.found is None else int(self._prices @ self.found)

    @property
    def at_least(self) -> int | None:
        """The price below which no counts suffice; None where none were found, or the grid is too large."""
        return None if self._open is None else int(self._all_prices[self._open].min(initial=self.price or 0))

    def know(self, counts: Counts, *, fits: bool | None, thorough: bool = True) -> None:
        """Enter what is known of some counts; None: a try, thorough or quick, did not decide it."""
        if fits is None:
            self._undecided.append((counts, thorough))
            return
        (self._enough if fits else self.refuted).append(counts)
        left = [one for one in self._enough if not any(_within(one, refuted) for refuted in self.refuted)]
        self.found = min(left, key=lambda one: int(self._prices @ one), default=None)
        self._open = None if self.found is None else self._cheaper(int(self._prices @ self.found))

    def grown(self, more: int = 0) -> Counts | None:
        """
        Return equal counts on all axes, larger than those before: by twice the last step, or at least by ``more``.

        None once some suffice, or the most were tried.
        """
        if self.found is not None or self._equal == self.most:
            return None
        if self._equal is None:
            self._equal = 0
        else:
            self._equal = min(self.most, self._equal + max(self._step, more))
            self._step *= 2
        return (self._equal,) * len(self._prices)

    def next(self, number: int = 1, *, thorough: bool = True) -> list[Counts]:
        """
        Return open counts to try, at most so many, whose prices part those of all open ones equally.

        What was not decided by a quick try is harder to refute with more, by a thorough one harder to meet with less.
        """
        if self._open is None:
            return []
        mask = self._open.copy()
        for counts, was_thorough in self._undecided:
            if was_thorough == thorough:
                mask[_up_to(counts) if thorough else tuple(slice(count, None) for count in counts)] = False
        if not mask.any():
            return []
        prices, where = self._all_prices[mask], np.argwhere(mask)
        low, high = int(prices.min()), int(prices.max())
        chosen: dict[Counts, None] = {}
        for part in range(1, number + 1):
            off = np.abs(prices - (low + (high - low) * part // (number + 1)))
            near = where[off == off.min()]
            chosen[tuple(int(count) for count in near[int(np.argmax(near @ self._sizes))])] = None
        return list(chosen)

    def _cheaper(self, price: int) -> Grid | None:
        """Return what costs less and is not refuted; None where that is too large a grid."""
        sizes = [int(max(price - 1, 0) // each) + 1 for each in self._prices]
        if float(np.prod(np.array(sizes, dtype=float))) > MOST_CELLS:
            return None
        axes = [np.arange(size) * int(each) for size, each in zip(sizes, self._prices, strict=True)]
        self._all_prices = sum(np.ix_(*axes), np.zeros((), dtype=np.int64))
        cheaper: Grid = self._all_prices < price
        for counts in self.refuted:
            cheaper[_up_to(counts)] = False
        return cheaper


def _within(counts: Counts, others: Counts) -> bool:
    """Return whether no count is larger than the other on its axis."""
    return all(one <= other for one, other in zip(counts, others, strict=True))


def _up_to(counts: Counts) -> tuple[slice, ...]:
    return tuple(slice(0, count + 1) for count in counts)
