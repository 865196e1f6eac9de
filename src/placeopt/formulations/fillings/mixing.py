"""
Pricing of parts: fillings that pay more beyond what their jobs cost, for all parts at once.

Beginnings of fillings go on item by item, those that disturb least first, while they may lead to more than asked for.
What the items still to come add is bounded by profile: each job is disturbed at least by those that are there, and by
the others of its profile; the share that is left has a price, as in a knapsack (Dantzig 1957).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.fillings.disturbance import Disturbance
from placeopt.formulations.fillings.groups import BundleGroups
from placeopt.formulations.fillings.parts import Parts, shares_of
from placeopt.formulations.fillings.pool import Column, Filling
from placeopt.formulations.fillings.pricing import Priced
from placeopt.problem import BoolArray, IntArray

NEVER = -(1 << 55)
"""What cannot be; some dozens of them still fit into 64 bits."""
EACH = 16
"""Fillings of a unit that are returned at a time."""
PIECE = 1 << 14
"""Beginnings that go on at a time: between two looks at the clock."""
PRICES = 16
"""Prices of a share that are tried."""


class Found(NamedTuple):
    """S fillings that were looked for, and what all others of each of n units pay at most."""

    at: IntArray  # (S,) position among the units
    counts: IntArray  # (S, D)
    pays: IntArray  # (S,) beyond the cost
    others: IntArray  # (n,) no other filling pays more than this, or than asked for


class MixPricing:
    """Fillings of parts by what their jobs pay and cost each other."""

    def __init__(
        self,
        parts: Parts,
        groups: BundleGroups,
        disturbance: Disturbance,
        supply: IntArray,
        scale: int,
        spend: Callable[[int], None],
    ) -> None:
        """
        Take what is to be priced.

        - ``supply``: Shape (D,): bundles that jobs need.
        - ``scale``: Parts of a unit of cost in which prices are.
        - ``spend``: Is called with the number of beginnings of each step, and may raise.
        """
        self.parts, self._groups, self._supply, self.scale, self._spend = parts, groups, supply, scale, spend
        self.gpus = groups.gpus
        quiet = len(disturbance.pair)  # the profile of bundles that disturb none
        self.pair: IntArray = scale * np.pad(disturbance.pair, (0, 1))
        self.profile: IntArray = np.where(groups.profile < 0, quiet, groups.profile)
        self._order = np.argsort(self.pair.sum(axis=1), kind="stable")
        shares = shares_of(groups)
        self.beside: IntArray = np.pad(parts.beside, ((0, 0), (0, 1)))[:, self.profile]
        """Shape (U, D): what a bundle costs beside what is there."""
        self.takes: IntArray = np.where(
            groups.milli[:, None] >= shares, groups.gpus[:, None] * (groups.milli[:, None] // shares), 0
        )

    def counts(self, filling: Filling) -> IntArray:
        """Return a filling as numbers by bundle group, (D,)."""
        counts = np.zeros(len(self._groups), dtype=np.int64)
        for d, number in filling:
            counts[d] = number
        return counts

    def cost(self, unit: int, counts: IntArray) -> int:
        """Return what the jobs of a filling, (D,), cost: each other, beside what is there, alone, and in free GPUs."""
        parts = self.parts
        number = np.bincount(self.profile, counts, minlength=len(self.pair)).astype(np.int64)
        among = (number @ self.pair @ number - number @ self.pair.diagonal()) // (2 * self.scale)
        gpus = int(counts @ self._groups.gpus)
        total = among + number[:-1] @ parts.beside[unit] + counts @ parts.own[unit]
        return int(total - min(parts.saves[unit] * gpus, parts.most_saved[unit]) + parts.opening[unit] * (gpus > 0))

    def bound(self, pays: IntArray, units: IntArray) -> IntArray:
        """Shape (n,): a bound on what fillings of each unit, not empty, pay beyond their cost, without a search."""
        return _Bound(self, pays, units, self._items(pays, units, every=False)[0]).root

    def price(self, pays: IntArray, least: IntArray, units: IntArray, most: int | None) -> Priced:
        """
        Return some fillings that pay more than ``least``, (n,), beyond their cost, and the most that any pays.

        ``most``: Beginnings of each unit that are followed; None for all.
        """
        found = self._search(pays, least, units, most, every=False)
        best = np.maximum(found.others, least)
        np.maximum.at(best, found.at, found.pays)
        chosen = best_of(found.at, found.pays, EACH)
        return Priced([(int(units[found.at[s]]), _filling(found.counts[s])) for s in chosen.tolist()], best)

    def within(self, pays: IntArray, least: IntArray, units: IntArray, most: int) -> list[Column] | None:
        """
        Return all fillings that pay more than ``least``, (n,), beyond their cost.

        None for more than ``most``, or where more beginnings than that may lead to some.
        """
        try:
            found = self._search(pays, least, units, most, every=True)
        except Unsupported:
            return None
        columns = []
        for unit, counts in zip(units[found.at].tolist(), found.counts, strict=True):
            self._spend(0)
            columns.append(Column(unit, _filling(counts), self.cost(unit, counts)))
        return columns

    def _search(self, pays: IntArray, least: IntArray, units: IntArray, most: int | None, *, every: bool) -> Found:
        """
        Look for fillings that pay more than ``least``: for ``every`` one, or the best.

        Raises ``Unsupported`` where more than ``most`` beginnings lead to every one; else the best of these go on.
        """
        items, supply = self._items(pays, units, every=every)
        bound = _Bound(self, pays, units, items)
        others = np.full(len(units), NEVER, dtype=np.int64)
        rows, asked = np.flatnonzero(bound.root > least), least
        begun = _Begun.empty(rows, bound.room[rows], len(self.pair), len(items))
        found = [begun.some(rows[:0])]
        for k, d in enumerate(items.tolist()):
            levels, number = [begun], 0
            while len(levels[-1].at) and number < supply[k]:
                hopeful = [levels[-1].some(slice(0))]
                for first in range(0, len(levels[-1].at), PIECE):
                    piece = levels[-1].some(slice(first, first + PIECE))
                    longer = piece.longer(k, bound, self.pair[self.profile[d]], int(self.profile[d]))
                    self._spend(len(longer.at))
                    if not every:  # the best so far of each unit are what the others have to exceed
                        found.append(longer.some(best_of(longer.at, bound.reached(longer), 1)))
                        least = least.copy()
                        np.maximum.at(least, longer.at, bound.reached(longer))
                    hopeful.append(longer.some(bound.of(k, longer) > least[longer.at]))
                levels.append(_joined(hopeful))
                number += 1
                if every and most is not None and sum(len(level.at) for level in levels) > most:
                    raise Unsupported("more fillings may pay as much than a program takes")
            begun = _joined(levels)
            hope = bound.of(k + 1, begun)
            kept = np.flatnonzero(hope > least[begun.at])
            kept = kept if every else kept[begun.some(kept).best()]
            begun, hope = begun.some(kept), hope[kept]
            if most is not None and not every and len(hope) > most:
                chosen = best_of(begun.at, hope, most)
                left = np.setdiff1d(np.arange(len(hope)), chosen)
                np.maximum.at(others, begun.at[left], hope[left])
                begun = begun.some(chosen)
        begun = begun if every else _joined(found)
        reached = bound.reached(begun)
        kept = np.flatnonzero((reached > asked[begun.at]) & (begun.counts.sum(axis=1) > 0))
        counts = np.zeros((len(kept), len(pays)), dtype=np.int64)
        counts[:, items] = begun.counts[kept]
        return Found(begun.at[kept], counts, reached[kept], others)

    def _items(self, pays: IntArray, units: IntArray, *, every: bool) -> tuple[IntArray, IntArray]:
        """
        Return bundle groups in the order in which they are added, and how many bundles jobs need.

        Only those that can pay, and the best of those that are alike with the bundles of all, unless ``every``.
        """
        parts, groups = self.parts, self._groups
        allowed, own, supply = parts.allowed[units], parts.own[units], self._supply
        able = np.flatnonzero(allowed.any(axis=0) & (supply > 0))
        if not every:
            gains = pays - self.scale * (own - parts.saves[units][:, None] * groups.gpus)
            able = able[(allowed & (gains > 0)).any(axis=0)[able]]
            able = able[np.argsort(-pays[able], kind="stable")]
            alike = np.vstack((groups.gpus, groups.milli, self.profile, allowed, own))[:, able]
            _, first, group = np.unique(alike, axis=1, return_index=True, return_inverse=True)
            supply = supply.copy()
            supply[able[first]] = np.bincount(group.reshape(-1), supply[able])
            able = able[first]
        rank = np.argsort(self._order)
        able = able[np.lexsort((-(groups.gpus * groups.milli)[able], rank[self.profile[able]]))]
        return able, supply[able]


class _Begun(NamedTuple):
    """S beginnings of fillings."""

    at: IntArray  # (S,) position of the unit
    pays: IntArray  # (S,) beyond the cost, but for GPUs that become busy
    gpus: IntArray  # (S,)
    room: IntArray  # (S, M) left
    beside: IntArray  # (S, Q + 1) what the jobs there cost one more of each profile
    counts: IntArray  # (S, items)

    @classmethod
    def empty(cls, rows: IntArray, room: IntArray, profiles: int, items: int) -> _Begun:
        """Return an empty one for each row."""
        none = np.zeros(len(rows), dtype=np.int64)
        return cls(
            rows,
            none,
            none,
            room,
            np.zeros((len(rows), profiles), dtype=np.int64),
            np.zeros((len(rows), items), dtype=np.int16),
        )

    def some(self, which: IntArray | BoolArray | slice) -> _Begun:
        """Return some of them."""
        return _Begun(*(array[which] for array in self))

    def best(self) -> IntArray:
        """Return the positions of those that pay most of all with as much room and as many jobs of each profile."""
        same = np.column_stack((self.at, self.room, self.gpus, self.beside))
        order = np.lexsort((-self.pays, *same.T))
        first = np.ones(len(order), dtype=bool)
        first[1:] = (same[order][1:] != same[order][:-1]).any(axis=1)
        return np.sort(order[first])

    def longer(self, k: int, bound: _Bound, pair: IntArray, profile: int) -> _Begun:
        """Return those that have room for one more of item k, with it."""
        some = self.some((bound.net[self.at, k] > NEVER) & (self.room >= bound.takes[k]).all(axis=1))
        counts = some.counts.copy()
        counts[:, k] += 1
        pays = some.pays + bound.net[some.at, k] - some.beside[:, profile]
        return _Begun(some.at, pays, some.gpus + bound.gpus[k], some.room - bound.takes[k], some.beside + pair, counts)


def _joined(parts: list[_Begun]) -> _Begun:
    """Return all beginnings of several lists, one or more."""
    return _Begun(*map(np.concatenate, zip(*parts, strict=True)))


class _Bound:
    """What n units can be paid at most beyond the cost, by items from one on."""

    def __init__(self, pricing: MixPricing, pays: IntArray, units: IntArray, items: IntArray) -> None:
        parts, groups, scale = pricing.parts.take(units), pricing._groups, pricing.scale
        self.room, self.opening = parts.room, scale * parts.opening
        self.saves, self._saved = scale * parts.saves, scale * parts.most_saved
        profile = pricing.profile[items]
        net = pays[items] - scale * (parts.own[:, items] + pricing.beside[units][:, items])
        self.net: IntArray = np.where(parts.allowed[:, items], net, NEVER)
        """Shape (n, items): what one pays beyond its own cost."""
        self.takes, self.gpus = pricing.takes[items], groups.gpus[items]
        self._profiles, self._own = len(pricing.pair), pricing.pair.diagonal()
        self._most = int(self.room[:, 0].max(initial=0)) // max(int(self.takes[:, 0].min(initial=1)), 1)
        self.root: IntArray = np.full(len(units), -NEVER, dtype=np.int64)
        self._rate, self._credit = np.zeros(len(units), dtype=np.int64), np.zeros(len(units), dtype=np.int64)
        density = np.unique(
            np.maximum(self.net + self.saves[:, None] * self.gpus, 0) // np.maximum(self.takes[:, 0], 1)
        )
        tried = np.append(
            0, density[np.linspace(0, len(density) - 1, min(PRICES, len(density)), dtype=int)] if len(density) else []
        )
        for credit in (self.saves, 0 * self.saves) if self.saves.any() else (self.saves,):
            for rate in tried.tolist():
                rates = np.full(len(units), rate, dtype=np.int64)
                root = self._at(rates, credit, profile)
                better = root < self.root
                self.root = np.where(better, root, self.root)
                self._rate, self._credit = np.where(better, rates, self._rate), np.where(better, credit, self._credit)
        self._tables = self._best(self._rate, self._credit, profile)

    def _best(self, rate: IntArray, credit: IntArray, profile: IntArray) -> IntArray:
        """Shape (items + 1, n, Q + 1): the most that an item from each on pays beyond its share, by profile."""
        items = len(profile)
        out = np.full((items + 1, len(rate), self._profiles), NEVER, dtype=np.int64)
        each = self.net - rate[:, None] * self.takes[:, 0] + credit[:, None] * self.gpus
        for k in reversed(range(items)):
            out[k] = out[k + 1]
            out[k, :, profile[k]] = np.maximum(out[k, :, profile[k]], each[:, k])
        return out

    def _at(self, rate: IntArray, credit: IntArray, profile: IntArray) -> IntArray:
        """Shape (n,): the bound on all fillings, not empty, at some prices."""
        each = self.net - rate[:, None] * self.takes[:, 0] + credit[:, None] * self.gpus
        best = np.full((len(rate), self._profiles), NEVER, dtype=np.int64)
        for k, q in enumerate(profile.tolist()):
            best[:, q] = np.maximum(best[:, q], each[:, k])
        total: IntArray = (
            self._sum(best) + rate * self.room[:, 0] + np.where(credit < self.saves, self._saved, 0) - self.opening
        )
        return total

    def _sum(self, best: IntArray) -> IntArray:
        """Shape (S,): what all jobs that are worth it pay, the first of each profile ``best``, (S, Q + 1)."""
        own = self._own
        worth = np.where(own > 0, -(-best // np.maximum(own, 1)), self._most)
        number = np.clip(np.where(best > 0, worth, 0), 0, self._most)
        total: IntArray = (number * np.maximum(best, 0) - own * (number * (number - 1) // 2)).sum(axis=1)
        return total

    def reached(self, begun: _Begun) -> IntArray:
        """Shape (S,): what beginnings pay beyond their cost as they are."""
        at = begun.at
        saved = np.minimum(self.saves[at] * begun.gpus, self._saved[at])
        reached: IntArray = begun.pays + saved - self.opening[at]
        return reached

    def of(self, k: int, begun: _Begun) -> IntArray:
        """Shape (S,): bound on what beginnings lead to with items from k on."""
        at = begun.at
        total: IntArray = begun.pays + self._sum(self._tables[k][at] - begun.beside)
        total += self._rate[at] * begun.room[:, 0] + self._credit[at] * begun.gpus
        return total + np.where(self._credit < self.saves, self._saved, 0)[at] - self.opening[at]


def best_of(group: IntArray, worth: IntArray, each: int) -> IntArray:
    """Return the positions of the ``each`` that are worth most of every group."""
    order = np.lexsort((-worth, group))
    start = np.flatnonzero(np.diff(group[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(start, np.diff(start, append=len(order)))
    chosen: IntArray = order[rank < each]
    return chosen


def _filling(counts: IntArray) -> Filling:
    return tuple((d, int(counts[d])) for d in np.flatnonzero(counts).tolist())
