"""Contents: what can be added to a room, searched for all rooms at once, family by family, with bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.branch_and_price.gpu_groups import GpuGroups, OpenGroups
from placeopt.problem import IntArray

NEVER = -(1 << 55)
"""Gain of what is not allowed; a sum of some dozens stays inside int64."""

MAX_HANDS = 96
"""Combinations of one family: above, its kinds are split into several families."""

MAX_CELLS = 2_000_000
"""Entries of one array of the search."""


@dataclass(frozen=True, eq=False)
class Family:
    """Kinds of one profile, and H *hands*: how many bundles of each may go to one room, ordered by their sum."""

    profile: int
    kinds: IntArray  # (k,)
    hands: IntArray  # (H, k)
    jobs: IntArray  # (H,)
    slots: IntArray  # (H, M)
    units: IntArray  # (H,) thousandths of a GPU
    gpus: IntArray  # (H,)
    quarrel: IntArray  # (H,) cost of the jobs of the hand to each other
    first: IntArray  # (n,) where hands of each number of jobs begin
    number: IntArray  # (n,) these numbers


@dataclass(frozen=True, eq=False)
class FoundColumns:
    """Contents: S rows."""

    place: IntArray  # (S,)
    counts: IntArray  # (S, K)
    cost: IntArray  # (S,)
    gain: IntArray  # (S,) prices of what is placed less the cost
    complete: bool  # whether all were found whose gain reaches the threshold

    def after(self, earlier: FoundColumns) -> FoundColumns:
        """Both, as far as complete as this one."""
        place, counts, cost, gain = (
            np.concatenate([getattr(earlier, name), getattr(self, name)])
            for name in ("place", "counts", "cost", "gain")
        )
        return FoundColumns(place, counts, cost, gain, self.complete)


class ColumnSearch:
    """Depth by families: at each one, every partial content meets every hand, and what cannot reach is dropped."""

    def __init__(self, rooms: GpuGroups, check: Callable[[], None]) -> None:
        self._kinds, self._rooms, self._check = rooms.kinds, rooms, check
        self.families = _families(rooms)
        profiles = [family.profile for family in self.families]
        self._pair = rooms.kinds.pair[np.ix_(profiles, profiles)]

    def fixed(self, places: OpenGroups) -> list[IntArray]:
        """Per family, shape (A, H): cost of each hand by itself in each room, or ``-NEVER`` where it does not fit."""
        out = []
        for family in self.families:
            cost = family.quarrel + places.fixed[:, family.kinds] @ family.hands.T
            cost = cost + places.beside[:, family.profile][:, None] * family.jobs
            bad = (~places.ok[:, family.kinds]).astype(np.int64) @ family.hands.T > 0
            bad |= (family.slots[None, :, :] > places.slots[:, None, :]).any(axis=2)
            out.append(np.where(bad, -NEVER, cost))
        return out

    def run(
        self, places: OpenGroups, fixed: list[IntArray], price: IntArray, least: IntArray, most: int | None = None
    ) -> FoundColumns:
        """
        Find the contents, not empty, whose gain reaches ``least``.

        Parameters
        ----------
        places, fixed
            The rooms, and what ``fixed`` says of them.
        price
            Shape (K,), of one bundle.
        least
            Shape (A,).
        most
            Partial contents of each room that are kept from one family to the next; then the answer may lack some.
        """
        values = [
            np.maximum(family.hands @ price[family.kinds] - cost, NEVER)
            for family, cost in zip(self.families, fixed, strict=True)
        ]
        bound = _Bound(self.families, places, values, price)
        width = len(self.families)
        rows = np.flatnonzero(bound.root >= least)
        place = rows
        gain, units, gpus = (np.zeros(len(rows), dtype=np.int64) for _ in range(3))
        slots = np.zeros((len(rows), places.slots.shape[1]), dtype=np.int64)
        quarrel = np.zeros((len(rows), width), dtype=np.int64)
        hands = np.zeros((len(rows), 0), dtype=np.int64)
        complete = True
        for f, family in enumerate(self.families):
            self._check()
            rest = bound.rest(place, quarrel, f + 1)
            at, hand = self._pairs(bound, family, values[f], place, gain, units, gpus, quarrel[:, f], rest, least)
            filled = slots[at] + family.slots[hand]
            fits = (filled <= places.slots[place[at]]).all(axis=1)
            at, hand, slots = at[fits], hand[fits], filled[fits]
            jobs = family.jobs[hand]
            gain = gain[at] + values[f][place[at], hand] - quarrel[at, f] * jobs
            quarrel = quarrel[at] + jobs[:, None] * self._pair[f]
            units, gpus = units[at] + family.units[hand], gpus[at] + family.gpus[hand]
            hands = np.concatenate([hands[at], hand[:, None]], axis=1)
            place = place[at]
            if f + 1 < width:
                reach = bound.total(place, gain + bound.rest(place, quarrel, f + 1), units, gpus)
                keep = np.flatnonzero(reach >= least[place])
                if most is not None and len(keep) > most:
                    kept = best_of(place[keep], (reach - least[place])[keep], most)
                    complete &= len(kept) == len(keep)
                    keep = keep[np.sort(kept)]
                place, gain, units, gpus = place[keep], gain[keep], units[keep], gpus[keep]
                slots, quarrel, hands = slots[keep], quarrel[keep], hands[keep]
        gain = gain + places.busy[place] * np.minimum(gpus, places.idle[place])
        gain = gain - np.where(places.idle[place] > 0, places.opening[place], 0)
        keep = np.flatnonzero((gain >= least[place]) & (gpus > 0))
        counts = np.zeros((len(keep), len(self._kinds)), dtype=np.int64)
        for f, family in enumerate(self.families):
            counts[:, family.kinds] = family.hands[hands[keep, f]]
        return FoundColumns(place[keep], counts, counts @ price - gain[keep], gain[keep], complete)

    @staticmethod
    def _pairs(
        bound: _Bound,
        family: Family,
        values: IntArray,
        place: IntArray,
        gain: IntArray,
        units: IntArray,
        gpus: IntArray,
        quarrel: IntArray,
        rest: IntArray,
        least: IntArray,
    ) -> tuple[IntArray, IntArray]:
        """Return (partial content, hand) of all pairs that may still reach ``least``."""
        ats, picked = [], []
        step = max(1, MAX_CELLS // max(1, len(family.jobs)))
        for start in range(0, len(place), step):
            part = slice(start, start + step)
            mine = place[part]
            reach = bound.total(
                mine[:, None],
                (gain + rest)[part][:, None] + values[mine] - quarrel[part][:, None] * family.jobs,
                units[part][:, None] + family.units,
                gpus[part][:, None] + family.gpus,
            )
            at, hand = np.nonzero(reach >= least[mine][:, None])
            ats.append(at + start)
            picked.append(hand)
        if not ats:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return np.concatenate(ats), np.concatenate(picked)


def best_of(place: IntArray, gain: IntArray, each: int) -> IntArray:
    """Positions of the ``each`` best of every place, by place."""
    order = np.lexsort((-gain, place))
    sorted_place = place[order]
    start = np.flatnonzero(np.diff(sorted_place, prepend=-1))
    rank = np.arange(len(order)) - np.repeat(start, np.diff(start, append=len(order)))
    chosen: IntArray = order[rank < each]
    return chosen


class _Bound:
    """
    What the families still to come can add at most, each by its number of jobs, with two prices as in a knapsack.

    ``rate`` is paid for each thousandth of share that is left; GPUs that become busy save ``credit`` each without end
    instead of ``busy`` up to the idle ones. Both are chosen by room such that the bound at the root is low.
    """

    def __init__(self, families: list[Family], places: OpenGroups, values: list[IntArray], price: IntArray) -> None:
        self._families, self._places = families, places
        scale = int((np.abs(price) // 250).max(initial=1)) + 1
        root = np.full(len(places), -2 * NEVER, dtype=np.int64)
        self._rate, self._credit = (np.zeros(len(places), dtype=np.int64) for _ in range(2))
        saves = np.maximum(places.busy, 0)
        for part in (0, 2):
            for permille in (0, 30, 80, 160, 300, 500, 1000):
                rate, credit = np.full(len(places), scale * permille // 1000, dtype=np.int64), saves * part // 2
                found = self._root(values, rate, credit)
                better = found < root
                root = np.where(better, found, root)
                self._rate = np.where(better, rate, self._rate)
                self._credit = np.where(better, credit, self._credit)
        self.root = root
        self._tables = self._make(values, self._rate, self._credit)
        self._constant = self._rate * places.units + (saves - self._credit) * places.idle

    def _make(self, values: list[IntArray], rate: IntArray, credit: IntArray) -> list[IntArray]:
        """Per family, shape (A, n): the best hand of each number of jobs."""
        return [
            np.maximum.reduceat(
                value - rate[:, None] * family.units + credit[:, None] * family.gpus, family.first, axis=1
            )
            for family, value in zip(self._families, values, strict=True)
        ]

    def _root(self, values: list[IntArray], rate: IntArray, credit: IntArray) -> IntArray:
        best: IntArray = np.zeros(len(rate), dtype=np.int64)
        for table in self._make(values, rate, credit):
            best += table.max(axis=1)
        places = self._places
        best += rate * places.units + (np.maximum(places.busy, 0) - credit) * places.idle
        return best

    def rest(self, place: IntArray, quarrel: IntArray, after: int) -> IntArray:
        """Shape (S,): what families from ``after`` on can add, in the bound's prices."""
        total = np.zeros(len(place), dtype=np.int64)
        for f in range(after, len(self._families)):
            number = self._families[f].number
            total += (self._tables[f][place] - quarrel[:, f][:, None] * number).max(axis=1)
        return total

    def total(self, place: IntArray, gain: IntArray, units: IntArray, gpus: IntArray) -> IntArray:
        """Bound on the gain of all contents that go on from partial ones."""
        opened = np.where(gpus > 0, self._places.opening[place], 0)
        reach: IntArray = gain + self._constant[place] - self._rate[place] * units + self._credit[place] * gpus - opened
        return reach


def _families(rooms: GpuGroups) -> list[Family]:
    """Families, those first whose jobs disturb the least: then what is still to come is sure to be disturbed."""
    kinds, places = rooms.kinds, rooms.places
    most = places.slots.max(axis=0, initial=0)
    room = np.full(len(kinds), 0, dtype=np.int64)
    for k in range(len(kinds)):
        with np.errstate(divide="ignore"):
            fits = np.where(rooms.demand[:, k] > 0, most // np.maximum(rooms.demand[:, k], 1), 1 << 30)
        room[k] = min(int(fits.min()), int(kinds.supply[k])) if places.ok[:, k].any() else 0
    out = []
    order = np.argsort(kinds.pair.sum(axis=1), kind="stable")
    for profile in order.tolist():
        mine = np.flatnonzero((kinds.profile == profile) & (room > 0))
        mine = mine[np.argsort(-kinds.gpus[mine] * kinds.milli[mine], kind="stable")]
        chunk: list[int] = []
        size = 1
        for k in mine.tolist():
            if chunk and size * (int(room[k]) + 1) > MAX_HANDS:
                out.append(_family(rooms, profile, chunk, room, most))
                chunk, size = [], 1
            chunk.append(k)
            size *= int(room[k]) + 1
        if chunk:
            out.append(_family(rooms, profile, chunk, room, most))
    if not out:
        raise Unsupported("no waiting job fits into a room")
    return out


def _family(rooms: GpuGroups, profile: int, chunk: list[int], room: IntArray, most: IntArray) -> Family:
    kinds = rooms.kinds
    mine = np.array(chunk, dtype=np.int64)
    hands = np.array(list(product(*(range(int(room[k]) + 1) for k in chunk))), dtype=np.int64)
    hands = hands[(hands @ rooms.demand.T[mine] <= most).all(axis=1)]
    hands = hands[np.argsort(hands.sum(axis=1), kind="stable")]
    jobs = hands.sum(axis=1)
    number, first = np.unique(jobs, return_index=True)
    return Family(
        profile=profile,
        kinds=mine,
        hands=hands,
        jobs=jobs,
        slots=hands @ rooms.demand.T[mine],
        units=hands @ (kinds.gpus * kinds.milli)[mine],
        gpus=hands @ kinds.gpus[mine],
        quarrel=jobs * (jobs - 1) // 2 * int(kinds.pair[profile, profile]),
        first=first,
        number=number,
    )
