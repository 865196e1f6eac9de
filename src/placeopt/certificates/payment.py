"""The most that bundles can pay on the GPUs of one node at given prices, and how: two knapsacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd
from typing import NamedTuple


class Item(NamedTuple):
    """A bundle with GPUs that a node may have up to ``most`` times, each of which pays ``pays``."""

    bundle: int
    gpus: int
    share: int
    most: int
    pays: int


Filling = dict[int, int]
"""Bundle -> how many of it."""


def best_filling(units: tuple[int, ...], full: int, items: list[Item]) -> tuple[int, Filling]:
    """
    Return the most that items can pay on GPUs with ``units`` left, and a filling that pays it.

    Bundles of whole GPUs count as often as there are jobs; shares of single GPUs as often as a GPU takes them. Where
    units are jobs (``full`` 1), those of all GPUs count together.
    """
    pooled = full == 1
    shares = _Shares([] if pooled else [item for item in items if item.share < full], max(units, default=0))
    filling: Filling = {}
    paid = 0
    for unit in () if pooled else units:
        if unit < full:
            paid += shares.paid(unit)
            _add(filling, shares.filling(unit))
    idle = sum(units) if pooled else sum(unit == full for unit in units)
    whole = [item for item in items if pooled or item.share == full]
    best, chosen = _knapsack(whole, idle)
    rest = shares.paid(full) if idle and not pooled else 0
    at = max(range(idle + 1), key=lambda count: best[count] + (idle - count) * rest)
    paid += best[at] + (idle - at) * rest
    if rest:
        _add(filling, shares.filling(full), idle - at)
    for item, number in zip(reversed(whole), reversed(chosen), strict=True):
        _add(filling, {item.bundle: 1}, number[at])
        at -= number[at] * item.gpus
    return paid, filling


def _knapsack(items: Iterable[Item], gpus: int) -> tuple[list[int], list[list[int]]]:
    """Return the most paid on at most so many whole GPUs, 0 to ``gpus``, and of each item how many of it that takes."""
    best = [0] * (gpus + 1)
    chosen = []
    for item in items:
        before, number = best, [0] * (gpus + 1)
        best = before[:]
        for count in range(item.gpus, gpus + 1):
            for n in range(1, min(item.most, count // item.gpus) + 1):
                pays = before[count - n * item.gpus] + n * item.pays
                if pays > best[count]:
                    best[count], number[count] = pays, n
        chosen.append(number)
    return best, chosen


def most_with(best: Sequence[int], size: int, pays: int, most: int) -> list[int]:
    """Return the most paid in 0 to as many units as ``best`` tells, with up to ``most`` items of a size more."""
    after, part = list(best), 1
    left = min(most, (len(after) - 1) // size) if size else most
    while left > 0 and pays > 0:  # in powers of two
        part = min(part, left)
        left -= part
        for used in range(len(after) - 1, size * part - 1, -1):
            after[used] = max(after[used], after[used - size * part] + part * pays)
        part *= 2
    return after


def _add(filling: Filling, more: Filling, times: int = 1) -> None:
    for bundle, count in more.items() if times else ():
        filling[bundle] = filling.get(bundle, 0) + count * times


class _Shares:
    """The most that shares pay on one GPU, by units in steps of what they have in common."""

    def __init__(self, items: list[Item], most: int) -> None:
        best_of: dict[int, Item] = {}
        for item in items:
            if item.share not in best_of or item.pays > best_of[item.share].pays:
                best_of[item.share] = item
        self._items = list(best_of.values())
        self._step = gcd(*best_of) or 1
        self._best = [0] * (most // self._step + 1 if items else 1)
        self._last = [-1] * len(self._best)
        best, last = self._best, self._last
        for i, item in enumerate(self._items):
            size, pays = item.share // self._step, item.pays
            for unit in range(size, len(best)):
                if best[unit - size] + pays > best[unit]:
                    best[unit], last[unit] = best[unit - size] + pays, i

    def paid(self, units: int) -> int:
        """Return the most that is paid for so many units."""
        return self._best[units // self._step] if self._items else 0

    def filling(self, units: int) -> Filling:
        """Return shares that pay it."""
        filling: Filling = {}
        unit = units // self._step if self._items else 0
        while (i := self._last[unit]) >= 0:
            _add(filling, {self._items[i].bundle: 1})
            unit -= self._items[i].share // self._step
        return filling
