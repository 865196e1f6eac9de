"""
Prices that bound the value, by column generation.

Bundles pay prices to nodes. A plan is worth what its jobs are worth beyond what their bundles pay, and what the bundles
pay; whatever the prices, the first is at most the sum over jobs of the best of their ways, or of none, and the second
the sum over nodes of what bundles can pay there at most (weak duality). Node amounts have prices too, so that on a node
only GPUs are left to be looked at exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from placeopt.certificates.clock import check_time
from placeopt.certificates.joint_filling import JointItem, best_joint_filling
from placeopt.certificates.master import Branch, Column, Counted, Duals, Master
from placeopt.certificates.payment import Item, best_filling
from placeopt.certificates.room import NodeState, Room
from placeopt.linear import LinearModel

SCALE = 1 << 40
"""Parts of a unit of value in which prices are stated: an amount of a node in MiB or millicores costs little."""


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
    """Integer prices, in parts of `SCALE`, and what they prove."""

    bundle: tuple[int, ...]
    amounts: tuple[tuple[int, ...], ...]
    """Of each state and amount."""
    branches: tuple[int, ...]
    most: tuple[int, ...]
    """That a node of each state can be paid."""
    bound: int
    """On the value of what may start or change, in parts of `SCALE`; of costs, on what they are below 0."""
    value: int = SCALE
    """What a unit of value is worth."""


class PriceSearch:
    """
    Searches prices for one branch after the other; fillings of nodes stay.

    First node amounts have prices of their own. Where that proves too little, they are looked at together with the sum
    of shares; the prices found before then tell which branches of that search are useless.
    """

    def __init__(self, room: Room, solve: Solve, deadline: float) -> None:
        """``deadline``: of ``time.monotonic()``."""
        self._room, self._solve, self._deadline = room, solve, deadline
        self._columns: dict[Column, None] = {}
        self._begun: Duals | None = None
        self._joint: frozenset[int] = frozenset()
        self._hints: np.ndarray | None = None

    def search(
        self, branches: Sequence[Branch], enough: Callable[[int], bool]
    ) -> tuple[Prices | None, dict[Counted, float] | None]:
        """
        Return the best prices, or the first that prove ``enough``, called with a bound in parts of `SCALE`.

        Also returns what branches may count in the relaxation where that is worth too much, so that no prices do; None
        where it was not solved. Raises ``OutOfTime``.
        """
        solved = None if self._begun else self._solved(branches, loosely=True)
        if solved is not None:
            self._begun = solved.duals
        if self._begun is None:
            return None, None
        center = replace(self._begun, branches=(0.0,) * len(branches), states=())
        best, _ = self._price(center, branches)
        while not enough(best.bound):
            solved = self._solved(branches)
            if solved is None:
                return best, None
            duals, new = solved.duals, False
            hopeless = not enough(int(SCALE * (solved.worth - TOLERANCE * max(1.0, abs(solved.worth)))))
            for tried in () if hopeless else (duals.halfway(center), duals):  # Wentges 1997: prices jump less
                prices, new = self._price(tried, branches, duals.states)
                if prices.bound < best.bound:
                    best, center = prices, tried
                if new:
                    break
            if not new and (self._joint or not self._look_together(center)):
                return best, solved.counts
        return best, None

    def _look_together(self, duals: Duals) -> bool:
        """Look at amounts and GPUs together from now on; false where no amount has a price."""
        self._joint = frozenset(np.flatnonzero((duals.amounts > 0).any(axis=1)).tolist())
        self._hints = duals.amounts
        self._columns = {column: None for column in self._columns if self._is_lawful(column)}
        return bool(self._joint)

    def _is_lawful(self, column: Column) -> bool:
        """Return whether a filling keeps to the amounts of a node, where it has to."""
        free, takes = self._room.states[column.state].free, self._room.bundles
        taken = (sum(n * takes[b].amounts[k] for b, n in column.filling) for k in range(len(free)))
        return column.state not in self._joint or all(map(int.__le__, taken, free))

    def _solved(self, branches: Sequence[Branch], *, loosely: bool = False) -> _Solved | None:
        master = Master(self._room, None if loosely else list(self._columns), branches, self._joint, self._deadline)
        relaxed = self._solve(master.model)
        if relaxed is None:
            return None
        duals = master.duals(relaxed.duals)
        if self._hints is not None:
            joint = [[s in self._joint] for s in range(len(self._room.states))]
            duals = replace(duals, amounts=np.where(joint, self._hints, duals.amounts))
        return _Solved(duals, master.counts(relaxed.values), master.worth(relaxed.values))

    def _pays(self, state: NodeState, bundle: Sequence[int], amounts: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return bundle, how many a node may have, and what one pays beyond the amounts that it takes."""
        room = self._room
        return [
            (
                b,
                most,
                bundle[b] - sum(price * amount for price, amount in zip(amounts, room.bundles[b].amounts, strict=True)),
            )
            for b, most in state.fitting
        ]

    def _price(
        self, duals: Duals, branches: Sequence[Branch], paid: Sequence[float] | None = None
    ) -> tuple[Prices, bool]:
        """Return what prices prove, and whether a filling pays more than states are ``paid``; those are new columns."""
        room, new, total, most = self._room, False, 0, []
        bundle = [_price(dual) for dual in duals.bundle]
        amounts = [tuple(_price(dual) for dual in row) for row in duals.amounts.tolist()]
        known: dict[tuple[tuple[int, ...], tuple[Item, ...]], tuple[int, dict[int, int]]] = {}
        for s, state in enumerate(room.states):
            check_time(self._deadline)
            offered = self._pays(state, bundle, amounts[s])
            items = [
                Item(b, room.bundles[b].gpus, room.bundles[b].share, count, pays)
                for b, count, pays in offered
                if pays > 0 and room.bundles[b].gpus
            ]
            key = (state.units, tuple(items))
            if key not in known:
                known[key] = best_filling(state.units, room.full, items)
            best, filling = known[key]
            alone = sum(count * pays for b, count, pays in offered if pays > 0 and not room.bundles[b].gpus)
            beyond = sum(price * free for price, free in zip(amounts[s], state.free, strict=True))
            pays = best + alone + beyond
            if s in self._joint:
                pays, best, filling = self._joint_filling(s, bundle, offered, beyond, pays)
            column = Column(s, tuple(sorted(filling.items())))
            if column not in self._columns and filling and (paid is None or best > _price(paid[s]) + 1):
                self._columns[column] = None
                new = True
            most.append(pays)
            total += pays * len(state.nodes)
        more: dict[Counted, int] = {}  # what starts, and bundles in an option, pay for branches
        sides = [
            _price(dual if branch.at_most else -dual) for dual, branch in zip(duals.branches, branches, strict=True)
        ]
        for branch, price in zip(branches, sides, strict=True):
            sign = 1 if branch.at_most else -1
            more[branch.counted] = more.get(branch.counted, 0) + sign * price
            total += sign * price * branch.limit
        for g, group in enumerate(room.groups):
            start = more.get(Counted(g, None), 0)
            over = [
                SCALE * way.value - start - way.bundles * (bundle[way.bundle] + more.get(Counted(g, way.option), 0))
                for way in group.ways
            ]
            idle = [] if group.idle is None else [SCALE * group.idle]
            total += len(group.jobs) * max(over + idle)
        return Prices(tuple(bundle), tuple(amounts), tuple(sides), tuple(most), total), new

    def _joint_filling(
        self, s: int, bundle: Sequence[int], offered: Sequence[tuple[int, int, int]], beyond: int, limit: int
    ) -> tuple[int, int, dict[int, int]]:
        """Return what a node of a state can be paid with all amounts in view, and what a filling pays there."""
        room, state = self._room, self._room.states[s]
        columns = (sum(n * bundle[b] for b, n in column.filling) for column in self._columns if column.state == s)
        offers = [(room.bundles[b], b, count, pays) for b, count, pays in offered if bundle[b] > 0]
        least = min((what.share for what, *_ in offers if what.gpus), default=0)
        items = [
            JointItem(
                b,
                what.gpus * what.share,
                count,
                pays,
                bundle[b],
                (*what.amounts, what.gpus * room.is_large(what.share)),
            )
            for what, b, count, pays in offers
        ]
        units, large = sum(unit for unit in state.units if unit >= least), sum(map(room.is_large, state.units))
        free = (*state.free, large if room.full > 1 else 0)
        found = best_joint_filling(units, free, items, beyond, max(columns, default=0))
        return (limit, 0, {}) if found is None else (found[0], *found)


def _price(dual: float) -> int:
    """Return a dual as a price; what is no number, or beyond all reason, is 0: any prices will do."""
    return round(dual * SCALE) if 0 < dual < 2.0**50 else 0
