"""The master: the mix of known fillings that is worth most, or costs least; what its prices prove, and what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt.formulations.fillings.groups import BundleGroups, Starts
from placeopt.formulations.fillings.pool import Column
from placeopt.formulations.fillings.spreads import Spread
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import BoolArray, IntArray

FINEST, MOST_SUM = 1 << 20, 1 << 61
"""Parts of a unit of value in which prices are whole numbers, where their sums stay within what 64 bits hold."""
SCALE = 1 << 10
"""Parts of a unit of cost in which prices are whole numbers."""
LARGEST = 2.0**50
"""Prices beyond this are no suggestion, but an accident."""
CHARGES = 1000
"""Parts of a unit of value in which starts are charged for their cost."""
RELAXES = (
    "where the workers of a job of several nodes are, and which sockets jobs hold",
    "GPU memory, queues and uplinks",
)


class Prices(NamedTuple):
    """Prices in whole numbers, of which only those of bundles may be below 0."""

    bundle: IntArray  # (D,) what a bundle pays; below 0 where GPUs that it makes busy are worth more
    value: int  # what a unit of value is worth
    cost: int = 0  # what a unit of cost costs
    cut: int = 0  # of a unit of the cut

    def between(self, other: Prices, weight: float) -> Prices:
        """Return ``weight`` parts of these prices, the others of ``other``."""
        rest = 1 - weight
        bundle = (weight * self.bundle + rest * other.bundle).astype(np.int64)
        return Prices(
            bundle, *(int(weight * own + rest * theirs) for own, theirs in zip(self[1:], other[1:], strict=True))
        )


class Master:
    """
    Rows of a mix: bundles of jobs that start lie in fillings, of which units take no more than they have room for.

    Columns: one per start, then one per spread where nodes have parts, then one per filling in their order, so a basis
    stays valid when fillings are added. A job starts in one way at most.
    """

    def __init__(self, starts: Starts, lies: BoolArray, count: IntArray, most_cut: int = 0) -> None:
        """
        Take what the rows are about.

        - ``lies``: Shape (D,): bundle groups that lie in fillings; the others may lie anywhere, and pay nothing.
        - ``count``: Nodes of each state.
        - ``most_cut``: What starts may pay in the cut.
        """
        self._starts, self._lies, self._count, self._most_cut = starts, lies, count, most_cut
        self._bundles = np.where(lies[starts.bundle_group], starts.bundles, 0)

    def value_model(
        self, fillings: Sequence[Column], deadline: float = float("inf"), *, charged: bool = False
    ) -> LinearModel:
        """
        Build the program over fillings of nodes: the most value of jobs that start. Rows of bundles come first.

        ``charged``: Less what starts cost, so that among jobs of equal worth the cheaper ones run; in 1 / CHARGES.
        """
        starts, builder = self._starts, ModelBuilder(deadline)
        start = builder.add_variables(0, starts.most, count=len(starts.most))
        unit = _ints(column.unit for column in fillings)
        filled = builder.add_variables(0, self._count[unit], count=len(unit))
        held = _held(fillings, filled)
        builder.add_parts(NO_LOWER, 0, (starts.bundle_group, start, self._bundles), held, count=len(self._lies))
        builder.add_rows(unit, filled, 1, NO_LOWER, self._count)
        self._add_choices(builder, start)
        builder.set_objective(start, CHARGES * starts.value - starts.cost if charged else starts.value, "max")
        return builder.build()

    def capacity_model(self, takes: IntArray, room: IntArray) -> LinearModel:
        """
        Build the program over starts alone: together they take no more of any amount than all units have.

        ``takes``, shape (D, A), is what a bundle takes of each amount; ``room``, shape (U, A), what a unit has.
        """
        starts, builder = self._starts, ModelBuilder()
        start = builder.add_variables(0, starts.most, count=len(starts.most))
        each = takes.T[:, starts.bundle_group] * self._bundles  # (A, W)
        amount, column = np.nonzero(each)
        builder.add_rows(amount, start[column], each[amount, column], NO_LOWER, self._count @ room)
        self._add_choices(builder, start)
        builder.set_objective(start, starts.value, "max")
        return builder.build()

    def cost_model(
        self,
        need: int,
        spreads: Sequence[Spread],
        fillings: Sequence[Column],
        room: IntArray,
        takes: IntArray | int = 1,
        deadline: float = float("inf"),
    ) -> LinearModel:
        """
        Build the program over spreads of nodes and fillings of their parts: the least cost of starts worth ``need``.

        A node takes one spread, which leaves its parts to fillings. Rows of value, of the cut and of bundles come
        first. ``room``, shape (U,): of a part, of which each filling ``takes`` some.
        """
        starts, builder = self._starts, ModelBuilder(deadline)
        start = builder.add_variables(0, starts.most, count=len(starts.most))
        node = _ints(spread.node for spread in spreads)
        spread_of = builder.add_variables(0, self._count[node], count=len(spreads))
        at, left = _pairs((s, unit) for s, spread in enumerate(spreads) for unit in spread.units)
        there = np.zeros(len(room), dtype=np.int64)
        np.add.at(there, left, self._count[node[at]])
        unit = _ints(column.unit for column in fillings)
        filled = builder.add_variables(0, there[unit] * room[unit] // takes, count=len(fillings))
        builder.add_row(start, starts.value, need, NO_UPPER)
        builder.add_row(start, starts.pays, NO_LOWER, self._most_cut)
        crossing, wide = _pairs((s, d) for s, spread in enumerate(spreads) for d, _ in spread.crossings)
        held = _held(fillings, filled), (wide, spread_of[crossing], -1)
        # equal: what lies somewhere starts, too, or it would make GPUs busy for nothing
        builder.add_parts(0, 0, (starts.bundle_group, start, self._bundles), *held, count=len(self._lies))
        builder.add_rows(node, spread_of, 1, NO_LOWER, self._count)
        builder.add_parts(NO_LOWER, 0, (unit, filled, takes), (left, spread_of[at], -room[left]), count=len(room))
        self._add_choices(builder, start)
        own = _ints(spread.cost for spread in spreads), _ints(column.cost for column in fillings)
        builder.set_objective(np.concatenate((start, spread_of, filled)), np.concatenate((starts.cost, *own)), "min")
        return builder.build()

    def _add_choices(self, builder: ModelBuilder, start: IntArray) -> None:
        """A job starts in one way at most."""
        starts = self._starts
        several = np.bincount(starts.job_group, minlength=len(starts.jobs)) > 1
        chosen = np.flatnonzero(several[starts.job_group])
        row = np.cumsum(several) - 1
        builder.add_rows(row[starts.job_group[chosen]], start[chosen], 1, NO_LOWER, starts.size[several])

    @property
    def scale(self) -> int:
        """Parts of a unit of value in which prices are whole numbers: as fine as sums in 64 bits allow."""
        most = np.zeros(len(self._starts.jobs), dtype=np.int64)
        np.maximum.at(most, self._starts.job_group, self._starts.value)
        total = sum(m * n for m, n in zip(most.tolist(), self._starts.size.tolist(), strict=True))
        return max(1, min(FINEST, MOST_SUM >> int(total).bit_length()))

    def amount_prices(self, model: LinearModel, duals: NDArray[np.float64], amounts: int) -> NDArray[np.float64]:
        """Return the prices of so many amounts by the duals of the capacity model, in 1 / ``scale`` of a value."""
        prices: NDArray[np.float64] = self.scale * np.maximum(
            np.nan_to_num(duals[:amounts] / model.row_divisor[:amounts]), 0
        )
        return prices

    def value_prices(self, model: LinearModel, duals: NDArray[np.float64]) -> IntArray:
        """Return the prices of bundles, (D,), that duals of the value model suggest, in 1 / ``scale`` of a value."""
        own = len(self._lies)
        return self.whole_prices(np.nan_to_num(duals[:own] / model.row_divisor[:own]) * self.scale)

    def whole_prices(self, exact: NDArray[np.float64]) -> IntArray:
        """Return prices of bundles, (D,), in 1 / ``scale`` of a value, as whole numbers."""
        price = np.rint(np.clip(exact, 0, float(MOST_SUM))).astype(np.int64)
        return np.where(self._lies, price, 0)

    def cost_prices(self, model: LinearModel, duals: NDArray[np.float64]) -> Prices:
        """Return the prices that duals of the cost model suggest, in 1 / SCALE of a cost."""
        exact = np.clip(np.nan_to_num(duals) / model.row_divisor * SCALE, -LARGEST, LARGEST)
        bundle = np.where(self._lies, np.rint(-exact[2 : 2 + len(self._lies)]).astype(np.int64), 0)
        return Prices(bundle, int(max(exact[0], 0)), SCALE, int(max(-exact[1], 0)))

    def value_bound(self, price: IntArray, most: IntArray, count: IntArray) -> int:
        """Bound on the value of what starts in any plan, by prices of bundles alone; see `most_beyond`."""
        return self.most_beyond(Prices(price, self.scale), most, count) // self.scale

    def most_beyond(self, prices: Prices, most: IntArray, count: IntArray) -> int:
        """
        Bound on what all starts of a plan are worth beyond their cost, at any prices.

        What a node of state n holds, of which there are ``count[n]``, pays no more than ``most[n]`` beyond its cost. So
        starts are worth no more beyond their cost than what jobs gain by starting beyond what their bundles pay, and
        what nodes are paid beyond their cost. The first is at most the sum over job groups of jobs x the best of their
        starts, or 0.
        """
        starts = self._starts
        gains = [
            prices.value * value - prices.cost * cost - bundles * price - prices.cut * pays
            for value, cost, bundles, price, pays in zip(
                starts.value.tolist(),
                starts.cost.tolist(),
                self._bundles.tolist(),
                prices.bundle[starts.bundle_group].tolist(),
                starts.pays.tolist(),
                strict=True,
            )
        ]
        margin = [0] * len(starts.jobs)
        for group, gain in zip(starts.job_group.tolist(), gains, strict=True):
            margin[group] = max(margin[group], gain)
        each, there = (margin, starts.size.tolist()), (most.tolist(), count.tolist())
        total = sum(gain * number for pair in (each, there) for gain, number in zip(*pair, strict=True))
        return int(total) + prices.cut * self._most_cut

    def chosen(self, values: IntArray, fillings: Sequence[Column]) -> tuple[IntArray, list[tuple[Column, int]]]:
        """Return the jobs of each start, (W,), and the fillings used, each with its number of nodes."""
        of_start, filled = np.split(values, [len(self._starts.most)])
        return of_start, [(fillings[c], int(filled[c])) for c in np.flatnonzero(filled).tolist()]


def _held(fillings: Sequence[Column], filled: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return rows, columns and coefficients of what fillings hold of each bundle group."""
    item, number = _pairs(held for column in fillings for held in column.filling)
    return item, np.repeat(filled, [len(column.filling) for column in fillings]), -number


def _ints(values: Iterable[int]) -> IntArray:
    return np.array(list(values), dtype=np.int64)


def _pairs(pairs: Iterable[tuple[int, int]]) -> tuple[IntArray, IntArray]:
    """Return pairs as two arrays."""
    listed = list(pairs)
    first, second = np.array(listed, dtype=np.int64).reshape(len(listed), 2).T
    return first, second


class CarriedPrices:
    """
    Prices of bundle groups from earlier rounds, by what a bundle asks for.

    Any prices prove a bound, so these need no check: after few changes they are close to the best ones.
    """

    def __init__(self) -> None:
        self._worth: dict[tuple[int, ...], float] = {}

    def keep(self, bundle_groups: BundleGroups, price: IntArray, scale: int) -> None:
        """Keep prices, (D,), in 1 / ``scale`` of a value, in the place of all earlier ones."""
        self._worth = dict(zip(_keys(bundle_groups), (price / scale).tolist(), strict=True))

    def put_into(self, bundle_groups: BundleGroups, price: IntArray, scale: int) -> int:
        """Replace prices, (D,), by those that are kept; returns how many bundle groups have one."""
        known = 0
        for k, key in enumerate(_keys(bundle_groups)):
            worth = self._worth.get(key)
            if worth is not None:
                price[k] = round(min(worth * scale, 2.0**61))
                known += 1
        return known


def _keys(bundle_groups: BundleGroups) -> list[tuple[int, ...]]:
    """Share, number of GPUs and demand of each bundle group."""
    rows = zip(bundle_groups.milli.tolist(), bundle_groups.gpus.tolist(), bundle_groups.demand.tolist(), strict=True)
    return [(milli, gpus, *demand) for milli, gpus, demand in rows]
