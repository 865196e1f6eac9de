"""The master of costs: which mix of known fillings costs least among plans of a value, and what its prices prove."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt.formulations.capacity_cut import CapacityCut
from placeopt.formulations.fillings.groups import BundleGroups, Starts
from placeopt.formulations.fillings.parts import Nodes
from placeopt.formulations.fillings.pool import Column
from placeopt.formulations.fillings.spreads import Spread
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import IntArray

SCALE = 1 << 10
"""Parts of a unit of cost in which prices are whole numbers."""
LARGEST = 2.0**50
"""Prices beyond this are no suggestion, but an accident."""


class CostPrices(NamedTuple):
    """Prices, in 1 / SCALE of a cost; those of value and cut are not negative."""

    bundle: IntArray  # (D,) what a bundle pays, below 0 where GPUs that it makes busy are worth more
    value: int  # of a unit of value
    cut: int  # of a unit of the cut

    def between(self, other: CostPrices, weight: float) -> CostPrices:
        """Return ``weight`` parts of these prices, the others of ``other``."""
        rest = 1 - weight
        return CostPrices(
            bundle=(weight * self.bundle + rest * other.bundle).astype(np.int64),
            value=int(weight * self.value + rest * other.value),
            cut=int(weight * self.cut + rest * other.cut),
        )


class CostMaster:
    """
    Rows of a mix: bundles of jobs that start lie in fillings of parts, or in several parts of a node by its spread.

    A node takes one spread, which leaves its parts to fillings. Columns: starts, spreads, fillings. Rows: the value,
    the cut, bundles by bundle group, nodes by state, parts by unit, jobs by job group where a job has several starts.
    """

    def __init__(
        self,
        starts: Starts,
        groups: BundleGroups,
        nodes: Nodes,
        *,
        need: int,
        cut: CapacityCut | None = None,
        cut_pays: IntArray | None = None,
    ) -> None:
        """
        Take what the rows are about.

        - ``need``: Value that jobs that start have to reach; the known fillings hold a plan that does.
        - ``cut``: What is known of room.
        - ``cut_pays``: Shape (W,): what a job of each start pays there.
        """
        self._starts, self._groups, self._nodes, self._need = starts, groups, nodes, need
        self._most_cut = 0 if cut is None else cut.most
        self._cut_pays = np.zeros(len(starts.most), dtype=np.int64) if cut_pays is None else cut_pays
        self._lies = groups.gpus[starts.bundle_group] > 0  # others take no part

    def model(
        self,
        spreads: Sequence[Spread],
        fillings: Sequence[Column],
        room: IntArray,
        takes: IntArray | int = 1,
        deadline: float = float("inf"),
    ) -> LinearModel:
        """
        Build the program over some spreads and fillings: the least cost of what starts, beyond what is known.

        ``room``, shape (U,): of a part, of which each filling ``takes`` some.
        """
        starts, nodes = self._starts, self._nodes.count
        builder = ModelBuilder(deadline)
        start = builder.add_variables(0, starts.most, count=len(starts.most))
        node = _ints([spread.node for spread in spreads])
        spread_of = builder.add_variables(0, nodes[node], count=len(spreads))
        at, left = _pairs((s, unit) for s, spread in enumerate(spreads) for unit in spread.units)
        there = np.zeros(len(room), dtype=np.int64)
        np.add.at(there, left, nodes[node[at]])
        unit = _ints([column.unit for column in fillings])
        filled = builder.add_variables(0, there[unit] * room[unit] // takes, count=len(fillings))
        builder.add_row(start, starts.value, self._need, NO_UPPER)
        builder.add_row(start, self._cut_pays, NO_LOWER, self._most_cut)
        crossing, wide = _pairs((s, d) for s, spread in enumerate(spreads) for d, _ in spread.crossings)
        entries = [(c, d, n) for c, column in enumerate(fillings) for d, n in column.filling]
        holds, item, number = np.array(entries, dtype=np.int64).reshape(len(entries), 3).T
        # equal: what lies somewhere starts, too, or it would make GPUs busy for nothing
        taken = starts.bundle_group, start, np.where(self._lies, starts.bundles, 0)
        held = (item, filled[holds], -number), (wide, spread_of[crossing], -1)
        builder.add_parts(0, 0, taken, *held, count=len(self._groups))
        builder.add_rows(node, spread_of, 1, NO_LOWER, nodes)
        builder.add_parts(NO_LOWER, 0, (unit, filled, takes), (left, spread_of[at], -room[left]), count=len(room))
        several = np.bincount(starts.job_group, minlength=len(starts.jobs)) > 1
        chosen = np.flatnonzero(several[starts.job_group])
        row = np.cumsum(several) - 1
        builder.add_rows(row[starts.job_group[chosen]], start[chosen], 1, NO_LOWER, starts.size[several])
        columns = np.concatenate((start, spread_of, filled))
        own = [spread.cost for spread in spreads], [column.cost for column in fillings]
        builder.set_objective(columns, np.concatenate((starts.cost, *map(_ints, own))), "min")
        return builder.build()

    def prices(self, model: LinearModel, duals: NDArray[np.float64]) -> CostPrices:
        """Return the prices that duals of the rows of ``model`` suggest."""
        exact = np.clip(np.nan_to_num(duals) / model.row_divisor * SCALE, -LARGEST, LARGEST)
        bundle = np.rint(-exact[2 : 2 + len(self._groups)]).astype(np.int64)
        return CostPrices(bundle, int(max(exact[0], 0)), int(max(-exact[1], 0)))

    def proven_bound(self, prices: CostPrices, most: IntArray) -> int:
        """
        Bound on the cost of what starts, at any prices, in 1 / SCALE of a cost.

        What a node of state n holds pays no more than ``most[n]`` beyond its cost. Whatever starts is worth its value
        and pays for its bundles: its cost is at least what its value is worth, less what each job gains by it, less
        what nodes are paid.
        """
        starts = self._starts
        bundle = np.where(self._groups.gpus > 0, prices.bundle, 0)
        gains = [
            prices.value * value - SCALE * cost - bundles * price - prices.cut * pays
            for value, cost, bundles, price, pays in zip(
                starts.value.tolist(),
                starts.cost.tolist(),
                starts.bundles.tolist(),
                bundle[starts.bundle_group].tolist(),
                self._cut_pays.tolist(),
                strict=True,
            )
        ]
        margin = [0] * len(starts.jobs)
        for group, gain in zip(starts.job_group.tolist(), gains, strict=True):
            margin[group] = max(margin[group], gain)
        total = prices.value * self._need - prices.cut * self._most_cut
        total -= sum(m * n for m, n in zip(margin, starts.size.tolist(), strict=True))
        total -= sum(m * n for m, n in zip(most.tolist(), self._nodes.count.tolist(), strict=True))
        return int(total)


def _ints(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def _pairs(pairs: Iterable[tuple[int, int]]) -> tuple[IntArray, IntArray]:
    """Return pairs as two arrays."""
    listed = list(pairs)
    first, second = np.array(listed, dtype=np.int64).reshape(len(listed), 2).T
    return first, second
