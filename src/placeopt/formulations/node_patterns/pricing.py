"""pricing: the pattern that pays most, for all states at once, by dynamic programming."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from placeopt.formulations.node_patterns.groups import CPU_ONLY, BundleGroups, NodeStates
from placeopt.problem import BoolArray, IntArray

CELLS = 20_000
"""Cells of the grid of node resources."""
SPLITS = (0.5, 0.7, 1.0, 1.4, 2.0)
"""Parts of the grid tried for the first resource where two bind, beside those of the second."""
RESOURCES_PRICED = 2
MOST_UNITS = 4000
"""Units tried for the grid."""

Rounding = Literal["down", "up"]
NodePattern = dict[int, int]
"""Bundle group -> number of bundles."""


class BestPatterns(NamedTuple):
    """The best pattern of each of S states at some prices."""

    pays: IntArray  # (S,) what it pays
    choice: IntArray  # (S,) row in ``patterns``
    patterns: list[NodePattern]  # the first one is empty


class PatternPricing:
    """
    Tables over GPU shares x two node resources.

    Demands and capacities are counted in units of a grid. ``down``: demands are rounded down, so no pattern that fits
    is missed, and what the tables say is a bound. ``up``: what they find fits. Other node resources are left out.

    Shares nest. So the tables go from the largest size to the smallest: when ``t`` shares of a size are given to
    bundles of that size and larger ones, ``t x ratio`` of the next are. What is left over of a GPU counts for the
    sizes that fit into it.
    """

    def __init__(
        self,
        bundle_groups: BundleGroups,
        states: NodeStates,
        rounding: Rounding,
        check_time: Callable[[], None],
        cells: int = CELLS,
    ) -> None:
        """``cells``: those of the grid, at most; ``check_time`` is called between tables."""
        self._bundle_groups, self._states, self._check_time = bundle_groups, states, check_time
        resources = binding_resources(states)
        binds = states.binding[resources] > 0
        demand, free = bundle_groups.demand[:, resources], states.free[:, resources]
        grid = _units(demand, free.max(axis=0, initial=0), binds, cells)
        need = demand // grid if rounding == "down" else -(-demand // grid)
        self._need = np.where(binds, need, 0)  # (D, 2)
        self._room = np.where(binds, free // grid, 0)  # (S, 2)
        self._cells = tuple((self._room.max(axis=0, initial=0) + 1).tolist())
        self.free_of_charge: IntArray = np.flatnonzero(
            (bundle_groups.level == CPU_ONLY) & (self._need == 0).all(axis=1)
        )
        """Bundle groups that need nothing that is counted: any number of them fits. Their price must be 0."""
        self._alike = [(m, self._by_room(m)) for m in np.unique(states.mask).tolist()]

    def _by_room(self, m: int) -> list[tuple[Cell, IntArray]]:
        """Return the states of a mask by GPU room, those with the smallest cells first."""
        here = np.flatnonzero(self._states.mask == m)
        here = here[np.argsort(self._room[here].sum(axis=1), kind="stable")]
        rooms, of_state = np.unique(self._states.room[here], axis=0, return_inverse=True)
        of_state = of_state.reshape(-1)
        return [(tuple(room), here[of_state == i]) for i, room in enumerate(rooms.tolist())]

    def price(self, pays: IntArray, *, patterns: bool = True) -> BestPatterns:
        """
        Return what the best pattern of each state pays, and those patterns (empty ones unless asked for).

        ``pays``, shape (D,), is what a bundle of each bundle group pays; bundle groups that pay nothing are left out.
        """
        states = self._states
        out = BestPatterns(np.zeros(len(states), dtype=np.int64), np.zeros(len(states), dtype=np.int64), [{}])
        for m, of_room in self._alike:
            tables = _Tables(
                self._bundle_groups, self._need, self._cells, np.where(states.allowed[m], pays, 0), self._check_time
            )
            for room, here in of_room:
                cells = self._room[here]
                out.pays[here] = tables.values(room, cells)
                if patterns:
                    self._find(tables, room, here, out)
        return out

    def _find(self, tables: _Tables, room: Cell, here: IntArray, out: BestPatterns) -> None:
        """Walk back for one state of a room; its pattern is the best of all that it fits and where it pays the best."""
        here = here[out.pays[here] > 0]
        order = np.argsort(out.pays[here], kind="stable")
        ends = np.flatnonzero(np.diff(out.pays[here][order])) + 1
        for alike in np.split(here[order], ends) if len(here) else ():
            rest, cells = alike, self._room[alike]
            while len(rest):
                pattern = tables.pattern(room, tuple(cells[0].tolist()))
                need = sum((number * self._need[k] for k, number in pattern.items()), np.zeros(2, dtype=np.int64))
                fits = (cells >= need).all(axis=1)
                out.choice[rest[fits]] = len(out.patterns)
                out.patterns.append(pattern)
                rest, cells = rest[~fits], cells[~fits]


def binding_resources(states: NodeStates) -> IntArray:
    """Return the two resources that bind on most nodes, ascending."""
    return np.sort(np.argsort(-states.binding, kind="stable")[:RESOURCES_PRICED])


@dataclass(frozen=True)
class _BundleItem:
    """A bundle group that is worth a look: units of its size, cells of the grid, and what it pays."""

    bundle_group: int
    units: int
    a: int
    b: int
    pays: int


Table = IntArray
Cell = tuple[int, ...]


class _Tables:
    """Tables for one vector of payments; made as they are asked for, and shared by states with the same prefix."""

    def __init__(
        self, bundle_groups: BundleGroups, need: IntArray, cells: Cell, pays: IntArray, check_time: Callable[[], None]
    ) -> None:
        self._shape, self._check_time = cells, check_time
        self._items = [_undominated(bundle_groups, need, pays, level) for level in range(len(bundle_groups.sizes))]
        self._cpu_items = [item for item in _undominated(bundle_groups, need, pays, CPU_ONLY) if item.a or item.b]
        sizes = bundle_groups.sizes
        self._ratio = [1, *(larger // smaller for larger, smaller in pairwise(sizes))]
        self._levels: dict[Cell, list[Table]] = {(): [np.zeros(cells, dtype=np.int64)]}
        self._known: dict[Cell, Table] = {}
        self._last: dict[Cell, Table] = {}

    def values(self, room: Cell, cells: IntArray) -> IntArray:
        """Return what the best patterns pay of nodes with ``room`` of each size and ``cells``, shape (n, 2)."""
        values: IntArray = self._finish(room)[cells[:, 0], cells[:, 1]]
        return values

    def _finish(self, room: Cell) -> Table:
        """Return the last table of a node: all levels, then bundle groups without GPU in what is left."""
        cached = self._last.get(room)
        if cached is None:
            cached = self._level(room[:-1], room[-1])[room[-1]] if room else self._levels[()][0]
            if self._cpu_items:
                cached = cached.copy()
                for item in self._cpu_items:
                    _fill_up(cached, item)
            self._last[room] = cached
        return cached

    def _level(self, before: Cell, most: int) -> list[Table]:
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
                if item.units <= t:
                    _put(table, tables[t - item.units], item)
            tables.append(table)
            self._known[tight] = table
        return tables

    def _tight(self, before: Cell, shares: int) -> Cell:
        """Return the most shares of each size that a table can use; tables with the same ones are equal."""
        out = [shares]
        for level in range(len(before), 0, -1):
            out.append(min(before[level - 1], out[-1] // self._ratio[level]))
        return tuple(reversed(out))

    def _coarser(self, before: Cell, shares: int) -> Table:
        """Return what larger sizes alone make of ``shares`` shares of a level's size."""
        if not before:
            return self._levels[()][0]
        t = min(shares // self._ratio[len(before)], before[-1])
        return self._level(before[:-1], t)[t]

    def pattern(self, room: Cell, cell: Cell) -> NodePattern:
        """Return the pattern behind ``value``: the tables are walked back, one bundle a step."""
        out: NodePattern = {}
        a, b = cell
        table = self._finish(room)
        if self._cpu_items:
            plain = self._level(room[:-1], room[-1])[room[-1]] if room else self._levels[()][0]
            while table[a, b] > plain[a, b]:
                item = next(
                    i
                    for i in self._cpu_items
                    if i.a <= a and i.b <= b and table[a - i.a, b - i.b] + i.pays == table[a, b]
                )
                out[item.bundle_group] = out.get(item.bundle_group, 0) + 1
                a, b = a - item.a, b - item.b
        left = room[-1] if room else 0
        for level in range(len(room) - 1, -1, -1):
            before = room[:level]
            tables = self._level(before, left)
            while left and tables[left][a, b]:
                value = tables[left][a, b]
                if tables[left - 1][a, b] == value:
                    left -= 1
                    continue
                if self._coarser(before, left)[a, b] == value:
                    break
                item = next(
                    i
                    for i in self._items[level]
                    if i.units <= left
                    and i.a <= a
                    and i.b <= b
                    and tables[left - i.units][a - i.a, b - i.b] + i.pays == value
                )
                out[item.bundle_group] = out.get(item.bundle_group, 0) + 1
                a, b, left = a - item.a, b - item.b, left - item.units
            if level:
                left = min(left // self._ratio[level], before[-1])
        return out


def _put(table: Table, earlier: Table, item: _BundleItem) -> None:
    """Allow one more bundle: raise ``table`` to ``earlier``, shifted by what the bundle takes, plus its worth."""
    rows, columns = table.shape
    if item.a < rows and item.b < columns:
        target = table[item.a :, item.b :]
        np.maximum(target, earlier[: rows - item.a, : columns - item.b] + item.pays, out=target)


def _fill_up(table: Table, item: _BundleItem) -> None:
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


def _undominated(bundle_groups: BundleGroups, need: IntArray, pays: IntArray, level: int) -> list[_BundleItem]:
    """Return the bundle groups of a level that pay, without those that another one beats in everything."""
    candidates = np.flatnonzero((bundle_groups.level == level) & (pays > 0))
    order = np.lexsort((need[candidates, 1], need[candidates, 0], bundle_groups.units[candidates], -pays[candidates]))
    kept = np.zeros((0, 3), dtype=np.int64)
    out: list[_BundleItem] = []
    for k in candidates[order].tolist():
        takes = np.array([[bundle_groups.units[k], *need[k]]])
        if not (kept <= takes).all(axis=1).any():
            kept = np.concatenate([kept, takes])
            out.append(_BundleItem(k, int(bundle_groups.units[k]), int(need[k, 0]), int(need[k, 1]), int(pays[k])))
    return out


def _units(demand: IntArray, most: IntArray, binds: BoolArray, cells: int) -> IntArray:
    """Return the units of both resources that lose least by rounding, relative to ``most``, of those for the grid."""
    if not binds.all():
        return np.array([_unit(demand[:, i], int(most[i]), cells)[0] for i in range(RESOURCES_PRICED)])
    root = cells**0.5
    tried = [
        (_unit(demand[:, 0], int(most[0]), int(root * split)), _unit(demand[:, 1], int(most[1]), int(root / split)))
        for split in SPLITS
    ]
    best = min(tried, key=lambda pair: sum(lost / max(int(most[i]), 1) for i, (_, lost) in enumerate(pair)))
    return np.array([unit for unit, _ in best])


def _unit(demand: IntArray, most: int, cells: int) -> tuple[int, int]:
    """Return the unit, of those that make at most ``cells`` cells and at least half of that, that rounds least."""
    least = max(1, -(-most // cells))
    units = np.arange(least, 2 * least + 1, max(1, least // MOST_UNITS))
    distinct, times = np.unique(demand, return_counts=True)
    inexact = (distinct[None, :] % units[:, None] > 0) @ times
    lost = units * inexact  # what rounding down and rounding up lose together
    best = int(lost.argmin())
    return int(units[best]), int(lost[best])
