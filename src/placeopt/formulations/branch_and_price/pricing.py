"""
pricing: columns whose reduced cost is low, for GPU groups and for nodes with jobs across GPU groups; exact where asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placeopt.formulations.branch_and_price.column_enumeration import NEVER, ColumnSearch, FoundColumns, best_of
from placeopt.formulations.branch_and_price.cross_group_jobs import CrossGroupPatterns, distribute
from placeopt.formulations.branch_and_price.gpu_groups import GpuGroups, OpenGroups
from placeopt.problem import IntArray

QUICK = 60
"""Partial patterns of a room kept in the search for a first good one."""

EACH_ROOM = 2
"""
Contents of a room beside jobs across GPU groups that are tried while columns are only collected; the best is enough.
"""


@dataclass(frozen=True)
class Column:
    """
    What a room, or a whole node with jobs across GPU groups, holds.

    ``group_counts``: per room, bundles of each bundle group.
    """

    open_group: int  # of a room, -1 for a node
    pattern: int  # of a node, -1 for a room
    group_counts: tuple[bytes, ...]
    cost: int


@dataclass(frozen=True, eq=False)
class DualPrices:
    """Multipliers of the master's rows, as integers."""

    bundle_group: IntArray  # (K,) for placing a bundle
    reservation_price: IntArray  # (A,) of a room that is filled alone
    node_reservation_price: IntArray  # (N' + 1,) of a node of each group that is filled as a whole
    opening_price: IntArray  # (A,) of each room that jobs across GPU groups open, besides
    scarce: IntArray  # (N' + 1, K) of what a bundle takes of resources that may run out on the nodes of a group


@dataclass(frozen=True, eq=False)
class Priced:
    """
    Columns found, with reduced costs; and by how much more, at most, a column of each GPU group or group can gain.
    """

    columns: list[Column]
    reduced: IntArray
    group_excess: IntArray  # (A,)
    node_group_excess: IntArray  # (N',)
    complete: bool


class ColumnPricing:
    """The search for columns of a round."""

    def __init__(self, gpu_groups: GpuGroups, patterns: CrossGroupPatterns, check: Callable[[], None]) -> None:
        self.gpu_groups, self.patterns = gpu_groups, patterns
        self._search = ColumnSearch(gpu_groups, check)
        self._fixed = self._search.fixed(gpu_groups.open_groups)
        self._occupied_fixed = self._search.fixed(patterns.occupied_groups)
        self._extra_costs: dict[int, int] = {}
        self._nothing = np.zeros(len(gpu_groups.bundle_groups), dtype=np.int64).tobytes()

    def excess_bound(self, prices: DualPrices) -> Priced:
        """Return bounds on what columns can gain, without a search: enough to end a node far above the best plan."""
        gpu_groups, patterns = self.gpu_groups, self.patterns
        everywhere = np.arange(len(gpu_groups.open_groups))
        gain = self._gain_bound(gpu_groups.open_groups, self._fixed, everywhere, prices)
        node_group_excess = np.zeros(len(gpu_groups.node_groups), dtype=np.int64)
        if len(patterns):
            reach = np.append(np.maximum(self._occupied_bound(prices), 0), 0)
            base, reservation_price = self._node_prices(prices)
            over = reach[patterns.occupied_group].sum(axis=1) + base - reservation_price
            np.maximum.at(node_group_excess, patterns.group, over)
        none = np.zeros(0, dtype=np.int64)
        return Priced([], none, np.maximum(gain - prices.reservation_price, 0), node_group_excess, False)

    def _occupied_bound(self, prices: DualPrices) -> IntArray:
        patterns = self.patterns
        return self._gain_bound(patterns.occupied_groups, self._occupied_fixed, patterns.occupied_row, prices)

    def _node_prices(self, prices: DualPrices) -> tuple[IntArray, IntArray]:
        """Return what each set of jobs across GPU groups gains by itself, and the price of the node that it takes."""
        patterns = self.patterns
        base = (
            patterns.uses @ prices.bundle_group
            - patterns.cost
            - (patterns.uses * prices.scarce[patterns.group]).sum(axis=1)
        )
        return base, prices.node_reservation_price[patterns.group] + patterns.opens @ prices.opening_price

    def run(self, prices: DualPrices, slack: int, *, most: int | None = None, each: int | None = None) -> Priced:
        """
        Find columns of reduced cost up to ``slack``.

        ``most`` cuts the search short, and leaves out whole nodes where GPU groups have columns; ``each`` keeps only
        the best of each GPU group and group. Without ``most`` all are found, and ``group_excess`` and
        ``node_group_excess`` hold for columns that are not returned as well.
        """
        gpu_groups, patterns = self.gpu_groups, self.patterns
        everywhere = np.arange(len(gpu_groups.open_groups))
        group_columns = self._contents(
            gpu_groups.open_groups, self._fixed, everywhere, prices, prices.reservation_price - slack, most
        )
        best = prices.reservation_price - slack - 1
        np.maximum.at(best, group_columns.open_group, group_columns.gain)
        columns, reduced = [], []
        for i in best_of(
            group_columns.open_group, group_columns.gain, len(group_columns.gain) if each is None else each
        ).tolist():
            columns.append(
                Column(
                    int(group_columns.open_group[i]),
                    -1,
                    (group_columns.counts[i].tobytes(),),
                    int(group_columns.cost[i]),
                )
            )
            reduced.append(int(prices.reservation_price[group_columns.open_group[i]] - group_columns.gain[i]))
        node_group_excess = np.full(len(gpu_groups.node_groups), -slack - 1, dtype=np.int64)
        complete = group_columns.complete
        if most is not None and columns:
            complete = False  # GPU groups first: nodes are dearer to search
        elif len(patterns):
            complete &= self._nodes(prices, slack, most, each, best, columns, reduced, node_group_excess)
        over = np.maximum(best - prices.reservation_price, 0)
        return Priced(columns, np.array(reduced, dtype=np.int64), over, np.maximum(node_group_excess, 0), complete)

    def _nodes(
        self,
        prices: DualPrices,
        slack: int,
        most: int | None,
        each: int | None,
        best: IntArray,
        columns: list[Column],
        reduced: list[int],
        node_group_excess: IntArray,
    ) -> bool:
        """Add columns of whole nodes."""
        gpu_groups, patterns = self.gpu_groups, self.patterns
        # a room with parts in it gains no more than alone, where its opening is paid for by the parts
        reach = (best + gpu_groups.open_groups.opening)[patterns.occupied_row]
        reach = np.append(np.maximum(np.minimum(reach, self._occupied_bound(prices)), 0), 0)
        base, reservation_price = self._node_prices(prices)
        goal = reservation_price - slack - base  # what the GPU groups must add
        alive = np.flatnonzero(reach[patterns.occupied_group].sum(axis=1) >= goal)
        if not len(alive):
            return True
        wanted = np.setdiff1d(patterns.occupied_group[alive], [-1])
        group_columns = self._search_occupied(
            prices, wanted, np.ones(len(wanted), dtype=np.int64), QUICK if most is None else most
        )
        if most is None:
            top = _best_gains(group_columns, len(patterns.occupied_groups))
            least = np.maximum(top + 1, self._least_needed(alive, goal, reach))
            better = self._search_occupied(prices, wanted, least[wanted], None)
            found = np.maximum(top, _best_gains(better, len(patterns.occupied_groups)))
            # what is not found gains less than it needs: no pattern with it reaches its goal
            reach[wanted] = np.minimum(reach[:-1], np.maximum(found, least - 1))[wanted]
            group_columns = better.after(group_columns)
            could = reach[patterns.occupied_group].sum(axis=1)
            alive = np.flatnonzero(could >= goal)
            if not len(alive):
                return True
            if each is None:
                least = self._least_needed(alive, goal, reach)
                wanted = np.flatnonzero(least < -NEVER)
                group_columns = self._search_occupied(prices, wanted, least[wanted], None)
        chosen = (
            np.arange(len(group_columns.gain))
            if each is None
            else best_of(group_columns.open_group, group_columns.gain, EACH_ROOM)
        )
        rows = _rows_of(group_columns, chosen)
        top = np.append(_best_gains(group_columns, len(patterns.occupied_groups)), 0)
        alive = alive[top[patterns.occupied_group[alive]].sum(axis=1) >= goal[alive]]
        whole: list[Column] = []
        owner: list[int] = []
        excess: list[int] = []
        for q in alive.tolist():
            sums, picks = self._combine(q, int(goal[q]), reach, group_columns, rows)
            if not len(sums):
                continue
            more = self._extra_cost(q)
            sums = sums - more
            group = int(patterns.group[q])
            for i in np.flatnonzero(sums >= goal[q]).tolist():
                inside = [int(row) for row in picks[i]]
                group_counts = tuple(
                    self._nothing if row < 0 else group_columns.counts[row].tobytes() for row in inside
                )
                cost = int(patterns.cost[q]) + more + sum(int(group_columns.cost[row]) for row in inside if row >= 0)
                whole.append(Column(-1, q, group_counts, cost))
                owner.append(group)
                excess.append(int(sums[i] + base[q] - reservation_price[q]))
        if whole:
            over, node_groups = np.array(excess, dtype=np.int64), np.array(owner, dtype=np.int64)
            np.maximum.at(node_group_excess, node_groups, over)
            for i in best_of(node_groups, over, len(whole) if each is None else each).tolist():
                columns.append(whole[i])
                reduced.append(-excess[i])
        return group_columns.complete

    def _least_needed(self, alive: IntArray, goal: IntArray, reach: IntArray) -> IntArray:
        """Shape (Z,): the least gain with which an occupied group can be in a pattern that reaches its goal."""
        patterns = self.patterns
        least = np.full(len(reach), -NEVER, dtype=np.int64)
        lacks = goal - reach[patterns.occupied_group].sum(axis=1)
        for r in range(patterns.occupied_group.shape[1]):
            occupied_group = patterns.occupied_group[alive, r]
            np.minimum.at(least, occupied_group, lacks[alive] + reach[occupied_group])
        return least[:-1]

    def _search_occupied(self, prices: DualPrices, wanted: IntArray, least: IntArray, most: int | None) -> FoundColumns:
        """Search some occupied groups; the answer counts GPU groups by occupied group."""
        fixed, open_group = [cost[wanted] for cost in self._occupied_fixed], self.patterns.occupied_row[wanted]
        group_columns = self._contents(
            self.patterns.occupied_groups.take(wanted), fixed, open_group, prices, least, most
        )
        return replace(group_columns, open_group=wanted[group_columns.open_group])

    def _contents(
        self,
        open_groups: OpenGroups,
        fixed: list[IntArray],
        open_group: IntArray,
        prices: DualPrices,
        least: IntArray,
        most: int | None,
    ) -> FoundColumns:
        """Search GPU groups, each of which is the room ``open_group`` or that with parts of jobs in it."""
        scarce = prices.scarce[self.gpu_groups.node_group_of[open_group]]
        dearer = self._dearer(fixed, scarce)
        group_columns = self._search.run(open_groups, dearer, prices.bundle_group, least, most)
        return replace(
            group_columns,
            cost=group_columns.cost - (group_columns.counts * scarce[group_columns.open_group]).sum(axis=1),
        )

    def _dearer(self, fixed: list[IntArray], scarce: IntArray) -> list[IntArray]:
        """Return the costs of combinations, with what they take of resources that may run out."""
        if not scarce.any():
            return fixed
        return [
            cost + scarce[:, family.bundle_groups] @ family.bundle_counts.T
            for family, cost in zip(self._search.families, fixed, strict=True)
        ]

    def _gain_bound(
        self, open_groups: OpenGroups, fixed: list[IntArray], open_group: IntArray, prices: DualPrices
    ) -> IntArray:
        """Bound on what each GPU group can gain, ``open_group`` as in `_contents`."""
        scarce = prices.scarce[self.gpu_groups.node_group_of[open_group]]
        return self._search.gain_bound(open_groups, self._dearer(fixed, scarce), prices.bundle_group)

    def _combine(
        self, q: int, goal: int, reach: IntArray, group_columns: FoundColumns, rows: dict[int, IntArray]
    ) -> tuple[IntArray, IntArray]:
        """
        Return gains of patterns for all GPU groups of a pattern that reach ``goal``, and their rows, -1 for nothing.
        """
        occupied_groups = self.patterns.occupied_group[
            q, : len(self.gpu_groups.node_groups[int(self.patterns.group[q])].parts)
        ].tolist()
        sums, picks = np.zeros(1, dtype=np.int64), np.zeros((1, 0), dtype=np.int64)
        for r, occupied_group in enumerate(occupied_groups):
            selected = np.append(rows.get(occupied_group, np.zeros(0, dtype=np.int64)), -1)
            gains = np.append(group_columns.gain[selected[:-1]], 0)
            total = sums[:, None] + gains
            left = sum(int(reach[later]) for later in occupied_groups[r + 1 :])
            at, pick = np.nonzero(total + left >= goal)
            sums, picks = total[at, pick], np.concatenate([picks[at], selected[pick][:, None]], axis=1)
        return sums, picks

    def _extra_cost(self, q: int) -> int:
        """What a pattern costs beyond ``patterns.cost``, since its jobs are in each other's way."""
        if q not in self._extra_costs:
            patterns = self.patterns
            self._extra_costs[q] = distribute(
                self.gpu_groups, self.gpu_groups.node_groups[int(patterns.group[q])], patterns.cross_group_jobs[q]
            )[0]
        return self._extra_costs[q]


def _rows_of(group_columns: FoundColumns, chosen: IntArray) -> dict[int, IntArray]:
    """Rows of what was found and chosen, by occupied group."""
    order = chosen[np.argsort(group_columns.open_group[chosen], kind="stable")]
    open_groups, first = np.unique(group_columns.open_group[order], return_index=True)
    return dict(zip(open_groups.tolist(), np.split(order, first[1:]), strict=True)) if len(open_groups) else {}


def _best_gains(group_columns: FoundColumns, size: int) -> IntArray:
    """Shape (size,): the best gain by GPU group, 0 for nothing."""
    top = np.zeros(size, dtype=np.int64)
    np.maximum.at(top, group_columns.open_group, group_columns.gain)
    return top
