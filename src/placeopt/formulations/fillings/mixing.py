"""
Pricing of parts: the filling that pays most beyond what its jobs cost each other, for all parts at once.

What jobs cost each other depends only on how many there are of each profile. So the numbers by profile are
enumerated, one profile after the other; a table by slots says what these can pay at most. A beginning goes on while it
may lead to more than asked for in some unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from placeopt.formulations.fillings.disturbance import Disturbance
from placeopt.formulations.fillings.parts import Parts
from placeopt.formulations.fillings.pieces import Pieces
from placeopt.formulations.fillings.pool import Filling
from placeopt.formulations.fillings.pricing import Priced
from placeopt.problem import IntArray

NEVER = -(1 << 58)
"""What cannot be; a few of them still fit into 64 bits."""
MOST_CELLS = 1 << 20
"""Numbers in tables of beginnings, by units or slots, up to which all are followed that may lead to more."""


class MixPricing:
    """Fillings of parts by numbers of profiles."""

    def __init__(
        self, pieces: Pieces, parts: Parts, disturbance: Disturbance, scale: int, spend: Callable[[int], None]
    ) -> None:
        """
        Take what is to be priced.

        - ``scale``: Parts of a unit of cost in which prices are.
        - ``spend``: Is called with the work of each step, in numbers of tables, and may raise.
        """
        self._pieces, self._parts, self._disturbance, self._spend = pieces, parts, disturbance, spend
        self._scale = scale
        masks, self._mask_of = np.unique(parts.allowed, axis=0, return_inverse=True)
        self._masks, self._mask_of = masks, self._mask_of.reshape(-1)

    def cost(self, unit: int, filling: Filling) -> int:
        """Return what the jobs of a filling cost each other, and those that run there."""
        number = np.zeros(len(self._disturbance.pair), dtype=np.int64)
        for piece, count in filling:
            if self._pieces.profile[piece] >= 0:
                number[self._pieces.profile[piece]] += count
        pair = self._disturbance.pair
        among = (number @ pair @ number - number @ pair.diagonal()) // 2
        return int(among + number @ self._parts.beside[unit])

    def price(self, pays: IntArray, least: IntArray) -> Priced:
        """Return fillings that pay more than ``least`` beyond what their jobs cost; see `Pricing`."""
        out = Priced([], least.copy())
        for m, mask in enumerate(self._masks):
            units = np.flatnonzero(self._mask_of == m)
            paid = np.where(mask, pays, 0)
            _Search(self._pieces, self._parts, self._disturbance, units, paid, self._scale, self._spend).run(out)
        return out


class _Beginnings(NamedTuple):
    """K numbers of jobs by profile, the later ones 0 so far; Q profiles, tables up to S slots."""

    number: IntArray  # (K, Q)
    among: IntArray  # (K,) what these jobs cost each other
    pays: IntArray  # (K, S + 1) what such jobs, and pieces that disturb none, pay at most

    def some(self, which: IntArray | slice) -> _Beginnings:
        """Return some of them."""
        return _Beginnings(self.number[which], self.among[which], self.pays[which])


class _Search:
    """The search for one set of units that take the same pieces."""

    def __init__(
        self,
        pieces: Pieces,
        parts: Parts,
        disturbance: Disturbance,
        units: IntArray,
        pays: IntArray,
        scale: int,
        spend: Callable[[int], None],
    ) -> None:
        self._units, self._slots, self._spend = units, parts.slots[units], spend
        self._sizes, of_unit = np.unique(self._slots, return_inverse=True)
        self._size_of = of_unit.reshape(-1)
        room = int(self._slots.max())
        pair, beside = scale * disturbance.pair, scale * parts.beside[units]
        tables = [
            _Table(pays, parts.takes, np.flatnonzero((pieces.profile == q) & (pays > 0)), room)
            for q in range(len(pair))
        ]
        self._filler = _Table(pays, parts.takes, np.flatnonzero((pieces.profile < 0) & (pays > 0)), room)
        # profiles that can pay most first: bounds fall sooner
        order = [
            q
            for q in np.argsort([-int(t.best[-1].max()) for t in tables], kind="stable").tolist()
            if len(tables[q].best) > 1
        ]
        self._tables = [tables[q] for q in order]
        self._pair, self._beside = pair[np.ix_(order, order)], beside[:, order]
        self._rest = [np.zeros(room + 1, dtype=np.int64)]
        for at in reversed(range(len(order))):
            n = np.arange(len(self._tables[at].best))
            alone = self._pair[at, at] * (n * (n - 1) // 2) + n * self._beside[:, at].min()
            self._rest.insert(0, _added((self._tables[at].best - alone[:, None]).max(axis=0), self._rest[0]))

    def run(self, out: Priced) -> None:
        """Add what is found to ``out``."""
        self._least = out.most[self._units]
        most = self._least.copy()
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
                    out.fillings.append((int(self._units[i]), self._filling(begun.number[k], int(self._slots[i]))))
            most = np.maximum(most, reached.max(axis=0))
        out.most[self._units] = most

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
