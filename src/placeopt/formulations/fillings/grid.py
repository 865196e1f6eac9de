"""
What no filling of a unit pays more than, for all units at once: dynamic programming over GPU shares and two resources.

For shares that nest: each size divides the next larger one. Demands are rounded down to cells of a grid, and other
resources are left out, so every filling that fits is in the tables. In a cluster that is nearly full most nodes have
little left, and single ones everything; so each tier of units with similar amounts has a grid of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.fillings.groups import BundleGroups, nest
from placeopt.formulations.fillings.units import Units
from placeopt.problem import BoolArray, IntArray

CELLS = 20_000
"""Cells of the grid of node resources of each tier, at most: with 2^14 bounds of 24 varied rounds are 0.5 % higher."""
SPLITS = (0.5, sqrt(0.5), 1.0, sqrt(2.0), 2.0)
"""Parts of the grid tried for the first resource where two bind, beside those of the second."""
RESOURCES = 2
"""Resources that are counted: those that bind on most nodes."""
MOST_STEPS = 1 << 12
"""Lengths of a cell that are tried."""
BLOCK = 1 << 18
"""Lengths x demands between two looks at the clock: some milliseconds."""
TIER_BITS = 2
"""
A tier's amounts of a resource lie within a factor of 2^2. With 2^1 there are twice as many tiers for the same bound;
with one tier cells are made for the largest node, and smaller demands count as nothing.
"""
CPU_ONLY = -1
"""Level of bundle groups that hold no GPU."""


class GridBound:
    """A bound on what fillings pay, at any prices of bundles."""

    def __init__(
        self, bundle_groups: BundleGroups, units: Units, check_time: Callable[[], None], cells: int = CELLS
    ) -> None:
        """
        ``check_time`` is called between tables, and may raise.

        Raises ``Unsupported`` where shares do not nest.
        """
        holds = bundle_groups.gpus > 0
        sizes = np.unique(bundle_groups.milli[holds])
        if not nest(sizes):
            raise Unsupported("there is a share of a GPU that does not divide the next larger one")
        self._size, sizes = len(units), sizes[::-1]
        self._allowed, self._check_time = units.allowed, check_time
        level = np.where(holds, np.searchsorted(-sizes, -bundle_groups.milli), CPU_ONLY)
        shares = _Shares(tuple(sizes.tolist()), level, bundle_groups.gpus)
        counted = np.sort(np.argsort(-units.binding, kind="stable")[:RESOURCES])
        free, demand = units.free[:, counted], bundle_groups.demand[:, units.amounts[counted]]
        room = (units.left[:, :, None] // sizes).sum(axis=1)
        _, tier = np.unique(-(-np.frexp(free.astype(float))[1] // TIER_BITS), axis=0, return_inverse=True)
        self._grids = []
        for t in range(int(tier.max(initial=-1)) + 1):
            here = np.flatnonzero(tier.reshape(-1) == t)
            self._grids.append((here, _Grid(shares, demand, free[here], room[here], cells, check_time)))
        none = [np.flatnonzero(~holds & (grid.need == 0).all(axis=1)) for _, grid in self._grids]
        self.free_of_charge: IntArray = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *none]))
        """Bundle groups that need nothing that some grid counts: any number of them fits. Their price must be 0."""

    def most(self, pays: IntArray) -> IntArray:
        """Shape (U,): no filling of a unit pays more; ``pays``, (D,), is what a bundle of each bundle group pays."""
        out = np.zeros(self._size, dtype=np.int64)
        for here, grid in self._grids:
            out[here] = grid.most(pays, self._allowed[here], self._check_time)
        return out


@dataclass(frozen=True)
class _Shares:
    """Bundles as numbers of shares of one size."""

    sizes: tuple[int, ...]  # thousandths of a GPU, descending; one a level
    level: IntArray  # (D,) index in ``sizes``, or CPU_ONLY
    number: IntArray  # (D,) shares that a bundle holds


class _Grid:
    """The cells of some units."""

    def __init__(
        self,
        shares: _Shares,
        demand: IntArray,
        free: IntArray,
        room: IntArray,
        cells: int,
        check_time: Callable[[], None],
    ) -> None:
        """``demand``, (D, up to 2); ``free``, (units, up to 2); ``room``, (units, levels): shares that they hold."""
        length = _lengths(demand, free.max(axis=0, initial=0), cells, check_time)
        width = (0, RESOURCES - len(length))
        self._shares, self._room = shares, room
        self.need: IntArray = np.pad(demand // length, ((0, 0), width))
        """Shape (D, 2): cells that a bundle takes, rounded down."""
        self._cells: IntArray = np.pad(free // length, ((0, 0), width))

    def most(self, pays: IntArray, allowed: BoolArray, check_time: Callable[[], None]) -> IntArray:
        """Shape (units,): no filling pays more; ``allowed``, (units, D), which bundles may lie there."""
        out = np.zeros(len(self._room), dtype=np.int64)
        shape = tuple((self._cells.max(axis=0, initial=0) + 1).tolist())
        masks, of_unit = np.unique(np.where(pays > 0, allowed, False), axis=0, return_inverse=True)
        for m, mask in enumerate(masks):
            here = np.flatnonzero(of_unit.reshape(-1) == m)
            tables = _Tables(self._shares, self.need, shape, np.where(mask, pays, 0), check_time)
            rooms, of_room = np.unique(self._room[here], axis=0, return_inverse=True)
            for r, room in enumerate(rooms.tolist()):
                some = here[of_room.reshape(-1) == r]
                out[some] = tables.most(tuple(room), self._cells[some])
        return out


@dataclass(frozen=True)
class _Item:
    """A bundle group that is worth a look: shares of its size, cells of the grid, and what it pays."""

    shares: int
    a: int
    b: int
    pays: int


Room = tuple[int, ...]


class _Tables:
    """
    Tables for one vector of payments; made as they are asked for, and shared by units with the same prefix.

    They go from the largest size to the smallest: when ``t`` shares of a size are given to bundles of that size and
    larger ones, ``t x ratio`` of the next are. What is left over of a GPU counts for the sizes that fit into it.
    """

    def __init__(
        self, shares: _Shares, need: IntArray, shape: Room, pays: IntArray, check_time: Callable[[], None]
    ) -> None:
        self._check_time = check_time
        self._items = [_undominated(shares, need, pays, level) for level in range(len(shares.sizes))]
        self._cpu_items = [item for item in _undominated(shares, need, pays, CPU_ONLY) if item.a or item.b]
        self._ratio = [1, *(larger // smaller for larger, smaller in pairwise(shares.sizes))]
        self._levels: dict[Room, list[IntArray]] = {(): [np.zeros(shape, dtype=np.int64)]}
        self._known: dict[Room, IntArray] = {}
        self._last: dict[Room, IntArray] = {}

    def most(self, room: Room, cells: IntArray) -> IntArray:
        """Return what fillings of units with ``room`` shares of each size and ``cells``, (n, 2), pay at most."""
        table = self._last.get(room)
        if table is None:
            table = self._level(room[:-1], room[-1])[room[-1]] if room else self._levels[()][0]
            if self._cpu_items:
                table = table.copy()
                for item in self._cpu_items:
                    _fill_up(table, item)
            self._last[room] = table
        most: IntArray = table[cells[:, 0], cells[:, 1]]
        return most

    def _level(self, before: Room, most: int) -> list[IntArray]:
        """
        Return the tables of level len(before), for 0 up to ``most`` shares of its size at least.

        ``before`` limits a table only where its shares hold more of a larger size: others are shared by all prefixes.
        """
        level = len(before)
        tables = self._levels.setdefault((*before, -1), [])
        for t in range(len(tables), most + 1):
            tight = self._tight(before, t)
            if tight in self._known:
                tables.append(self._known[tight])
                continue
            self._check_time()
            table = self._coarser(before, t).copy() if t == 0 else np.maximum(self._coarser(before, t), tables[t - 1])
            for item in self._items[level]:
                if item.shares <= t:
                    _put(table, tables[t - item.shares], item)
            tables.append(table)
            self._known[tight] = table
        return tables

    def _tight(self, before: Room, shares: int) -> Room:
        """Return the most shares of each size that a table can use; tables with the same ones are equal."""
        out = [shares]
        for level in range(len(before), 0, -1):
            out.append(min(before[level - 1], out[-1] // self._ratio[level]))
        return tuple(reversed(out))

    def _coarser(self, before: Room, shares: int) -> IntArray:
        """Return what larger sizes alone make of ``shares`` shares of a level's size."""
        if not before:
            return self._levels[()][0]
        t = min(shares // self._ratio[len(before)], before[-1])
        return self._level(before[:-1], t)[t]


def _put(table: IntArray, earlier: IntArray, item: _Item) -> None:
    """Allow one more bundle: raise ``table`` to ``earlier``, shifted by what the bundle takes, plus its worth."""
    rows, columns = table.shape
    if item.a < rows and item.b < columns:
        target = table[item.a :, item.b :]
        np.maximum(target, earlier[: rows - item.a, : columns - item.b] + item.pays, out=target)


def _fill_up(table: IntArray, item: _Item) -> None:
    """Allow any number of bundles of a bundle group without GPU, in strips no longer than what one of them takes."""
    rows, columns = table.shape
    if item.b >= columns:
        return
    if item.a:
        for i in range(item.a, rows, item.a):
            target = table[i : i + item.a, item.b :]
            source = table[i - item.a : i - item.a + len(target), : columns - item.b]
            np.maximum(target, source + item.pays, out=target)
    else:
        for j in range(item.b, columns, item.b):
            target = table[:, j : j + item.b]
            np.maximum(target, table[:, j - item.b : j - item.b + target.shape[1]] + item.pays, out=target)


def _undominated(shares: _Shares, need: IntArray, pays: IntArray, level: int) -> list[_Item]:
    """Return the bundle groups of a level that pay, without those that another one beats in everything."""
    candidates = np.flatnonzero((shares.level == level) & (pays > 0))
    takes = np.column_stack((shares.number, need))
    kept = np.zeros((0, 1 + RESOURCES), dtype=np.int64)
    out: list[_Item] = []
    for k in candidates[np.lexsort((*takes[candidates].T[::-1], -pays[candidates]))].tolist():
        if not (kept <= takes[k]).all(axis=1).any():
            kept = np.concatenate([kept, takes[k : k + 1]])
            shares_held, a, b = takes[k].tolist()
            out.append(_Item(shares_held, a, b, int(pays[k])))
    return out


def _lengths(demand: IntArray, most: IntArray, cells: int, check_time: Callable[[], None]) -> IntArray:
    """Return the lengths of a cell in each resource that lose least by rounding, relative to ``most``, of all tried."""

    def tried_of(i: int, most_cells: float) -> tuple[int, int]:
        return _length(demand[:, i], int(most[i]), int(most_cells), check_time)

    if len(most) < RESOURCES:
        return np.array([tried_of(i, cells)[0] for i in range(len(most))], dtype=np.int64)
    root = cells**0.5
    tried = [(tried_of(0, root * split), tried_of(1, root / split)) for split in SPLITS]
    best = min(tried, key=lambda pair: sum(lost / max(int(most[i]), 1) for i, (_, lost) in enumerate(pair)))
    return np.array([length for length, _ in best])


def _length(demand: IntArray, most: int, cells: int, check_time: Callable[[], None]) -> tuple[int, int]:
    """Return the length that makes at most ``cells`` cells, at least half of that, and rounds least; and its loss."""
    least = max(1, -(-most // cells))
    lengths = np.arange(least, 2 * least + 1, max(1, least // MOST_STEPS))
    distinct, times = np.unique(demand, return_counts=True)
    lost = np.zeros(len(lengths), dtype=np.int64)
    at_once = max(1, BLOCK // max(1, len(distinct)))
    for first in range(0, len(lengths), at_once):
        check_time()
        block = slice(first, first + at_once)
        lost[block] = (distinct[None, :] % lengths[block, None]) @ times
    best = int(lost.argmin())
    return int(lengths[best]), int(lost[best])
