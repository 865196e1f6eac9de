"""Pricing: the fillings of units that pay most at given prices, and what none of their fillings exceeds."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from placeopt.formulations.fillings.groups import BundleGroups, Starts
from placeopt.formulations.fillings.packing import Packing, fill
from placeopt.formulations.fillings.pool import Filling
from placeopt.formulations.fillings.units import Units
from placeopt.problem import GPU_MILLI, IntArray

Amounts = NDArray[np.float64]
MOST_SUM = 1 << 62
"""Sums up to this fit into 64 bits."""
FINEST = 1 << 20
"""Parts of the room of a unit in which weights are whole numbers, at most."""
TURNS = 20
"""Steps, from those of the last pricing on, towards the prices of amounts at which the knapsack proves least."""


class Priced(NamedTuple):
    """What came of pricing U units."""

    fillings: list[tuple[int, Filling]]  # (unit, filling) of some that pay more than asked for, each unit's best last
    most: IntArray  # (U,) no filling of the unit pays more than this or what was asked for, whichever is larger


class Pricing(Protocol):
    """An engine that prices the fillings of all units."""

    def price(self, pays: IntArray, least: IntArray) -> Priced:
        """
        Return fillings that pay more than ``least``, shape (U,), beyond what they cost, and a bound on all.

        ``pays``, shape (items,): what an item of a filling pays, not negative.
        """
        ...


class NodePricing:
    """Fillings of whole nodes by branch and bound: resources that bind, and the shares of each GPU, all at once."""

    def __init__(
        self,
        bundle_groups: BundleGroups,
        starts: Starts,
        units: Units,
        most_steps: int,
        check_time: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Take what is to be priced.

        - ``most_steps``: Branches for all units together, after which what is left open is bounded, not searched. Those
          that took fewest last time come first, and leave the others what they do not need. Whenever the branches of
          all searches have doubled, one may take as many as all before: that proves most where few units are hard.
        - ``check_time``: Is called now and then, and may raise.
        """
        self._bundle_groups, self._units = bundle_groups, units
        self._most_steps = self._deep = most_steps
        self._took: IntArray = np.zeros(len(units), dtype=np.int64)
        self._check_time = check_time
        self._cut = False
        self.steps = 0
        """Branches of all searches so far."""
        demand = bundle_groups.demand[:, units.amounts]
        large = np.where(2 * bundle_groups.milli > GPU_MILLI, bundle_groups.gpus, 0)
        self.takes: IntArray = np.column_stack((demand, bundle_groups.gpus * bundle_groups.milli, large))
        """Shape (D, R + 2): of node amounts, of GPU shares, and of GPUs that it takes more than half of."""
        most_large = (units.left // (GPU_MILLI // 2 + 1)).sum(axis=1)  # more than one of a GPU that is overcommitted
        room = np.column_stack((units.free, units.left.sum(axis=1), most_large))
        self.room: IntArray = room
        """Shape (U, R + 2): what a unit has of the same."""
        self._most = self._bundles_at_most(starts)
        self._prices: Amounts | None = None  # (U, R + 2) of amounts, at which units were priced last

    def begin_at(self, prices: Amounts) -> None:
        """Begin with these prices of amounts, shape (R + 2,)."""
        self._prices = np.tile(prices, (len(self._units), 1))

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

    def price(self, pays: IntArray, least: IntArray) -> Priced:
        """Return fillings that pay more than ``least``; see `Pricing`."""
        out = Priced([], least.copy())
        weight, total = self._weights(pays, least)
        left = self.steps if self.steps >= 2 * self._deep else self._most_steps
        is_deep = left > self._most_steps
        for before, unit in enumerate(np.argsort(self._took, kind="stable").tolist()):
            self._check_time()
            items, packing = self._packing(pays, unit, weight[unit])
            packing.best, packing.most_steps = int(least[unit]), left // (len(self._units) - before)
            packing.check_time = self._check_time
            fill(packing, int(total[unit]))
            self._took[unit] = packing.steps
            left -= packing.steps
            self.steps += packing.steps
            self._cut |= packing.open > packing.best
            out.most[unit] = max(packing.best, packing.open)
            groups = (Counter(items[i] for i in held) for held in packing.found)
            out.fillings.extend((unit, tuple(sorted(number.items()))) for number in groups)
        self._deep = self.steps if is_deep else self._deep
        return out

    def _packing(self, pays: IntArray, unit: int, weight: IntArray) -> tuple[list[int], Packing]:
        """Return the bundle groups that may lie in a unit, and what is to be packed, both in the order of a search."""
        items = np.flatnonzero((pays > 0) & (self._most[unit] > 0))
        items = items[np.argsort(-pays[items] / np.maximum(weight[items], 0.5), kind="stable")]
        return items.tolist(), Packing(
            pays=_row(pays[items]),
            wide=_row(self._bundle_groups.gpus[items]),
            milli=_row(self._bundle_groups.milli[items]),
            most=_row(self._most[unit][items]),
            weight=_row(weight[items]),
            need=_row(self.takes[items]),
            free=_row(self.room[unit]),
            left=_row(self._units.left[unit]),
        )

    def _weights(self, pays: IntArray, least: IntArray) -> tuple[IntArray, IntArray]:
        """Shapes (U, D), (U,): the weights of items, rounded down, and the room of each unit, rounded up."""
        most = np.where(pays > 0, self._most, 0)
        wanted, paid = most @ self.takes, pays.astype(np.float64)
        used = np.maximum(np.minimum(self.room, wanted), 1)
        start = np.full(used.shape, paid.max(initial=0)) if self._prices is None else self._prices * used
        knapsacks = _Knapsacks(paid, self.takes.astype(np.float64), self.room / used, most, used)
        prices = knapsacks.prices(np.where(wanted > 0, start, 0.0), least) / used
        self._prices = prices
        parts = np.minimum(FINEST, np.ldexp(float(MOST_SUM), -np.frexp(most @ paid)[1]))
        each = np.where(most > 0, prices @ knapsacks.takes.T, 0).max(axis=1, initial=2.0**-30)
        scale = parts / np.maximum((prices * self.room).sum(axis=1), each)
        whole = np.floor(scale[:, None] * prices * FINEST).astype(np.int64)
        return whole @ self.takes.T // FINEST, -(-(whole * self.room).sum(axis=1) // FINEST)


def _row(values: IntArray) -> array[int]:
    return array("q", values.ravel().tolist())


class _Knapsacks(NamedTuple):
    """The fractional knapsack with several amounts of each of U units, n items."""

    pays: Amounts  # (n,)
    takes: Amounts  # (n, R) of each amount
    room: Amounts  # (U, R) of a unit, in parts of what all its items take or what there is
    most: IntArray  # (U, n) of an item that the unit takes
    used: IntArray  # (U, R) those parts

    def prices(self, start: Amounts, reached: IntArray) -> Amounts:
        """
        Return prices of parts, shape (U, R), at which the bounds of the knapsacks are low, by subgradients.

        The search begins with the prices ``start``; some filling of each unit pays ``reached``, (U,), which no bound
        falls below, so steps are as long as it takes to come there (Polyak 1969), shorter ones after one in vain.
        """
        prices = best = way = start
        least, step = np.full(len(start), np.inf), np.ones(len(start))
        for _ in range(TURNS):
            over = self.pays - (prices / self.used) @ self.takes.T
            taken = np.where(over > 0, self.most, 0).astype(np.float64)
            bound = (prices * self.room).sum(axis=1) + (taken * np.maximum(over, 0)).sum(axis=1)
            better = bound < least
            slope = self.room - taken @ self.takes / self.used
            best, way = (np.where(better[:, None], *pair) for pair in ((prices, best), (slope, way)))
            least, step = np.where(better, bound, least), np.where(better, step, step / 2)
            length = (way * way).sum(axis=1)
            open_ones = (length > 0) & (least > reached)
            if not open_ones.any():
                break
            far = np.divide(step * (least - reached), length, out=np.zeros_like(length), where=open_ones)
            prices = np.maximum(best - far[:, None] * way, 0)
        return best
