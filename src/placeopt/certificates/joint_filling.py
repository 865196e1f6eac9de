"""The most that bundles pay on one node where sums of shares and amounts are looked at together, and how."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

from placeopt.certificates.payment import Filling, most_with

MOST_STEPS = 1 << 15
"""Branches for a node; ``tools/verify.py`` allows as many for a proof, times four."""


class JointItem(NamedTuple):
    """A bundle that a node may have up to ``most`` times, each of which pays ``price``."""

    bundle: int
    units: int
    """Of all GPUs."""
    most: int
    pays: int
    """The price less what the amounts cost that it takes."""
    price: int
    amounts: tuple[int, ...]


def best_joint_filling(
    units: int, free: Sequence[int], items: Sequence[JointItem], beyond: int, known: int
) -> tuple[int, Filling] | None:
    """
    Return the most that items pay on so many units and amounts ``free``, and a filling that pays more than ``known``.

    Branch and bound over how often each item is there. ``beyond`` is what all amounts cost at the prices of
    `JointItem.pays`: no filling pays more than that and what its items pay beyond their amounts (Lagrange). The filling
    is empty where none pays more than ``known``, which is then returned; None where that takes too many steps.
    """
    items = sorted(items, key=lambda item: -item.pays)
    step = gcd(*(item.units for item in items)) or 1
    tables = [[0] * (units // step + 1)]
    for item in reversed(items):
        tables.append(most_with(tables[-1], item.units // step, item.pays, item.most))
    tables.reverse()
    best, found, chosen, steps = known, Filling(), [0] * len(items), 0

    def search(at: int, room: int, free: tuple[int, ...], pays: int, paid: int) -> bool:
        """Return false where steps ran out."""
        nonlocal best, found, steps
        if paid > best:
            best = paid
            found = {item.bundle: n for item, n in zip(items[:at], chosen[:at], strict=True) if n}
        if at == len(items) or beyond + pays + tables[at][room] <= best:
            return True
        steps += 1
        if steps > MOST_STEPS:
            return False
        item = items[at]
        takes = [(left, amount) for left, amount in zip(free, item.amounts, strict=True) if amount]
        fits = min([item.most, *(left // amount for left, amount in takes)])
        size = item.units // step
        fits = min(fits, room // size) if size else fits
        for n in range(fits, -1, -1):
            chosen[at] = n
            left = tuple(left - n * amount for left, amount in zip(free, item.amounts, strict=True))
            if not search(at + 1, room - n * size, left, pays + n * item.pays, paid + n * item.price):
                return False
        return True

    return (best, found) if search(0, units // step, tuple(free), 0, 0) else None
