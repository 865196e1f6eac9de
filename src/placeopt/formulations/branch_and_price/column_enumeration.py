"""Columns: what can be added to a room, searched for all GPU groups at once, family by family, with bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.branch_and_price.gpu_groups import NO_ROOM, GpuGroups, OpenGroups
from placeopt.problem import IntArray

NEVER = -(1 << 55)
"""Gain of what is not allowed; a sum of some dozens stays inside int64."""

MAX_COMBINATIONS = 96
"""Combinations of one family: above, its bundle groups are split into several families."""

MAX_CELLS = 2_000_000
"""Entries of one array of the search."""


@dataclass(frozen=True, eq=False)
class ColumnFamily:
    """Bundle groups of one profile, and H *combinations* of their bundles in one GPU group, ordered by their sum."""

    profile: int
    bundle_groups: IntArray  # (k,)
    bundle_counts: IntArray  # (H, k)
    jobs: IntArray  # (H,)
    slots: IntArray  # (H, M)
    units: IntArray  # (H,) thousandths of a GPU
    gpus: IntArray  # (H,)
    internal_interference: IntArray  # (H,) cost of the jobs of the combination to each other
    first: IntArray  # (n,) where combinations of each number of jobs begin
    number: IntArray  # (n,) these numbers


@dataclass(frozen=True, eq=False)
class FoundColumns:
    """Columns: S rows."""

    open_group: IntArray  # (S,)
    counts: IntArray  # (S, K)
    cost: IntArray  # (S,)
    gain: IntArray  # (S,) prices of what is placed less the cost
    complete: bool  # whether all were found whose gain reaches the threshold

    def after(self, earlier: FoundColumns) -> FoundColumns:
        """Both, as far as complete as this one."""
        open_group, counts, cost, gain = (
            np.concatenate([getattr(earlier, name), getattr(self, name)])
            for name in ("open_group", "counts", "cost", "gain")
        )
        return FoundColumns(open_group, counts, cost, gain, self.complete)


class ColumnSearch:
    """
    Depth by families: at each one, every partial pattern meets every combination, and what cannot reach is dropped.
    """

    def __init__(self, gpu_groups: GpuGroups, check: Callable[[], None]) -> None:
        self._bundle_groups, self._check = gpu_groups.bundle_groups, check
        self.families = _families(gpu_groups)
        profiles = [family.profile for family in self.families]
        self._pair = gpu_groups.bundle_groups.pair[np.ix_(profiles, profiles)]

    def fixed(self, open_groups: OpenGroups) -> list[IntArray]:
        """
        Per family, shape (A, H): cost of each combination by itself in each room, or ``-NEVER`` where it does not fit.
        """
        out = []
        for family in self.families:
            cost = family.internal_interference + open_groups.fixed[:, family.bundle_groups] @ family.bundle_counts.T
            cost = cost + open_groups.beside[:, family.profile][:, None] * family.jobs
            bad = (~open_groups.ok[:, family.bundle_groups]).astype(np.int64) @ family.bundle_counts.T > 0
            bad |= (family.slots[None, :, :] > open_groups.slots[:, None, :]).any(axis=2)
            out.append(np.where(bad, -NEVER, cost))
        return out

    def gain_bound(self, open_groups: OpenGroups, fixed: list[IntArray], price: IntArray) -> IntArray:
        """Shape (A,): bound on the gain of every pattern of each room that is not empty, without a search."""
        return _Bound(self.families, open_groups, self._values(fixed, price), price).root

    def run(
        self, open_groups: OpenGroups, fixed: list[IntArray], price: IntArray, least: IntArray, most: int | None = None
    ) -> FoundColumns:
        """
        Find the patterns, not empty, whose gain reaches ``least``.

        - ``price``: Shape (K,), of one bundle.
        - ``most``: Partial patterns of each room that are kept from one family to the next; then the answer may lack
          some.
        """
        values = self._values(fixed, price)
        bound = _Bound(self.families, open_groups, values, price)
        rows = np.flatnonzero(bound.root >= least)
        partial = _Partial.empty(rows, open_groups.slots.shape[1], len(self.families))
        complete = True
        for f, family in enumerate(self.families):
            self._check()
            at, combination = _pairs(bound, f, family, values[f], partial, least)
            fits = partial.slots[at] + family.slots[combination] <= open_groups.slots[partial.open_group[at]]
            at, combination = at[fits.all(axis=1)], combination[fits.all(axis=1)]
            partial = partial.extended(f, family, at, combination, values[f], self._pair[f])
            if f + 1 < len(self.families):
                reach = bound.reach(partial, f + 1) - least[partial.open_group]
                keep = np.flatnonzero(reach >= 0)
                if most is not None and len(keep) > most:
                    kept = best_of(partial.open_group[keep], reach[keep], most)
                    complete &= len(kept) == len(keep)
                    keep = keep[np.sort(kept)]
                partial = partial.take(keep)
        open_group = partial.open_group
        gain = partial.gain + open_groups.busy[open_group] * np.minimum(partial.gpus, open_groups.idle[open_group])
        gain = gain - np.where(open_groups.idle[open_group] > 0, open_groups.opening[open_group], 0)
        keep = np.flatnonzero((gain >= least[open_group]) & (partial.gpus > 0))
        counts = np.zeros((len(keep), len(self._bundle_groups)), dtype=np.int64)
        for f, family in enumerate(self.families):
            counts[:, family.bundle_groups] = family.bundle_counts[partial.combinations[keep, f]]
        return FoundColumns(open_group[keep], counts, counts @ price - gain[keep], gain[keep], complete)

    def _values(self, fixed: list[IntArray], price: IntArray) -> list[IntArray]:
        """Per family, shape (A, H): what each combination gains by itself in each room."""
        return [
            np.maximum(family.bundle_counts @ price[family.bundle_groups] - cost, NEVER)
            for family, cost in zip(self.families, fixed, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Partial:
    """S partial patterns: what they gain, and what they take of the GPU group that they are for."""

    open_group: IntArray  # (S,)
    gain: IntArray  # (S,)
    units: IntArray  # (S,) thousandths of a GPU
    gpus: IntArray  # (S,)
    slots: IntArray  # (S, M)
    interference: IntArray  # (S, F) cost of a job of each family beside the jobs that are in the pattern
    combinations: IntArray  # (S, F) chosen of each family

    @classmethod
    def empty(cls, open_group: IntArray, shares: int, families: int) -> _Partial:
        """Return one without jobs for each of the GPU groups."""
        shapes = ((), (), (), (shares,), (families,), (families,))
        return cls(open_group, *(np.zeros((len(open_group), *shape), dtype=np.int64) for shape in shapes))

    def take(self, rows: IntArray) -> _Partial:
        """Return some of the patterns."""
        return _Partial(*(array[rows] for array in vars(self).values()))

    def extended(
        self, f: int, family: ColumnFamily, at: IntArray, combination: IntArray, values: IntArray, pair: IntArray
    ) -> _Partial:
        """Return the patterns ``at``, each with a combination of family ``f``; ``pair`` is its cost beside each."""
        base, jobs = self.take(at), family.jobs[combination]
        combinations = base.combinations.copy()
        combinations[:, f] = combination
        return _Partial(
            open_group=base.open_group,
            gain=base.gain + values[base.open_group, combination] - base.interference[:, f] * jobs,
            units=base.units + family.units[combination],
            gpus=base.gpus + family.gpus[combination],
            slots=base.slots + family.slots[combination],
            interference=base.interference + jobs[:, None] * pair,
            combinations=combinations,
        )


def _pairs(
    bound: _Bound, f: int, family: ColumnFamily, values: IntArray, partial: _Partial, least: IntArray
) -> tuple[IntArray, IntArray]:
    """Return (partial pattern, combination) of all pairs that may still reach ``least``."""
    ats, picked = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    rest = bound.rest(partial, f + 1)
    step = max(1, MAX_CELLS // max(1, len(family.jobs)))
    for start in range(0, len(partial.open_group), step):
        part = slice(start, start + step)
        open_group = partial.open_group[part]
        gain = (partial.gain + rest)[part][:, None] + values[open_group]
        reach = bound.total(
            open_group[:, None],
            gain - partial.interference[part, f][:, None] * family.jobs,
            partial.units[part][:, None] + family.units,
            partial.gpus[part][:, None] + family.gpus,
        )
        at, combination = np.nonzero(reach >= least[open_group][:, None])
        ats.append(at + start)
        picked.append(combination)
    return np.concatenate(ats), np.concatenate(picked)


def best_of(open_group: IntArray, gain: IntArray, each: int) -> IntArray:
    """Positions of the ``each`` best of every GPU group, by GPU group."""
    order = np.lexsort((-gain, open_group))
    sorted_place = open_group[order]
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

    def __init__(
        self, families: list[ColumnFamily], open_groups: OpenGroups, values: list[IntArray], price: IntArray
    ) -> None:
        self._families, self._open_groups = families, open_groups
        scale = int((np.abs(price) // 250).max(initial=1)) + 1
        root = np.full(len(open_groups), -2 * NEVER, dtype=np.int64)
        self._rate, self._credit = (np.zeros(len(open_groups), dtype=np.int64) for _ in range(2))
        saves = np.maximum(open_groups.busy, 0)
        for part in (0, 2):
            for permille in (0, 30, 80, 160, 300, 500, 1000):
                rate, credit = np.full(len(open_groups), scale * permille // 1000, dtype=np.int64), saves * part // 2
                candidate = self._root(values, rate, credit)
                better = candidate < root
                root = np.where(better, candidate, root)
                self._rate = np.where(better, rate, self._rate)
                self._credit = np.where(better, credit, self._credit)
        self.root = root - open_groups.opening
        self._tables = self._make(values, self._rate, self._credit)
        self._constant = self._rate * open_groups.units + (saves - self._credit) * open_groups.idle
        self._constant -= open_groups.opening  # no pattern is empty in the end

    def _make(self, values: list[IntArray], rate: IntArray, credit: IntArray) -> list[IntArray]:
        """Per family, shape (A, n): the best combination of each number of jobs."""
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
        open_groups = self._open_groups
        best += rate * open_groups.units + (np.maximum(open_groups.busy, 0) - credit) * open_groups.idle
        return best

    def rest(self, partial: _Partial, after: int) -> IntArray:
        """Shape (S,): what families from ``after`` on can add, in the bound's prices."""
        total = np.zeros(len(partial.open_group), dtype=np.int64)
        for f in range(after, len(self._families)):
            cost = partial.interference[:, f][:, None] * self._families[f].number
            total += (self._tables[f][partial.open_group] - cost).max(axis=1)
        return total

    def reach(self, partial: _Partial, after: int) -> IntArray:
        """Shape (S,): bound on the gain of all patterns that add families from ``after`` on."""
        return self.total(partial.open_group, partial.gain + self.rest(partial, after), partial.units, partial.gpus)

    def total(self, open_group: IntArray, gain: IntArray, units: IntArray, gpus: IntArray) -> IntArray:
        """Bound on the gain of all patterns, not empty, that go on from partial ones."""
        reach: IntArray = (
            gain + self._constant[open_group] - self._rate[open_group] * units + self._credit[open_group] * gpus
        )
        return reach


def _families(gpu_groups: GpuGroups) -> list[ColumnFamily]:
    """Families, those first whose jobs disturb the least: then what is still to come is sure to be disturbed."""
    bundle_groups, open_groups = gpu_groups.bundle_groups, gpu_groups.open_groups
    most = open_groups.slots.max(axis=0, initial=0)
    room = np.full(len(bundle_groups), 0, dtype=np.int64)
    for k in range(len(bundle_groups)):
        with np.errstate(divide="ignore"):
            fits = np.where(gpu_groups.demand[:, k] > 0, most // np.maximum(gpu_groups.demand[:, k], 1), 1 << 30)
        room[k] = min(int(fits.min()), int(bundle_groups.supply[k])) if open_groups.ok[:, k].any() else 0
    out = []
    order = np.argsort(bundle_groups.pair.sum(axis=1), kind="stable")
    for profile in order.tolist():
        selected = np.flatnonzero((bundle_groups.profile == profile) & (room > 0))
        selected = selected[np.argsort(-bundle_groups.gpus[selected] * bundle_groups.milli[selected], kind="stable")]
        chunk: list[int] = []
        size = 1
        for k in selected.tolist():
            if chunk and size * (int(room[k]) + 1) > MAX_COMBINATIONS:
                out.append(_family(gpu_groups, profile, chunk, room, most))
                chunk, size = [], 1
            chunk.append(k)
            size *= int(room[k]) + 1
        if chunk:
            out.append(_family(gpu_groups, profile, chunk, room, most))
    if not out:
        raise Unsupported(NO_ROOM)
    return out


def _family(gpu_groups: GpuGroups, profile: int, chunk: list[int], room: IntArray, most: IntArray) -> ColumnFamily:
    bundle_groups = gpu_groups.bundle_groups
    selected = np.array(chunk, dtype=np.int64)
    bundle_counts = np.array(list(product(*(range(int(room[k]) + 1) for k in chunk))), dtype=np.int64)
    bundle_counts = bundle_counts[(bundle_counts @ gpu_groups.demand.T[selected] <= most).all(axis=1)]
    bundle_counts = bundle_counts[np.argsort(bundle_counts.sum(axis=1), kind="stable")]
    jobs = bundle_counts.sum(axis=1)
    number, first = np.unique(jobs, return_index=True)
    return ColumnFamily(
        profile=profile,
        bundle_groups=selected,
        bundle_counts=bundle_counts,
        jobs=jobs,
        slots=bundle_counts @ gpu_groups.demand.T[selected],
        units=bundle_counts @ (bundle_groups.gpus * bundle_groups.milli)[selected],
        gpus=bundle_counts @ bundle_groups.gpus[selected],
        internal_interference=jobs * (jobs - 1) // 2 * int(bundle_groups.pair[profile, profile]),
        first=first,
        number=number,
    )
