"""
Prices that bound the value, by column generation.

Bundles pay prices to nodes. A plan is worth what its jobs are worth beyond what their bundles pay, and what the bundles
pay; whatever the prices, the first is at most the sum over jobs of the best of their ways, or of none, and the second
the sum over nodes of what bundles can pay there at most (weak duality). Node amounts have prices too, so that on a node
only GPUs are left to be looked at exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt.certificates.master import Branch, Column, Duals, Master
from placeopt.certificates.payment import Item, best_filling
from placeopt.certificates.room import NodeState, Room
from placeopt.linear import LinearModel

SCALE = 1 << 40
"""Parts of a unit of value in which prices are stated: an amount of a node in MiB or millicores costs little."""


class Relaxed(NamedTuple):
    """The solution of a relaxation."""

    values: np.ndarray
    duals: np.ndarray


Solve = Callable[[LinearModel], Relaxed | None]
"""Solves the relaxation of a model; None where that failed or took too long."""


@dataclass(frozen=True, eq=False)
class Prices:
    """Integer prices, in parts of `SCALE`, and what they prove."""

    bundle: tuple[int, ...]
    amounts: tuple[tuple[int, ...], ...]
    """Of each state and amount."""
    branches: tuple[int, ...]
    most: tuple[int, ...]
    """That a node of each state can be paid."""
    bound: int
    """On the value of what may start or change, in parts of `SCALE`."""


class PriceSearch:
    """Searches prices for one branch after the other; fillings of nodes stay."""

    def __init__(self, room: Room, solve: Solve) -> None:
        self._room, self._solve = room, solve
        self._columns: dict[Column, None] = {}
        self._begun: Duals | None = None

    def search(
        self, branches: Sequence[Branch], enough: Callable[[int], bool]
    ) -> tuple[Prices | None, np.ndarray | None]:
        """
        Return the best prices, or the first that prove ``enough``, called with a bound in parts of `SCALE`.

        Also returns how many jobs of each group start in the relaxation, None where it was not solved to its end.
        """
        solved = None if self._begun else self._solved(branches, loosely=True)
        if solved is not None:
            self._begun = solved[0]
        if self._begun is None:
            return None, None
        center = Duals(self._begun.bundle, self._begun.amounts, (0.0,) * len(branches), ())
        best, _ = self._price(center, branches)
        while not enough(best.bound):
            solved = self._solved(branches)
            if solved is None:
                return best, None
            duals, started = solved
            new = False
            for tried in (duals.halfway(center), duals):  # Wentges 1997: prices jump less
                prices, new = self._price(tried, branches, duals.states)
                if prices.bound < best.bound:
                    best, center = prices, tried
                if new:
                    break
            if not new:
                return best, started
        return best, None

    def _solved(self, branches: Sequence[Branch], *, loosely: bool = False) -> tuple[Duals, np.ndarray] | None:
        master = Master(self._room, None if loosely else list(self._columns), branches)
        relaxed = self._solve(master.model)
        return None if relaxed is None else (master.duals(relaxed.duals), master.started(relaxed.values))

    def _items(self, state: NodeState, bundle: Sequence[int], amounts: Sequence[int]) -> tuple[list[Item], int]:
        """Return what pays anything on GPUs beyond the amounts that it takes, and what all without GPUs pay."""
        room, items, alone = self._room, [], 0
        for b, most in state.fitting:
            what = room.bundles[b]
            pays = bundle[b] - sum(price * amount for price, amount in zip(amounts, what.amounts, strict=True))
            if pays > 0 and what.gpus:
                items.append(Item(b, what.gpus, what.share, most, pays))
            elif pays > 0:
                alone += pays * most
        return items, alone

    def _price(
        self, duals: Duals, branches: Sequence[Branch], paid: Sequence[float] | None = None
    ) -> tuple[Prices, bool]:
        """Return what prices prove, and whether a filling pays more than states are ``paid``; those are new columns."""
        room, new, total, most = self._room, False, 0, []
        bundle = [_price(dual) for dual in duals.bundle]
        amounts = [tuple(_price(dual) for dual in row) for row in duals.amounts.tolist()]
        known: dict[tuple[tuple[int, ...], tuple[Item, ...]], tuple[int, dict[int, int]]] = {}
        for s, state in enumerate(room.states):
            items, pays = self._items(state, bundle, amounts[s])
            key = (state.units, tuple(items))
            if key not in known:
                known[key] = best_filling(state.units, room.full, items)
            best, filling = known[key]
            column = Column(s, tuple(sorted(filling.items())))
            if column not in self._columns and filling and (paid is None or best > _price(paid[s]) + 1):
                self._columns[column] = None
                new = True
            pays += best + sum(price * free for price, free in zip(amounts[s], state.free, strict=True))
            most.append(pays)
            total += pays * len(state.nodes)
        starts = [0] * len(room.groups)
        sides = [
            _price(dual if branch.at_most else -dual) for dual, branch in zip(duals.branches, branches, strict=True)
        ]
        for branch, price in zip(branches, sides, strict=True):
            sign = 1 if branch.at_most else -1
            starts[branch.group] += sign * price
            total += sign * price * branch.limit
        for group, start in zip(room.groups, starts, strict=True):
            over = [SCALE * way.value - way.bundles * bundle[way.bundle] - start for way in group.ways]
            idle = [] if group.idle is None else [SCALE * group.idle]
            total += len(group.jobs) * max(over + idle)
        return Prices(tuple(bundle), tuple(amounts), tuple(sides), tuple(most), total), new


def _price(dual: float) -> int:
    """Return a dual as a price; what is no number, or beyond all reason, is 0: any prices will do."""
    return round(dual * SCALE) if 0 < dual < 2.0**50 else 0
