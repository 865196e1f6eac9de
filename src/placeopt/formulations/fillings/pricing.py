"""Pricing: the filling of a unit that pays most at given prices, and what none of its fillings exceeds."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from placeopt.formulations.fillings.groups import WHOLE, BundleGroups, Starts
from placeopt.formulations.fillings.packing import Packing, fill
from placeopt.formulations.fillings.pool import Filling
from placeopt.formulations.fillings.units import Units
from placeopt.problem import IntArray

Amounts = NDArray[np.float64]
SUM_BITS = 62
"""Binary digits of sums in 64 bits."""
WEIGHT_BITS = 20
"""Binary digits of the room of a unit, in which weights are whole numbers."""
TURNS = 20
"""Steps, from those of the last pricing on, towards the prices of amounts at which the knapsack proves least."""


class Priced(NamedTuple):
    """What came of pricing a unit."""

    fillings: list[Filling]  # some that pay more than asked for, each more than the one before
    most: int  # no filling of the unit pays more than this or what was asked for, whichever is larger


class Pricing(Protocol):
    """An engine that prices the fillings of units."""

    def price(self, pays: IntArray, unit: int, least: int) -> Priced:
        """
        Return fillings of a unit that pay more than ``least``, the best one last, and a bound on all.

        ``pays``, shape (D,): what a bundle of each bundle group pays, not negative.
        """
        ...


class NodePricing:
    """Fillings of whole nodes by branch and bound: resources that bind, and the shares of each GPU, all at once."""

    def __init__(self, bundle_groups: BundleGroups, starts: Starts, units: Units, most_steps: int) -> None:
        """``most_steps``: Branches for a unit, after which what is left open is bounded, not searched."""
        self._bundle_groups, self._units, self._most_steps = bundle_groups, units, most_steps
        self._cut = False
        self.steps = 0
        """Branches of all searches so far."""
        demand = bundle_groups.demand[:, units.amounts]
        large = np.where(2 * bundle_groups.milli > WHOLE, bundle_groups.gpus, 0)
        self.takes: IntArray = np.column_stack((demand, bundle_groups.gpus * bundle_groups.milli, large))
        """Shape (D, R + 2): of node amounts, of GPU shares, and of GPUs that it takes more than half of."""
        room = np.column_stack((units.free, units.left.sum(axis=1), (2 * units.left > WHOLE).sum(axis=1)))
        self.room: IntArray = room
        """Shape (U, R + 2): what a unit has of the same."""
        self._most = self._bundles_at_most(starts)
        self._prices: list[Amounts | None] = [None] * len(units)  # of amounts, at which each unit was priced last
        self._first: Amounts | None = None

    def begin_at(self, prices: Amounts) -> None:
        """Begin with these prices of amounts, shape (R + 2,), where a unit is priced for the first time."""
        self._first = prices

    def look_further(self, times: int) -> bool:
        """Search so many times as many branches from now on; false where no search had been cut short."""
        further, self._most_steps, self._cut = self._cut, self._most_steps * times, False
        return further

    def _bundles_at_most(self, starts: Starts) -> IntArray:
        """Shape (U, D): how many bundles a unit could hold of a bundle group alone, and jobs need."""
        wanted = np.zeros(len(self._bundle_groups), dtype=np.int64)
        np.add.at(wanted, starts.bundle_group, starts.bundles * starts.most)
        most = np.where(self._units.allowed & ~self._units.takes_nothing, wanted, 0)
        for u, room in enumerate(self.room):
            each = np.where(self.takes > 0, room // np.maximum(self.takes, 1), wanted[:, None])
            most[u] = np.minimum(most[u], each.min(axis=1))
        return most

    def price(self, pays: IntArray, unit: int, least: int) -> Priced:
        """Return fillings of a unit that pay more than ``least``; see `Pricing`."""
        items = np.flatnonzero((pays > 0) & (self._most[unit] > 0))
        takes, most = self.takes[items], self._most[unit][items]
        weight, total = self._weights(unit, items, pays, least)
        order = np.argsort(-pays[items] / np.maximum(weight, 0.5), kind="stable")
        items, takes, most, weight = items[order], takes[order], most[order], weight[order]
        packing = Packing(
            pays=_row(pays[items]),
            wide=_row(self._bundle_groups.gpus[items]),
            milli=_row(self._bundle_groups.milli[items]),
            most=_row(most),
            weight=_row(weight),
            need=_row(takes),
            free=_row(self.room[unit]),
            left=_row(self._units.left[unit]),
        )
        packing.best, packing.most_steps = least, self._most_steps
        fill(packing, total)
        self.steps += packing.steps
        self._cut |= packing.open > packing.best
        group = items.tolist()
        fillings = [tuple(sorted(Counter(group[i] for i in found).items())) for found in packing.found]
        return Priced(fillings, max(packing.best, packing.open))

    def _weights(self, unit: int, items: IntArray, pays: IntArray, least: int) -> tuple[IntArray, int]:
        """Return the weights of items, rounded down, and the room of the unit, rounded up."""
        takes, room, most = self.takes[items], self.room[unit], self._most[unit][items]
        wanted = most @ takes
        used = np.maximum(np.minimum(room, wanted), 1)
        part = takes / used  # (n, R + 2)
        start = self._prices[unit]
        if start is None:
            start = np.full(len(room), pays[items].max(initial=0.0)) if self._first is None else self._first * used
        start = np.where(wanted > 0, start, 0.0)
        prices = _knapsack_prices(part, room / used, most, pays[items].astype(float), start, least)
        self._prices[unit] = prices
        bits = min(WEIGHT_BITS, SUM_BITS - int((most * pays[items]).sum()).bit_length())
        scale = (1 << bits) / max(float(prices @ (room / used)), float((part @ prices).max(initial=0)), 1e-9)
        whole = np.floor(scale * prices / used * (1 << WEIGHT_BITS)).astype(np.int64)
        return takes @ whole >> WEIGHT_BITS, int(-(-(room @ whole) >> WEIGHT_BITS))


def _row(values: IntArray) -> array[int]:
    return array("q", values.ravel().tolist())


def _knapsack_prices(
    part: Amounts, room: Amounts, most: IntArray, pays: Amounts, start: Amounts, reached: float
) -> Amounts:
    """
    Return prices of amounts, shape (R,), at which the bound of the fractional knapsack is low, by subgradients.

    ``part``, shape (n, R), is what an item takes of each amount, in parts of what all take or what there is; ``room``,
    shape (R,), is that. The search begins with the prices ``start``; some filling pays ``reached``, which the bound
    never falls below, so steps are as long as it takes to come there (Polyak 1969), shorter ones after one in vain.
    """
    prices = start
    best, least, step = prices, np.inf, 1.0
    for _ in range(TURNS):
        over = pays - part @ prices
        taken = np.where(over > 0, most, 0)
        bound = float(prices @ room + taken @ np.maximum(over, 0))
        slope = room - taken @ part
        if bound < least:
            best, least, way = prices, bound, slope
        else:
            step /= 2
        length = float(way @ way)
        if length == 0 or least <= reached:
            break
        prices = np.maximum(best - step * (least - reached) / length * way, 0)
    return best
