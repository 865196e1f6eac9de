"""Pricing: columns whose reduced cost is low, for rooms and for nodes with jobs across rooms; exact where asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placeopt.formulations.branch_and_price.column_enumeration import NEVER, ColumnSearch, FoundColumns, best_of
from placeopt.formulations.branch_and_price.cross_group_jobs import CrossGroupPatterns, lay
from placeopt.formulations.branch_and_price.gpu_groups import GpuGroups, OpenGroups
from placeopt.problem import IntArray

QUICK = 60
"""Partial contents of a room kept in the search for a first good one."""

EACH_ROOM = 2
"""Contents of a room beside jobs across rooms that are tried while columns are only collected; the best is enough."""


@dataclass(frozen=True)
class Column:
    """What a room, or a whole node with jobs across rooms, holds. ``contents``: per room, bundles of each kind."""

    place: int  # of a room, -1 for a node
    pattern: int  # of a node, -1 for a room
    contents: tuple[bytes, ...]
    cost: int


@dataclass(frozen=True, eq=False)
class DualPrices:
    """Multipliers of the master's rows, as integers."""

    kind: IntArray  # (K,) for placing a bundle
    rent: IntArray  # (A,) of a room that is filled alone
    node_rent: IntArray  # (N' + 1,) of a node of each group that is filled as a whole
    room_rent: IntArray  # (A,) of each room that jobs across rooms open, besides
    scarce: IntArray  # (N' + 1, K) of what a bundle takes of resources that may run out on the nodes of a group


@dataclass(frozen=True, eq=False)
class Priced:
    """Columns found, with reduced costs; and by how much more, at most, a column of each place or group can gain."""

    columns: list[Column]
    reduced: IntArray
    place_over: IntArray  # (A,)
    group_over: IntArray  # (N',)
    complete: bool


class Pricing:
    """The search for columns of a round."""

    def __init__(self, rooms: GpuGroups, patterns: CrossGroupPatterns, check: Callable[[], None]) -> None:
        self.rooms, self.patterns = rooms, patterns
        self._search = ColumnSearch(rooms, check)
        self._fixed = self._search.fixed(rooms.places)
        self._scene_fixed = self._search.fixed(patterns.scenes)
        self._laid: dict[int, int] = {}
        self._nothing = np.zeros(len(rooms.kinds), dtype=np.int64).tobytes()

    def run(self, prices: DualPrices, slack: int, *, most: int | None = None, each: int | None = None) -> Priced:
        """
        Find columns of reduced cost up to ``slack``.

        ``most`` cuts the search short, and leaves out whole nodes where rooms have columns; ``each`` keeps only the
        best of each place and group. Without ``most`` all are found, and ``place_over`` and ``group_over`` hold for
        columns that are not returned as well.
        """
        rooms, patterns = self.rooms, self.patterns
        everywhere = np.arange(len(rooms.places))
        found = self._contents(rooms.places, self._fixed, everywhere, prices, prices.rent - slack, most)
        best = prices.rent - slack - 1
        np.maximum.at(best, found.place, found.gain)
        columns, reduced = [], []
        for i in best_of(found.place, found.gain, len(found.gain) if each is None else each).tolist():
            columns.append(Column(int(found.place[i]), -1, (found.counts[i].tobytes(),), int(found.cost[i])))
            reduced.append(int(prices.rent[found.place[i]] - found.gain[i]))
        group_over = np.full(len(rooms.groups), -slack - 1, dtype=np.int64)
        complete = found.complete
        if most is not None and columns:
            complete = False  # rooms first: nodes are dearer to search
        elif len(patterns):
            complete &= self._nodes(prices, slack, most, each, best, columns, reduced, group_over)
        over = np.maximum(best - prices.rent, 0)
        return Priced(columns, np.array(reduced, dtype=np.int64), over, np.maximum(group_over, 0), complete)

    def _nodes(
        self,
        prices: DualPrices,
        slack: int,
        most: int | None,
        each: int | None,
        best: IntArray,
        columns: list[Column],
        reduced: list[int],
        group_over: IntArray,
    ) -> bool:
        """Add columns of whole nodes."""
        rooms, patterns = self.rooms, self.patterns
        # a room with parts in it gains no more than alone, where its opening is paid for by the parts
        reach = np.append(np.maximum(best + rooms.places.opening, 0)[patterns.scene_place], 0)
        base = patterns.uses @ prices.kind - patterns.cost - (patterns.uses * prices.scarce[patterns.group]).sum(axis=1)
        rent = prices.node_rent[patterns.group] + patterns.opens @ prices.room_rent
        goal = rent - slack - base  # what the rooms must add
        alive = np.flatnonzero(reach[patterns.scene].sum(axis=1) >= goal)
        if not len(alive):
            return True
        wanted = np.setdiff1d(patterns.scene[alive], [-1])
        found = self._scenes(prices, wanted, np.ones(len(wanted), dtype=np.int64), QUICK if most is None else most)
        if most is None:
            top = _top(found, len(patterns.scenes))
            better = self._scenes(prices, wanted, top[wanted] + 1, None)
            reach[wanted] = np.maximum(top, _top(better, len(patterns.scenes)))[wanted]
            found = better.after(found)
            could = reach[patterns.scene].sum(axis=1)
            alive = np.flatnonzero(could >= goal)
            if not len(alive):
                return True
            if each is None:
                least = np.full(len(reach), -NEVER, dtype=np.int64)
                for r in range(patterns.scene.shape[1]):
                    scene = patterns.scene[alive, r]
                    np.minimum.at(least, scene, (goal - could)[alive] + reach[scene])
                wanted = np.flatnonzero(least[:-1] < -NEVER)
                found = self._scenes(prices, wanted, least[wanted], None)
        chosen = np.arange(len(found.gain)) if each is None else best_of(found.place, found.gain, EACH_ROOM)
        rows = _rows_of(found, chosen)
        top = np.append(_top(found, len(patterns.scenes)), 0)
        alive = alive[top[patterns.scene[alive]].sum(axis=1) >= goal[alive]]
        whole: list[Column] = []
        owner: list[int] = []
        excess: list[int] = []
        for q in alive.tolist():
            sums, picks = self._combine(q, int(goal[q]), reach, found, rows)
            if not len(sums):
                continue
            more = self._more(q)
            sums = sums - more
            group = int(patterns.group[q])
            for i in np.flatnonzero(sums >= goal[q]).tolist():
                inside = [int(row) for row in picks[i]]
                contents = tuple(self._nothing if row < 0 else found.counts[row].tobytes() for row in inside)
                cost = int(patterns.cost[q]) + more + sum(int(found.cost[row]) for row in inside if row >= 0)
                whole.append(Column(-1, q, contents, cost))
                owner.append(group)
                excess.append(int(sums[i] + base[q] - rent[q]))
        if whole:
            over, groups = np.array(excess, dtype=np.int64), np.array(owner, dtype=np.int64)
            np.maximum.at(group_over, groups, over)
            for i in best_of(groups, over, len(whole) if each is None else each).tolist():
                columns.append(whole[i])
                reduced.append(-excess[i])
        return found.complete

    def _scenes(self, prices: DualPrices, wanted: IntArray, least: IntArray, most: int | None) -> FoundColumns:
        """Search some scenes; the answer counts places by scene."""
        fixed, place = [cost[wanted] for cost in self._scene_fixed], self.patterns.scene_place[wanted]
        found = self._contents(self.patterns.scenes.take(wanted), fixed, place, prices, least, most)
        return replace(found, place=wanted[found.place])

    def _contents(
        self,
        places: OpenGroups,
        fixed: list[IntArray],
        place: IntArray,
        prices: DualPrices,
        least: IntArray,
        most: int | None,
    ) -> FoundColumns:
        """Search rooms, each of which is the room ``place`` or that with parts of jobs in it."""
        scarce = prices.scarce[self.rooms.place_group[place]]
        if not scarce.any():
            return self._search.run(places, fixed, prices.kind, least, most)
        dearer = [
            cost + scarce[:, family.kinds] @ family.hands.T
            for family, cost in zip(self._search.families, fixed, strict=True)
        ]
        found = self._search.run(places, dearer, prices.kind, least, most)
        return replace(found, cost=found.cost - (found.counts * scarce[found.place]).sum(axis=1))

    def _combine(
        self, q: int, goal: int, reach: IntArray, found: FoundColumns, rows: dict[int, IntArray]
    ) -> tuple[IntArray, IntArray]:
        """Return gains of contents for all rooms of a pattern that reach ``goal``, and their rows, -1 for nothing."""
        scenes = self.patterns.scene[q, : len(self.rooms.groups[int(self.patterns.group[q])].parts)].tolist()
        sums, picks = np.zeros(1, dtype=np.int64), np.zeros((1, 0), dtype=np.int64)
        for r, scene in enumerate(scenes):
            mine = np.append(rows.get(scene, np.zeros(0, dtype=np.int64)), -1)
            gains = np.append(found.gain[mine[:-1]], 0)
            total = sums[:, None] + gains
            left = sum(int(reach[later]) for later in scenes[r + 1 :])
            at, pick = np.nonzero(total + left >= goal)
            sums, picks = total[at, pick], np.concatenate([picks[at], mine[pick][:, None]], axis=1)
        return sums, picks

    def _more(self, q: int) -> int:
        """What a pattern costs beyond ``patterns.cost``, since its jobs are in each other's way."""
        if q not in self._laid:
            patterns = self.patterns
            self._laid[q] = lay(self.rooms, self.rooms.groups[int(patterns.group[q])], patterns.spans[q])[0]
        return self._laid[q]


def _rows_of(found: FoundColumns, chosen: IntArray) -> dict[int, IntArray]:
    """Rows of what was found and chosen, by scene."""
    order = chosen[np.argsort(found.place[chosen], kind="stable")]
    places, first = np.unique(found.place[order], return_index=True)
    return dict(zip(places.tolist(), np.split(order, first[1:]), strict=True)) if len(places) else {}


def _top(found: FoundColumns, size: int) -> IntArray:
    """Shape (size,): the best gain by place, 0 for nothing."""
    top = np.zeros(size, dtype=np.int64)
    np.maximum.at(top, found.place, found.gain)
    return top
