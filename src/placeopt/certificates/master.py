"""The linear program behind prices: jobs start in ways, and their bundles are in fillings of nodes."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt.certificates.clock import check_time
from placeopt.certificates.room import Room, Way
from placeopt.linear import NO_LOWER, NO_UPPER, IntArray, ModelBuilder


class Counted(NamedTuple):
    """What branches count: jobs of a group that start, or their bundles in an option."""

    group: int
    option: str | None


class Branch(NamedTuple):
    """A side of a branch: at most, or at least, ``limit`` of what is counted."""

    counted: Counted
    at_most: bool
    limit: int


def times_of(ways: Sequence[tuple[int, Way]], counted: Counted) -> IntArray:
    """Return how often a start in each way counts, shape (ways,); ``ways``: each with the number of its group."""
    own = (g == counted.group and counted.option in (None, way.option) for g, way in ways)
    each = (1 if counted.option is None else way.bundles for _, way in ways)
    return _ints([yes * times for yes, times in zip(own, each, strict=True)])


def counts_of(ways: Sequence[tuple[int, Way]], starts: np.ndarray) -> dict[Counted, float]:
    """Return how many jobs of each group start, then how many of their bundles in each option."""
    counts: dict[Counted, float] = {}
    for (g, _), start in zip(ways, starts.tolist(), strict=True):
        counts[Counted(g, None)] = counts.get(Counted(g, None), 0.0) + start
    for (g, way), start in zip(ways, starts.tolist(), strict=True):
        what = Counted(g, way.option)
        counts[what] = counts.get(what, 0.0) + start * way.bundles
    return counts


class Column(NamedTuple):
    """A filling of the GPUs of a node of a state: pairs of a bundle and how many of it."""

    state: int
    filling: tuple[tuple[int, int], ...]


class Goal(NamedTuple):
    """Of plans whose cost is bounded."""

    value: int
    """What they are worth."""
    penalty: int
    """What a unit of value costs that is missing, and what a branch lacks."""


@dataclass(frozen=True, eq=False)
class Duals:
    """Of the rows: what a bundle, an amount of a node of a state, a unit of value, and a branch are worth."""

    bundle: np.ndarray
    amounts: np.ndarray
    value: float
    branches: tuple[float, ...]

    def halfway(self, other: Duals) -> Duals:
        """Return the mean of two."""
        branches = tuple((a + b) / 2 for a, b in zip(self.branches, other.branches, strict=True))
        bundle, amounts = (self.bundle + other.bundle) / 2, (self.amounts + other.amounts) / 2
        return Duals(bundle, amounts, (self.value + other.value) / 2, branches)


class Master:
    """
    The linear program of a room under branches: the most value, or, with a ``goal``, the least cost of plans worth it.

    Variables: jobs of a group that start in a way; nodes of a state with a filling; bundles without GPUs on nodes of a
    state; what a goal and branches lack. Without ``columns``, which come with their costs, all bundles are like those
    without GPUs, and GPUs are an amount: a first guess of the prices. Columns of the states in ``joint`` hold all
    bundles, and keep to the amounts of a node by themselves.
    """

    def __init__(
        self,
        room: Room,
        columns: Mapping[Column, int] | None,
        branches: Sequence[Branch],
        joint: Container[int] = (),
        goal: Goal | None = None,
        deadline: float = float("inf"),
    ) -> None:
        self._room, self._joint = room, np.array([s in joint for s in range(len(room.states))], dtype=bool)
        self._builder, self._branches = ModelBuilder(deadline), branches
        builder = self._builder
        self._ways = ways = [(g, way) for g, group in enumerate(room.groups) for way in group.ways]
        self._group = _ints([g for g, _ in ways])
        size = _ints([len(group.jobs) for group in room.groups])
        self._start = start = builder.add_variables(0, size[self._group])
        builder.add_rows(self._group, start, 1, NO_LOWER, size)
        self._count = _ints([len(state.nodes) for state in room.states])
        single = [
            (s, fitting.bundle, fitting.most)
            for s, state in enumerate(room.states)
            if check_time(deadline)
            for fitting in (() if s in joint else state.fitting)
            if columns is None or not room.bundles[fitting.bundle].gpus
        ]
        filled, held = self._hold(columns or {}, single)
        taken = (_ints([way.bundle for _, way in ways]), start, _ints([way.bundles for _, way in ways]))
        self._bundle_rows = builder.num_rows
        builder.add_parts(NO_LOWER, 0, taken, (held.bundle, held.column, -held.number), count=len(room.bundles))
        self._state_rows = builder.num_rows
        if columns is None:
            share = _ints([bundle.gpus * bundle.share for bundle in room.bundles])[held.bundle]
            there = _ints([sum(state.units) for state in room.states]) * self._count
            builder.add_parts(NO_LOWER, there, (held.state, held.column, share), count=len(room.states))
        else:
            of_state = _ints([column.state for column in columns])
            builder.add_parts(NO_LOWER, self._count, (of_state, filled, 1), count=len(room.states))
        self._amount_rows = builder.num_rows
        self._limit_amounts(held)
        self._value_row = builder.num_rows
        worth, penalty = _ints([way.value for _, way in ways]), room.penalty
        missing = builder.add_variables(0, max(0 if goal is None else goal.value, 0), count=int(goal is not None))
        if goal is not None:
            penalty = goal.penalty
            builder.add_row(np.append(start, missing), np.append(worth, 1), goal.value - room.held, NO_UPPER)
        self._branch_rows = builder.num_rows
        lacks = builder.add_variables(0, _ints([0 if b.at_most else b.limit for b in branches]), count=len(branches))
        for branch, lack in zip(branches, lacks.tolist(), strict=True):
            times = times_of(self._ways, branch.counted)
            sides = (NO_LOWER, branch.limit) if branch.at_most else (branch.limit, NO_UPPER)
            builder.add_row(np.append(start[times > 0], lack), np.append(times[times > 0], 1), *sides)
        idle = _ints([-room.penalty if group.idle is None else group.idle for group in room.groups])
        pays = -_ints(list((columns or {}).values())), np.full(len(missing) + len(branches), -penalty)
        self._valued = np.concatenate([start, filled, missing, lacks])
        self._worth = np.concatenate([(worth - idle[self._group]) * (goal is None), *pays])
        self._idle = 0 if goal else int(idle @ size)
        builder.set_objective(self._valued, self._worth, "max")
        self.model = builder.build()

    def _hold(self, columns: Collection[Column], single: Sequence[tuple[int, int, int]]) -> tuple[IntArray, _Held]:
        """Add the variables that have bundles on nodes; return those of columns, and what all of them hold."""
        builder = self._builder
        filled = builder.add_variables(0, self._count[_ints([c.state for c in columns])], count=len(columns))
        most = _ints([most for *_, most in single]) * self._count[_ints([s for s, *_ in single])]
        alone = builder.add_variables(0, most, count=len(single))
        entries = [
            (column.state, c, b, n)
            for c, column in zip(filled.tolist(), columns, strict=True)
            for b, n in column.filling
        ]
        entries += [(s, c, b, 1) for c, (s, b, _) in zip(alone.tolist(), single, strict=True)]
        return filled, _Held(*np.array(entries, dtype=np.int64).reshape(len(entries), 4).T)

    def _limit_amounts(self, held: _Held) -> None:
        room, kinds = self._room, len(self._room.amounts)
        demand = np.array([bundle.amounts for bundle in room.bundles], dtype=np.int64).reshape(-1, kinds)
        taken = demand[held.bundle] * held.number[:, None]
        taken[self._joint[held.state]] = 0
        entry, kind = np.nonzero(taken)
        free = np.array([state.free for state in room.states], dtype=np.int64).reshape(-1, kinds)
        rows = (held.state[entry] * kinds + kind, held.column[entry], taken[entry, kind])
        self._builder.add_parts(NO_LOWER, (free * self._count[:, None]).reshape(-1), rows, count=free.size)

    def counts(self, values: np.ndarray) -> dict[Counted, float]:
        """Return what `counts_of` counts in a solution."""
        return counts_of(self._ways, values[self._start])

    def worth(self, values: np.ndarray) -> float:
        """Return what a solution is worth, or what its cost is below 0: no prices prove less under these branches."""
        return float(self._worth @ values[self._valued]) + self._idle

    def duals(self, duals: np.ndarray) -> Duals:
        """Return the duals of a solution by what their rows are about."""
        exact = np.nan_to_num(duals) / self.model.row_divisor
        amounts = exact[self._amount_rows : self._value_row].reshape(-1, len(self._room.amounts))
        value = -exact[self._value_row : self._branch_rows].sum() if self._branch_rows > self._value_row else 1.0
        sides = zip(exact[self._branch_rows :].tolist(), self._branches, strict=True)
        branches = tuple(dual if branch.at_most else -dual for dual, branch in sides)
        return Duals(exact[self._bundle_rows : self._state_rows], amounts, float(value), branches)


class _Held(NamedTuple):
    """Entries: a variable, its state, and how many of a bundle it has."""

    state: IntArray
    column: IntArray
    bundle: IntArray
    number: IntArray


def _ints(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
