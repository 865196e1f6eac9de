"""The master of costs: which mix of known fillings costs least among plans of a value, and what its prices prove."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt.formulations.capacity_cut import CapacityCut
from placeopt.formulations.fillings.groups import WHOLE, BundleGroups, Starts
from placeopt.formulations.fillings.parts import Parts
from placeopt.formulations.fillings.pieces import Pieces, Ways
from placeopt.formulations.fillings.pool import Pool
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import BoolArray, IntArray

SCALE = 1 << 10
"""Parts of a unit of cost in which prices are whole numbers."""
LARGEST = 2.0**50
"""Prices beyond this are no suggestion, but an accident."""
NO_WAY = 1 << 60
"""Price of a bundle that fits nowhere."""


class CostPrices(NamedTuple):
    """Prices, in 1 / SCALE of a cost, none negative."""

    piece: IntArray  # (P,) what a piece pays
    value: int  # of a unit of value
    cut: int  # of a unit of the cut
    large: IntArray  # (L,) of a bundle of at least so many GPUs

    def between(self, other: CostPrices, weight: float) -> CostPrices:
        """Return ``weight`` parts of these prices, the others of ``other``."""
        rest = 1 - weight
        return CostPrices(
            piece=(weight * self.piece + rest * other.piece).astype(np.int64),
            value=int(weight * self.value + rest * other.value),
            cut=int(weight * self.cut + rest * other.cut),
            large=(weight * self.large + rest * other.large).astype(np.int64),
        )


class _Fill(NamedTuple):
    """Z columns that fill units, and what they hold, as entries (piece, column, number)."""

    unit: IntArray  # (Z,)
    upper: IntArray  # (Z,) limit on each
    cost: IntArray  # (Z,)
    takes: IntArray  # (Z,) of the unit's room
    room: IntArray  # (U,)
    piece: IntArray
    column: IntArray
    number: IntArray


class CostMaster:
    """
    Rows of a mix: bundles of jobs that start lie in some way, ways consist of pieces, pieces lie in fillings of parts.

    A bundle of so many whole GPUs or more takes them of one node, which is stated for every number.

    Columns: starts, ways, fillings of the pool in its order. Rows: the value, the cut, large bundles by number of GPUs,
    bundles by bundle group, pieces by kind, parts by unit, then jobs by job group where a job has several starts.
    """

    def __init__(
        self,
        starts: Starts,
        bundle_groups: BundleGroups,
        ways: Ways,
        pieces: Pieces,
        parts: Parts,
        pool: Pool,
        *,
        need: int,
        idle: IntArray,
        cut: CapacityCut | None = None,
        cut_pays: IntArray | None = None,
    ) -> None:
        """
        Take what the rows are about.

        - ``need``: Value that jobs that start have to reach; the pool holds a plan that does.
        - ``idle``: Shape (N,): GPUs of each node that a job may take as a whole.
        - ``cut``: What is known of room.
        - ``cut_pays``: Shape (W,): what a job of each start pays there.
        """
        self._starts, self._bundle_groups, self._ways, self._pieces = starts, bundle_groups, ways, pieces
        self._parts, self._pool, self._need = parts, pool, need
        self._most_cut = 0 if cut is None else cut.most
        self._cut_pays = np.zeros(len(starts.most), dtype=np.int64) if cut_pays is None else cut_pays
        whole = np.where(bundle_groups.milli == WHOLE, bundle_groups.gpus, 0)[ways.bundle_group]  # (Y,)
        sizes = np.unique(whole[whole > 0])
        self._large: BoolArray = whole >= sizes[:, None]  # (L, Y)
        self._room: IntArray = (idle // sizes[:, None]).sum(axis=1)  # (L,)
        self._lies = bundle_groups.gpus[starts.bundle_group] > 0  # others take no part

    def model(self, deadline: float = float("inf")) -> LinearModel:
        """Build the program over the columns of the pool: the least cost of what starts, beyond what is known."""
        pool, parts = self._pool, self._parts
        of_column, piece = np.nonzero(pool.held)
        unit = np.array([column.unit for column in pool.columns], dtype=np.int64)
        held = piece, of_column, pool.held[of_column, piece]
        return self._build(_Fill(unit, parts.count[unit], pool.costs, np.ones_like(unit), parts.count, *held), deadline)

    def spread_model(self, deadline: float = float("inf")) -> LinearModel:
        """
        Build the program over pieces apart, each with what it costs beside what runs: the first prices are its duals.

        The parts of a unit have slots together, whatever their GPUs hold; the rows are those of the other program.
        """
        parts = self._parts
        unit, piece = np.nonzero(parts.allowed)
        slots, takes, profile = parts.slots * parts.count, parts.takes[piece], self._pieces.profile[piece]
        beside = np.where(profile < 0, 0, np.pad(parts.beside, ((0, 0), (0, 1)))[unit, profile])
        held = piece, np.arange(len(unit)), np.ones_like(unit)
        return self._build(_Fill(unit, slots[unit] // takes, beside, takes, slots, *held), deadline)

    def _build(self, fill: _Fill, deadline: float) -> LinearModel:
        starts, ways = self._starts, self._ways
        builder = ModelBuilder(deadline)
        start = builder.add_variables(0, starts.most, count=len(starts.most))
        most = np.zeros(len(self._bundle_groups), dtype=np.int64)
        np.add.at(most, starts.bundle_group, starts.bundles * starts.most)
        way = builder.add_variables(0, most[ways.bundle_group], count=len(ways.cost))
        column = builder.add_variables(0, fill.upper, count=len(fill.unit))
        builder.add_row(start, starts.value, self._need, NO_UPPER)
        builder.add_row(start, self._cut_pays, NO_LOWER, self._most_cut)
        size, wide = np.nonzero(self._large)
        builder.add_rows(size, way[wide], 1, NO_LOWER, self._room)
        taken = starts.bundle_group, start, np.where(self._lies, starts.bundles, 0)
        builder.add_parts(NO_LOWER, 0, taken, (ways.bundle_group, way, -1), count=len(self._bundle_groups))
        row, kind = np.nonzero(ways.pieces)
        made = kind, way[row], ways.pieces[row, kind]
        builder.add_parts(NO_LOWER, 0, made, (fill.piece, column[fill.column], -fill.number), count=len(self._pieces))
        builder.add_rows(fill.unit, column, fill.takes, NO_LOWER, fill.room)
        several = np.bincount(starts.job_group, minlength=len(starts.jobs)) > 1
        chosen = np.flatnonzero(several[starts.job_group])
        number = np.cumsum(several) - 1
        builder.add_rows(number[starts.job_group[chosen]], start[chosen], 1, NO_LOWER, starts.size[several])
        columns, costs = np.concatenate((start, way, column)), np.concatenate((starts.cost, ways.cost, fill.cost))
        builder.set_objective(columns, costs, "min")
        return builder.build()

    def prices(self, model: LinearModel, duals: NDArray[np.float64]) -> CostPrices:
        """Return the prices that duals of the rows of ``model`` suggest."""
        exact = np.clip(np.nan_to_num(duals) / model.row_divisor * SCALE, -LARGEST, LARGEST)
        ends = 2 + len(self._room)
        first = ends + len(self._bundle_groups)
        piece = np.rint(np.maximum(-exact[first : first + len(self._pieces)], 0)).astype(np.int64)
        large = np.rint(np.maximum(-exact[2:ends], 0)).astype(np.int64)
        return CostPrices(piece, int(max(exact[0], 0)), int(max(-exact[1], 0)), large)

    def proven_bound(self, prices: CostPrices, most: IntArray) -> int:
        """
        Bound on the cost of what starts, at any prices.

        No filling of unit u pays more than ``most[u]`` beyond its cost. Whatever starts is worth its value and pays
        its way: its cost is at least what its value is worth, less what each job gains by it, less what parts are paid.
        """
        starts, ways = self._starts, self._ways
        each = SCALE * ways.cost + ways.pieces @ prices.piece + prices.large @ self._large
        bundle = np.full(len(self._bundle_groups), NO_WAY, dtype=np.int64)
        np.minimum.at(bundle, ways.bundle_group, each)
        bundle[self._bundle_groups.gpus == 0] = 0
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
        total -= sum(p * n for p, n in zip(prices.large.tolist(), self._room.tolist(), strict=True))
        total -= sum(m * n for m, n in zip(margin, starts.size.tolist(), strict=True))
        total -= sum(m * n for m, n in zip(most.tolist(), self._parts.count.tolist(), strict=True))
        bound: int = -(-total // SCALE)
        return bound
