"""
A quick bound on what fillings of parts pay beyond what their jobs cost, and those that reach it.

What jobs cost each other depends only on how many there are of each profile. So the numbers by profile are
enumerated, one profile after the other; a table by slots says what these can pay at most. A beginning goes on while it
may lead to more than asked for in some unit. Slots are what is free on all GPUs together, whatever each holds.
Every bundle saves what its GPUs save that become busy, as if it shared none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from placeopt.formulations.fillings.mixing import NEVER, MixPricing
from placeopt.formulations.fillings.pool import Filling
from placeopt.formulations.fillings.pricing import Priced
from placeopt.problem import IntArray

MOST_CELLS = 1 << 20
"""Numbers in tables of beginnings, by units or slots, up to which all are followed that may lead to more."""
MOST_SLOTS = 64
"""Slots of a part up to which they are as fine as shares of GPUs are; beyond, demands are rounded down."""


class TablePricing:
    """Fillings of parts by numbers of profiles."""

    def __init__(self, pricing: MixPricing, spend: Callable[[int], None]) -> None:
        """
        Take what is to be priced from ``pricing``.

        ``spend`` is called with the work of each step, in numbers of tables, and may raise.
        """
        self._pricing, self._spend = pricing, spend
        parts, takes = pricing.parts, pricing.takes[:, 0]
        room = parts.room[:, 0]
        slot = min(-(-int(room.max(initial=1)) // MOST_SLOTS), int(takes[takes > 0].min(initial=1 << 40)))
        self._slots, self._takes = room // slot, takes // slot
        keys = np.column_stack((parts.allowed, parts.own, parts.saves))
        _, alike = np.unique(keys, axis=0, return_inverse=True)
        self._alike: IntArray = alike.reshape(-1)

    def price(self, pays: IntArray, least: IntArray, units: IntArray) -> Priced:
        """Return fillings that pay more than ``least``, (n,), and the most that any pays; see `Pricing`."""
        pricing, parts = self._pricing, self._pricing.parts
        opening, found = pricing.scale * parts.opening[units], []
        most = np.maximum(least, 0) + opening
        for alike in np.unique(self._alike[units]).tolist():
            at = np.flatnonzero(self._alike[units] == alike)
            one = int(units[at[0]])
            own = parts.own[one] - parts.saves[one] * pricing.gpus
            net = np.where(parts.allowed[one], pays - pricing.scale * own, 0)
            most[at], fillings = _Search(self, units[at], net, most[at]).run()
            found += fillings
        good = {}
        for unit, filling in found:
            counts = pricing.counts(filling)
            if (counts @ pricing.takes <= parts.room[unit]).all():
                good[unit] = filling, int(pays @ counts) - pricing.scale * pricing.cost(unit, counts)
        asked = dict(zip(units.tolist(), least.tolist(), strict=True))
        better = [(unit, filling) for unit, (filling, paid) in good.items() if paid > asked[unit]]
        return Priced(better, np.maximum(most - opening, least))


class _Beginnings(NamedTuple):
    """K numbers of jobs by profile, the later ones 0 so far; Q profiles, tables up to S slots."""

    number: IntArray  # (K, Q)
    among: IntArray  # (K,) what these jobs cost each other
    pays: IntArray  # (K, S + 1) what such jobs, and pieces that disturb none, pay at most

    def some(self, which: IntArray | slice) -> _Beginnings:
        """Return some of them."""
        return _Beginnings(self.number[which], self.among[which], self.pays[which])


class _Search:
    """The search for one set of units that take the same bundles at the same cost."""

    def __init__(self, tables: TablePricing, units: IntArray, pays: IntArray, least: IntArray) -> None:
        """``pays``, (D,), is beyond what a bundle costs by itself; ``least``, (n,), what is asked for."""
        pricing, takes = tables._pricing, tables._takes
        self._units, self._slots, self._spend, self._least = units, tables._slots[units], tables._spend, least
        self._sizes, of_unit = np.unique(self._slots, return_inverse=True)
        self._size_of = of_unit.reshape(-1)
        room, profile, quiet = int(self._slots.max()), pricing.profile, len(pricing.pair) - 1
        pair, beside = pricing.pair[:quiet, :quiet], pricing.scale * pricing.parts.beside[units]
        tables_ = [_Table(pays, takes, np.flatnonzero((profile == q) & (pays > 0)), room) for q in range(quiet)]
        self._filler = _Table(pays, takes, np.flatnonzero((profile == quiet) & (pays > 0)), room)
        # profiles that can pay most first: bounds fall sooner
        order = [
            q
            for q in np.argsort([-int(t.best[-1].max()) for t in tables_], kind="stable").tolist()
            if len(tables_[q].best) > 1
        ]
        self._tables = [tables_[q] for q in order]
        self._pair, self._beside = pair[np.ix_(order, order)], beside[:, order]
        self._rest = [np.zeros(room + 1, dtype=np.int64)]
        for at in reversed(range(len(order))):
            n = np.arange(len(self._tables[at].best))
            alone = self._pair[at, at] * (n * (n - 1) // 2) + n * self._beside[:, at].min()
            self._rest.insert(0, _added((self._tables[at].best - alone[:, None]).max(axis=0), self._rest[0]))

    def run(self) -> tuple[IntArray, list[tuple[int, Filling]]]:
        """Return what no filling of each unit pays more than, or what was asked for, and those that pay most."""
        most, found = self._least.copy(), []
        begun = _Beginnings(
            np.zeros((1, len(self._tables)), dtype=np.int64),
            np.zeros(1, dtype=np.int64),
            self._filler.best.max(axis=0)[None, :],
        )
        for at in range(len(self._tables)):
            begun, cut = self._longer(at, begun)
            most = np.maximum(most, cut)
        if len(begun.among):
            reached = self._bound(len(self._tables), begun)
            for i, k in enumerate(reached.argmax(axis=0).tolist()):
                if reached[k, i] > self._least[i]:
                    found.append((int(self._units[i]), self._filling(begun.number[k], int(self._slots[i]))))
            most = np.maximum(most, reached.max(axis=0))
        return most, found

    def _longer(self, at: int, begun: _Beginnings) -> tuple[_Beginnings, IntArray]:
        """Return beginnings with one more profile, as far as they are followed, and what the others may lead to."""
        wide = max(len(self._units), begun.pays.shape[1])
        each = max(MOST_CELLS // (wide * len(self._tables[at].best)), 1)
        found, hopes, bounds = [], [], []
        for first in range(0, len(begun.among), each):
            longer = self._with(at, begun.some(slice(first, first + each)))
            self._spend(len(longer.among) * wide)
            bound = self._bound(at + 1, longer)
            hope = (bound - self._least).max(axis=1)
            kept = np.flatnonzero(hope > 0)
            found.append(longer.some(kept))
            hopes.append(hope[kept])
            bounds.append(bound[kept])
        if not found:
            return begun, self._least
        begun = _Beginnings(*map(np.concatenate, zip(*found, strict=True)))
        order, bound = np.argsort(-np.concatenate(hopes), kind="stable"), np.concatenate(bounds)
        most = MOST_CELLS // wide
        return begun.some(order[:most]), bound[order[most:]].max(axis=0, initial=NEVER)

    def _with(self, at: int, begun: _Beginnings) -> _Beginnings:
        """Return beginnings with 0, 1, 2, ... jobs of one more profile."""
        n, size = np.arange(len(self._tables[at].best)), len(begun.among)
        number = np.tile(begun.number, (len(n), 1))
        number[:, at] = np.repeat(n, size)
        among = n[:, None] * (begun.number @ self._pair[at]) + (self._pair[at, at] * (n * (n - 1) // 2))[:, None]
        pays = self._tables[at].beside(begun.pays)
        return _Beginnings(number, (begun.among + among).reshape(-1), pays.reshape(-1, pays.shape[2]))

    def _bound(self, at: int, begun: _Beginnings) -> IntArray:
        """Shape (K, units): what beginnings lead to at most, with profiles from ``at`` on still to come."""
        pays, rest = begun.pays, self._rest[at]
        reached = np.stack([(pays[:, : s + 1] + rest[s::-1]).max(axis=1) for s in self._sizes.tolist()], axis=1)
        bound: IntArray = reached[:, self._size_of] - begun.among[:, None] - begun.number @ self._beside.T
        return bound

    def _filling(self, number: IntArray, slots: int) -> Filling:
        """Walk back from the table of a mix to its pieces."""
        steps = [self._filler.best.max(axis=0)]
        for n, table in zip(number.tolist(), self._tables, strict=True):
            steps.append(_added(steps[-1], table.best[n]))
        held: Counter[int] = Counter()
        for n, table, before, after in zip(
            number[::-1].tolist(), self._tables[::-1], steps[-2::-1], steps[:0:-1], strict=True
        ):
            given = int(np.flatnonzero(before[slots::-1] + table.best[n][: slots + 1] == after[slots])[0])
            held.update(table.pieces(n, given))
            slots -= given
        held.update(self._filler.pieces(int(self._filler.best[:, slots].argmax()), slots))
        return tuple(sorted(held.items()))


class _Table:
    """What n pieces of some kinds pay at most in s slots or fewer: ``best``, shape (1 + most pieces, room + 1)."""

    def __init__(self, pays: IntArray, takes: IntArray, kinds: IntArray, room: int) -> None:
        self._pays, self._takes = pays, takes
        each: dict[int, int] = {}  # by slots, the kind that pays most
        for kind in kinds[np.argsort(-pays[kinds], kind="stable")].tolist():
            each.setdefault(int(takes[kind]), kind)
        self._kinds = [kind for slots, kind in sorted(each.items()) if slots <= room]
        smallest = min((int(takes[kind]) for kind in self._kinds), default=room + 1)
        self._most = room // smallest
        self.best: IntArray = self.beside(np.zeros((1, room + 1), dtype=np.int64))[:, 0]

    def beside(self, tables: IntArray) -> IntArray:
        """Shape (1 + most pieces, K, room + 1): what K tables by slots make together with 0, 1, 2, ... pieces."""
        size = tables.shape[1]
        out = np.full((1 + self._most, *tables.shape), NEVER, dtype=np.int64)
        out[0] = tables
        for before, after in pairwise(out):
            for kind in self._kinds:
                slots, pays = int(self._takes[kind]), self._pays[kind]
                np.maximum(after[:, slots:], before[:, : size - slots] + pays, out=after[:, slots:])
        return out

    def pieces(self, n: int, slots: int) -> Counter[int]:
        """Return n pieces that pay as much as the table says, in so many slots or fewer."""
        held: Counter[int] = Counter()
        for left in range(n, 0, -1):
            for kind in self._kinds:
                before = slots - int(self._takes[kind])
                if before >= 0 and self.best[left - 1, before] + self._pays[kind] == self.best[left, slots]:
                    held[kind] += 1
                    slots = before
                    break
        return held


def _added(one: IntArray, other: IntArray) -> IntArray:
    """Return the most that two tables by slots, (S + 1,) each, make together."""
    slots = np.arange(len(one))
    first = slots[:, None] - slots  # what is left for the first, by all slots and those of the other
    table: IntArray = np.maximum((np.where(first >= 0, one[first], NEVER) + other).max(axis=1), NEVER)
    return table
