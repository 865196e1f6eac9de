"""The exact linear forms of interference: who meets whom at which domain, and how full a shared GPU gets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, ModelBuilder
from placeopt.problem import IntArray, Problem
from placeopt.terms.protocols import Expression
from placeopt.terms.rows import Rows
from placeopt.terms.variables import Variables

Where = tuple[int, int]
"""A level (0 GPU, 1 switch, 2 socket, 3 node) and the number of a domain of it."""


class Presence:
    """For every job with a profile: a column, or the constant 1 of a running job: whether it is in a domain."""

    def __init__(self, builder: ModelBuilder, variables: Variables, levels: IntArray) -> None:
        """Add a column for every waiting unit and every domain of ``levels`` that it can reach, and the rows."""
        problem = variables.problem
        self._v = variables
        self._levels = [int(level) for level in levels]
        self._domain_of_gpu = (
            np.arange(problem.num_gpus),
            problem.gpu_switch,
            problem.gpu_socket,
            problem.gpu_node,
        )
        self._columns: dict[int, dict[Where, int]] = {
            unit: {}
            for unit, jobs in enumerate(variables.unit_jobs)
            if problem.class_profile[problem.job_class[jobs[0]]] >= 0
        }
        self._running: dict[int, set[Where]] = {
            job: {where for gpu in placement.gpus for where in self._around(gpu)}
            for job, placement in enumerate(variables.state.placements)
            if placement is not None and placement.gpus and problem.class_profile[problem.job_class[job]] >= 0
        }
        self._add_columns(builder)

    @property
    def units(self) -> list[int]:
        """Waiting units (of one job each) with a profile."""
        return list(self._columns)

    @property
    def running(self) -> list[int]:
        """Running jobs with a profile and a GPU."""
        return list(self._running)

    def profile(self, unit: int) -> int:
        """Profile of a unit's job."""
        return self.profile_of_job(self._v.unit_jobs[unit][0])

    def profile_of_job(self, job: int) -> int:
        """Profile of a job."""
        return int(self._v.problem.class_profile[self._v.problem.job_class[job]])

    def meetings(self, unit: int, other: int, *, running: bool) -> Iterator[tuple[int, list[int]]]:
        """Yield (level, columns that are all 1 where the two meet) for every domain that both can be in."""
        mine = self._columns[unit]
        if running:
            for where in self._running[other]:
                if where in mine:
                    yield where[0], [mine[where]]
            return
        theirs = self._columns[other]
        for where, column in mine.items():
            if where in theirs:
                yield where[0], [column, theirs[where]]

    def _around(self, gpu: int) -> Iterator[Where]:
        for level in self._levels:
            domain = int(self._domain_of_gpu[level][gpu])
            if domain >= 0:
                yield level, domain

    def _add_columns(self, builder: ModelBuilder) -> None:
        """A column is 1 where any grant of the unit lies in the domain."""
        v, options = self._v, self._v.problem.options
        rows = Rows()
        most: list[int] = []
        entries: list[tuple[int, int]] = []  # (column counted from the first, grant)
        number: dict[tuple[int, Where], int] = {}
        for q, unit in enumerate(v.start_unit[v.grant_start].tolist()):
            if unit not in self._columns:
                continue
            gpus, option = v.cell_gpus[v.grant_cell[q]], v.grant_option[q]
            for where in self._around(gpus[0]):
                if where[0] == 0 and len(gpus) > 1:
                    continue  # GPUs of such a cell go whole: nobody meets on one
                c = number.setdefault((unit, where), len(most))
                if c == len(most):
                    most.append(0)
                most[c] = max(most[c], int(options.workers[option] * options.gpus[option]))
                entries.append((c, q))
        columns = builder.add_variables(0, 1, count=len(most))
        for (unit, where), c in number.items():
            self._columns[unit][where] = int(columns[c])
        by_column: list[list[int]] = [[] for _ in most]
        for c, q in entries:
            by_column[c].append(int(v.grant[q]))
        column_of_entry, held = (np.array([e[i] for e in entries], dtype=np.int64) for i in (0, 1))
        builder.define(columns, lambda values: np.bincount(column_of_entry, values[v.grant[held]], len(most)) > 0)
        for c, grants in enumerate(by_column):
            rows.add([*grants, int(columns[c])], [*[1] * len(grants), -most[c]], NO_LOWER, 0)
        rows.add_to(builder)


def pairwise(builder: ModelBuilder, variables: Variables, slowdown: IntArray) -> Expression:
    """
    Sum over pairs of e(j, k) + e(k, j) at the closest domain that they share.

    Excesses do not fall towards closer domains (the caller has seen to that), so the pair's cost is the largest over
    all domains that they share: one column a pair, one row a domain.
    """
    presence = Presence(builder, variables, _levels(slowdown))
    both = slowdown + slowdown.transpose(0, 2, 1)
    pairs: list[tuple[IntArray, list[tuple[int, list[int]]]]] = []  # (excess by level, meetings)
    for i, unit in enumerate(presence.units):
        p = presence.profile(unit)
        others = [(u, presence.profile(u), False) for u in presence.units[i + 1 :]]
        others += [(job, presence.profile_of_job(job), True) for job in presence.running]
        for other, q, running in others:
            excess = both[:, p, q]
            met = [m for m in presence.meetings(unit, other, running=running) if excess[m[0]]] if excess.any() else []
            if met:
                pairs.append((excess, met))
    highest = np.array([excess.max() for excess, _ in pairs], dtype=np.int64)
    columns = builder.add_variables(np.zeros(len(pairs), dtype=np.int64), highest)
    rows = Rows()
    for column, (excess, met) in zip(columns.tolist(), pairs, strict=True):
        for level, meeting in met:
            _meet_row(rows, column, meeting, int(excess[level]))
    rows.add_to(builder, columns)
    return columns, np.ones(len(columns), dtype=np.int64), 0


def _levels(slowdown: IntArray) -> IntArray:
    """Levels at which any excess is stated."""
    return np.flatnonzero(slowdown.any(axis=(1, 2)))


def _meet_row(rows: Rows, column: int, meeting: list[int], excess: int) -> None:
    """Add column >= excess x (sum of meeting - (number of them - 1))."""
    rows.add([*meeting, column], [*[-excess] * len(meeting), 1], -excess * (len(meeting) - 1), NO_UPPER)


def worst(builder: ModelBuilder, variables: Variables, slowdown: IntArray, base: dict[int, int]) -> Expression:
    """Sum over jobs of the largest excess by any co-runner; ``base`` has that of running jobs among themselves."""
    presence = Presence(builder, variables, _levels(slowdown))
    high = int(slowdown.max(initial=0))
    added = builder.add_variables(0, high, count=len(presence.units))
    of_unit = dict(zip(presence.units, added.tolist(), strict=True))
    least = np.array([base.get(job, 0) for job in presence.running], dtype=np.int64)
    added = builder.add_variables(least, np.maximum(least, high))
    of_running = dict(zip(presence.running, added.tolist(), strict=True))
    rows = Rows()
    for i, unit in enumerate(presence.units):
        p = presence.profile(unit)
        others = [(u, presence.profile(u), of_unit[u], False) for u in presence.units[i + 1 :]]
        others += [(job, presence.profile_of_job(job), of_running[job], True) for job in presence.running]
        for other, q, column, running in others:
            for level, meeting in presence.meetings(unit, other, running=running):
                if slowdown[level, p, q]:
                    _meet_row(rows, of_unit[unit], meeting, int(slowdown[level, p, q]))
                if slowdown[level, q, p]:
                    _meet_row(rows, column, meeting, int(slowdown[level, q, p]))
    columns = np.array([*of_unit.values(), *of_running.values()], dtype=np.int64)
    rows.add_to(builder, columns, np.concatenate([np.zeros(len(of_unit), dtype=np.int64), least]))
    return columns, np.ones(len(columns), dtype=np.int64), 0


def curve(builder: ModelBuilder, variables: Variables, table: IntArray, base: dict[int, int]) -> Expression:
    """
    Sum over jobs of the largest excess over the GPUs that it shares, by the GPU's cumulative utilisation.

    A GPU's excess steps from level to level of its utilisation; a job on it is at least that slow once a second job
    is there.
    """
    v = variables
    high = int(table.max(initial=0))
    rows = Rows()
    slow: dict[int, int] = {}

    def column_of(job: int, least: int) -> int:
        if job not in slow:
            slow[job] = int(builder.add_variables(least, max(high, least), count=1)[0])
        return slow[job]

    holders: dict[int, list[int]] = {}
    for job, placement in enumerate(v.state.placements):
        for gpu in placement.gpus if placement is not None else ():
            holders.setdefault(gpu, []).append(job)
    for cell in np.intersect1d(np.flatnonzero(v.cell_met), v.grant_cell).tolist():
        gpu, mine = v.cell_gpus[cell][0], np.flatnonzero(v.grant_cell == cell)
        levels, digits = v.utilisation(builder, cell)
        first, steps = int(table[levels[0]]), table[levels[1:]] - table[levels[:-1]]
        here = len(holders.get(gpu, ()))
        shared = int(builder.add_variables(0, 1, count=1)[0])
        ones = np.ones(len(mine), dtype=np.int64)
        builder.add_row(np.append(v.grant[mine], shared), np.append(ones, -len(mine)), NO_LOWER, 1 - here)
        builder.define(np.array([shared]), partial(_more_than, v.grant[mine], 1 - here))
        for job in holders.get(gpu, ()):
            column = column_of(job, base.get(job, 0))
            _curve_row(rows, column, digits, steps, first, [shared], high)
        by_job: dict[int, list[int]] = {}
        for q in mine.tolist():
            by_job.setdefault(v.unit_jobs[v.start_unit[v.grant_start[q]]][0], []).append(int(v.grant[q]))
        for job, grants in by_job.items():
            # a job has at most one of its options, so the sum of its grants here is 0 or 1
            held = builder.add_variables(0, 1, count=1)
            builder.add_row(np.append(grants, held), np.append(np.ones(len(grants), dtype=np.int64), -1), 0, 0)
            builder.define(held, partial(_more_than, np.array(grants, dtype=np.int64), 0))
            _curve_row(rows, column_of(job, 0), digits, steps, first, [shared, int(held[0])], high)
    least = np.array([base.get(job, 0) for job in slow], dtype=np.int64)
    rows.add_to(builder, np.array(list(slow.values()), dtype=np.int64), least)
    fixed = sum(excess for job, excess in base.items() if job not in slow)
    return np.array(list(slow.values()), dtype=np.int64), np.ones(len(slow), dtype=np.int64), fixed


def _more_than(columns: IntArray, count: int, values: IntArray) -> bool:
    """Tell whether more than so many of the binary columns are 1."""
    return int(values[columns].sum()) > count


def _curve_row(
    rows: Rows, column: int, digits: IntArray, steps: IntArray, first: int, both: list[int], high: int
) -> None:
    """Add column >= first + steps . digits - high x (number of ``both`` that are 0)."""
    coefficients = [1, *(-steps).tolist(), *[-high] * len(both)]
    rows.add([column, *digits.tolist(), *both], coefficients, first - high * len(both), NO_UPPER)


def is_levelled(problem: Problem, slowdown: IntArray) -> bool:
    """Tell whether no excess falls towards a closer domain, for the profiles that jobs have."""
    profiles = np.unique(problem.class_profile[problem.class_profile >= 0])
    here = slowdown[:, profiles][:, :, profiles]
    return bool((here[:-1] >= here[1:]).all())
