"""
Prices that bound the value of plans, or the cost of those of a value, by column generation.

Bundles pay prices to nodes. Whatever the prices, ``value x (what a unit of value is worth) - cost`` of a plan is no
more than what its jobs are worth beyond what their bundles pay, and what nodes are paid beyond what they hold costs.
The first is at most the sum over jobs of the best of their ways, or of none, the second the sum over nodes of the most
that can be paid there (weak duality). Node amounts have prices too, so that on a node only GPUs are left to be looked
at exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from placeopt.certificates.clock import check_time
from placeopt.certificates.master import Branch, Column, Counted, Duals, Goal, Master
from placeopt.certificates.room import Room
from placeopt.linear import LinearModel

LARGEST = 2.0**60
"""Prices beyond this are no suggestion, but an accident."""
TOLERANCE = 1e-6
"""Of what a solution of a program is worth."""


class Relaxed(NamedTuple):
    """The solution of a relaxation."""

    values: np.ndarray
    duals: np.ndarray


class _Solved(NamedTuple):
    """Of a program: what its rows are worth, what branches may count, and what its solution is worth."""

    duals: Duals
    counts: dict[Counted, float]
    worth: float


Solve = Callable[[LinearModel], Relaxed | None]
"""Solves the relaxation of a model; None where that failed or took too long."""


@dataclass(frozen=True, eq=False)
class Prices:
    """Integer prices, and what they prove."""

    bundle: tuple[int, ...]
    amounts: tuple[tuple[int, ...], ...]
    """Of each state and amount."""
    branches: tuple[int, ...]
    most: tuple[int, ...]
    """That a node of each state can be paid."""
    bound: int
    """On the value of what may start or change; of costs, on what they are below 0."""
    value: int
    """What a unit of value is worth."""


class Paid(NamedTuple):
    """What a node can be paid at most beyond what it holds costs; a filling that pays it, with its cost, or None."""

    most: int
    column: Column | None = None
    cost: int = 0


class Nodes(Protocol):
    """An engine that looks at what nodes can be paid."""

    scale: int
    """Parts of a unit of what is bounded, value or cost, in which prices are stated."""

    joint: frozenset[int]
    """States of which amounts are looked at together with the sum of shares."""

    def most(self, bundle: Sequence[int], amounts: Sequence[Sequence[int]], known: Sequence[int]) -> Iterator[Paid]:
        """
        Yield what a node of each state can be paid, and a filling that pays more than is known.

        Prices are those of bundles, and of amounts by state.
        """
        ...


class PriceSearch:
    """
    Searches prices for one branch after the other; fillings of nodes stay.

    First node amounts have prices of their own. Where that proves too little of value, they are looked at together with
    the sum of shares; the prices found before then tell which branches of that search are useless.
    """

    def __init__(self, room: Room, nodes: Nodes, solve: Solve, deadline: float, goal: Goal | None = None) -> None:
        """``goal``: Of plans whose cost is bounded; None: their value is. ``deadline``: of ``time.monotonic()``."""
        self._room, self._nodes, self._solve, self._deadline, self._goal = room, nodes, solve, deadline, goal
        self._columns: dict[Column, int] = {}
        self._begun: Duals | None = None
        self._hints: np.ndarray | None = None

    @property
    def scale(self) -> int:
        """Parts of a unit of what is bounded in which bounds are stated."""
        return self._nodes.scale

    @property
    def cost(self) -> int:
        """What a unit of cost costs; 0 where costs do not count."""
        return 0 if self._goal is None else self.scale

    def begin(self, columns: Iterable[Paid]) -> None:
        """Take in the fillings of a plan."""
        for found in columns:
            self._take(found)

    def search(
        self, branches: Sequence[Branch], enough: Callable[[int], bool]
    ) -> tuple[Prices | None, dict[Counted, float] | None]:
        """
        Return the best prices, or the first that prove ``enough``, called with a bound.

        Also returns what branches may count in the relaxation where that is worth too much, so that no prices do; None
        where it was not solved. Raises ``OutOfTime``.
        """
        if not self._columns and self._goal is None and self._begun is None:
            solved = self._solved(branches, loosely=True)
            if solved is None:
                return None, None
            self._begun = solved.duals
        best: Prices | None = None
        center = None if self._begun is None else replace(self._begun, branches=(0.0,) * len(branches))
        if center is not None:
            best, _ = self._price(center, branches)
        while best is None or not enough(best.bound):
            solved = self._solved(branches)
            if solved is None:
                return best, None
            duals, new = solved.duals, False
            hopeless = not enough(int(self.scale * (solved.worth - TOLERANCE * max(1.0, abs(solved.worth)))))
            tries = (duals,) if center is None else (duals.halfway(center), duals)  # Wentges 1997: prices jump less
            for tried in () if hopeless else tries:
                prices, new = self._price(tried, branches)
                if best is None or prices.bound < best.bound:
                    best, center = prices, tried
                if new or enough(best.bound):
                    break
            if not new and (self._goal or self._nodes.joint or center is None or not self._look_together(center)):
                return best, solved.counts
        return best, None

    def _look_together(self, duals: Duals) -> bool:
        """Look at amounts and GPUs together from now on; false where no amount has a price."""
        self._nodes.joint = frozenset(np.flatnonzero((duals.amounts > 0).any(axis=1)).tolist())
        self._hints = duals.amounts
        self._columns = {column: cost for column, cost in self._columns.items() if self._is_lawful(column)}
        return bool(self._nodes.joint)

    def _is_lawful(self, column: Column) -> bool:
        """Return whether a filling keeps to the amounts of a node, where it has to."""
        free, takes = self._room.states[column.state].free, self._room.bundles
        taken = (sum(n * takes[b].amounts[k] for b, n in column.filling) for k in range(len(free)))
        return column.state not in self._nodes.joint or all(map(int.__le__, taken, free))

    def _solved(self, branches: Sequence[Branch], *, loosely: bool = False) -> _Solved | None:
        columns = None if loosely else self._columns
        master = Master(self._room, columns, branches, self._nodes.joint, self._goal, self._deadline)
        relaxed = self._solve(master.model)
        if relaxed is None:
            return None
        duals = master.duals(relaxed.duals)
        if self._hints is not None:
            joint = [[s in self._nodes.joint] for s in range(len(self._room.states))]
            duals = replace(duals, amounts=np.where(joint, self._hints, duals.amounts))
        return _Solved(duals, master.counts(relaxed.values), master.worth(relaxed.values))

    def _take(self, found: Paid) -> bool:
        """Take in a filling; return whether it is new, or costs less than was known."""
        column = found.column
        if column is None or self._columns.get(column, found.cost + 1) <= found.cost:
            return False
        self._columns[column] = found.cost
        return True

    def _known(self, bundle: Sequence[int], amounts: Sequence[Sequence[int]]) -> list[int]:
        """Return what known fillings of each state pay at most beyond what they cost."""
        most, bundles = [0] * len(self._room.states), self._room.bundles
        for (s, filling), cost in self._columns.items():
            pays = sum(n * bundle[b] for b, n in filling) - self.cost * cost
            if s not in self._nodes.joint:
                pays -= sum(n * dot(amounts[s], bundles[b].amounts) for b, n in filling)
            most[s] = max(most[s], pays)
        return most

    def _price(self, duals: Duals, branches: Sequence[Branch]) -> tuple[Prices, bool]:
        """Return what prices prove, and whether a filling pays more than known ones do; those are new columns."""
        room, new, most = self._room, False, []
        bundle, worth = [self._parts(dual) for dual in duals.bundle], self._parts(duals.value)
        amounts = [tuple(self._parts(dual) for dual in row) for row in duals.amounts.tolist()]
        total = 0 if self._goal is None else worth * (room.held - self._goal.value)
        found_of = self._nodes.most(bundle, amounts, self._known(bundle, amounts))
        for state, found in zip(room.states, found_of, strict=True):
            check_time(self._deadline)
            new |= self._take(found)
            most.append(found.most)
            total += found.most * len(state.nodes)
        more: dict[Counted, int] = {}  # what starts, and bundles in an option, pay for branches
        sides = [self._parts(dual) for dual in duals.branches]
        for branch, price in zip(branches, sides, strict=True):
            sign = 1 if branch.at_most else -1
            more[branch.counted] = more.get(branch.counted, 0) + sign * price
            total += sign * price * branch.limit
        for g, group in enumerate(room.groups):
            start = more.get(Counted(g, None), 0)
            over = [
                worth * way.value - start - way.bundles * (bundle[way.bundle] + more.get(Counted(g, way.option), 0))
                for way in group.ways
            ]
            idle = [] if group.idle is None else [worth * group.idle]
            total += len(group.jobs) * max(over + idle)
        return Prices(tuple(bundle), tuple(amounts), tuple(sides), tuple(most), total, worth), new

    def _parts(self, dual: float) -> int:
        """Return a dual as a price; what is no number, or beyond all reason, is 0: any prices will do."""
        return round(dual * self.scale) if 0 < dual < LARGEST else 0


def dot(prices: Sequence[int], amounts: Sequence[int]) -> int:
    """Return what amounts cost."""
    return sum(price * amount for price, amount in zip(prices, amounts, strict=True))
