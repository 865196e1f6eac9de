"""The master: which mix of known fillings is worth most, and what its prices prove."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placeopt.formulations.fillings.groups import BundleGroups, Starts
from placeopt.formulations.fillings.pool import Column, Pool
from placeopt.formulations.fillings.units import Units
from placeopt.linear import NO_LOWER, LinearModel, ModelBuilder
from placeopt.problem import IntArray

PRICE_BITS, SUM_BITS = 20, 61
"""Binary digits of a price behind the point, where sums of them fit into 64 bits."""
CHARGES = 1000
"""Parts of a unit of value in which starts are charged for their cost."""
RELAXES = (
    "where the workers of a job of several nodes are, and which sockets jobs hold",
    "GPU memory, queues and uplinks",
)


class Master:
    """
    Rows of a mix: the bundles of jobs that start lie in fillings; a unit has no more nodes than it has.

    Columns: one per start, then those of the pool in its order, so a basis stays valid when columns are added.
    Rows: bundles by bundle group, nodes by unit, then jobs by job group where a job has several starts.
    """

    def __init__(self, bundle_groups: BundleGroups, starts: Starts, units: Units, pool: Pool) -> None:
        self._bundle_groups, self._starts, self._units, self._pool = bundle_groups, starts, units, pool

    def value_model(self, deadline: float = float("inf"), *, charged: bool = False) -> LinearModel:
        """
        Build the program over the columns of the pool: the most value of jobs that start.

        ``charged``: Less what starts cost, so that among jobs of equal worth the cheaper ones run; in 1 / CHARGES.
        """
        starts, pool, units = self._starts, self._pool, self._units
        builder = ModelBuilder(deadline)
        start = builder.add_variables(0, starts.most, count=len(starts.most))
        unit = np.array([column.unit for column in pool.columns], dtype=np.int64)
        column = builder.add_variables(0, units.count[unit], count=len(unit))
        of_column, group = np.nonzero(pool.held)
        held = (group, column[of_column], -pool.held[of_column, group])
        lie = np.where(units.takes_nothing[starts.bundle_group], 0, starts.bundles)  # the others may lie anywhere
        builder.add_parts(NO_LOWER, 0, (starts.bundle_group, start, lie), held, count=len(self._bundle_groups))
        builder.add_rows(unit, column, 1, NO_LOWER, units.count)
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
        each = np.where(self._units.takes_nothing, 0, takes.T)[:, starts.bundle_group] * starts.bundles  # (A, W)
        amount, column = np.nonzero(each)
        builder.add_rows(amount, start[column], each[amount, column], NO_LOWER, self._units.count @ room)
        self._add_choices(builder, start)
        builder.set_objective(start, starts.value, "max")
        return builder.build()

    def amount_prices(self, model: LinearModel, duals: NDArray[np.float64], takes: IntArray) -> NDArray[np.float64]:
        """Return the prices of amounts, (A,), by the duals of that program, in 1 / ``scale``."""
        amounts = takes.shape[1]
        prices: NDArray[np.float64] = self.scale * np.maximum(
            np.nan_to_num(duals[:amounts] / model.row_divisor[:amounts]), 0
        )
        return prices

    def _add_choices(self, builder: ModelBuilder, start: IntArray) -> None:
        """A job starts in one way at most."""
        starts = self._starts
        several = np.bincount(starts.job_group, minlength=len(starts.jobs)) > 1
        chosen = np.flatnonzero(several[starts.job_group])
        row = np.cumsum(several) - 1
        builder.add_rows(row[starts.job_group[chosen]], start[chosen], 1, NO_LOWER, starts.size[several])

    def prices(self, model: LinearModel, duals: np.ndarray) -> IntArray:
        """Return the worth of a bundle of each group by the duals of ``model``, (D,), unit 1 / ``scale``."""
        own = len(self._bundle_groups)
        return self.whole_prices(np.nan_to_num(duals[:own] / model.row_divisor[:own]) * self.scale)

    def whole_prices(self, exact: NDArray[np.float64]) -> IntArray:
        """Return prices of bundles, (D,), in whole numbers that prove a bound."""
        price = np.rint(np.clip(exact, 0, 2.0**SUM_BITS)).astype(np.int64)
        price[self._units.takes_nothing] = 0
        return price

    @property
    def scale(self) -> int:
        """Parts of a unit of value in which prices are whole numbers: as fine as sums in 64 bits allow."""
        most = np.zeros(len(self._starts.jobs), dtype=np.int64)
        np.maximum.at(most, self._starts.job_group, self._starts.value)
        total = sum(m * n for m, n in zip(most.tolist(), self._starts.size.tolist(), strict=True))
        return 1 << max(0, min(PRICE_BITS, SUM_BITS - int(total).bit_length()))

    def gains(self, price: IntArray, *, scale: int) -> IntArray:
        """Shape (W,): what a job of each start is worth beyond what its bundles pay, in 1 / ``scale``."""
        starts = self._starts
        gains: IntArray = starts.value * scale - starts.bundles * price[starts.bundle_group]
        return gains

    def proven_bound(self, price: IntArray, most: IntArray, units: Units) -> int:
        """
        Bound on the value of what starts, at any prices that are not negative, and 0 for what takes nothing.

        ``price``, shape (D,), is what a bundle pays, in parts of ``scale``; no filling of unit u of ``units`` pays more
        than ``most[u]``. A plan's value is what its jobs are worth less what their bundles pay, plus what these pay.
        The first is at most the sum over job groups of jobs x the best of their starts, or 0; the second lies in
        fillings.
        """
        margin = np.zeros(len(self._starts.jobs), dtype=np.int64)
        np.maximum.at(margin, self._starts.job_group, self.gains(price, scale=self.scale))
        total = sum(m * n for m, n in zip(margin.tolist(), self._starts.size.tolist(), strict=True))
        total += sum(m * n for m, n in zip(most.tolist(), units.count.tolist(), strict=True))
        bound: int = total // self.scale
        return bound

    def chosen(self, values: IntArray) -> tuple[IntArray, list[tuple[Column, int]]]:
        """Return the jobs of each start, (W,), and the columns used, each with its number of nodes."""
        of_start, of_column = np.split(values, [len(self._starts.most)])
        return of_start, [(self._pool.columns[c], int(of_column[c])) for c in np.flatnonzero(of_column)]
