"""The exact linear forms of interference: who meets whom at which domain, and how full a shared GPU gets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, ModelBuilder
from placeopt.problem import IntArray, Problem
from placeopt.terms.protocols import Expression
from placeopt.terms.variables import Variables

Where = tuple[int, int]
"""A level (0 GPU, 1 switch, 2 socket, 3 node) and the number of a domain of it."""


class Presence:
    """For every job with a profile: a column, or the constant 1 of a running job: whether it is in a domain."""

    def __init__(self, builder: ModelBuilder, variables: Variables) -> None:
        self._builder = builder
        self._v = variables
        problem = variables.problem
        self._domain_of_gpu = (
            np.arange(problem.num_gpus),
            problem.gpu_switch,
            problem.gpu_socket,
            problem.gpu_node,
        )
        self._columns: dict[tuple[int, Where], int] = {}
        self._grants: dict[int, dict[Where, list[int]]] = {}
        for unit, jobs in enumerate(variables.unit_jobs):
            if problem.class_profile[problem.job_class[jobs[0]]] >= 0:
                self._grants[unit] = {}
        grant_unit = variables.start_unit[variables.grant_start]
        for q, unit in enumerate(grant_unit.tolist()):
            if unit in self._grants:
                gpus = variables.cell_gpus[variables.grant_cell[q]]
                for where in self._around(gpus[0]):
                    if where[0] == 0 and len(gpus) > 1:
                        continue  # GPUs of such a cell go whole: nobody meets on one
                    self._grants[unit].setdefault(where, []).append(q)
        self._running: dict[int, set[Where]] = {
            job: {where for gpu in placement.gpus for where in self._around(gpu)}
            for job, placement in enumerate(variables.state.placements)
            if placement is not None and placement.gpus and problem.class_profile[problem.job_class[job]] >= 0
        }

    @property
    def units(self) -> list[int]:
        """Waiting units (of one job each) with a profile."""
        return list(self._grants)

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

    def meetings(self, unit: int, other: int, *, running: bool) -> Iterator[tuple[int, IntArray]]:
        """Yield (level, columns that are all 1 where the two meet) for every domain that both can be in."""
        mine = self._grants[unit]
        if running:
            for where in self._running[other]:
                if where in mine:
                    yield where[0], np.array([self._column(unit, where)], dtype=np.int64)
            return
        theirs = self._grants[other]
        for where in mine:
            if where in theirs:
                pair = [self._column(unit, where), self._column(other, where)]
                yield where[0], np.array(pair, dtype=np.int64)

    def _around(self, gpu: int) -> Iterator[Where]:
        for level, domain in enumerate(self._domain_of_gpu):
            if domain[gpu] >= 0:
                yield level, int(domain[gpu])

    def _column(self, unit: int, where: Where) -> int:
        key = (unit, where)
        if key not in self._columns:
            v, grants = self._v, self._grants[unit][where]
            column = int(self._builder.add_variables(0, 1, count=1)[0])
            option = v.grant_option[grants]
            most = int((v.problem.options.workers * v.problem.options.gpus)[option].max())
            ones = np.ones(len(grants), dtype=np.int64)
            self._builder.add_row(np.append(v.grant[grants], column), np.append(ones, -most), NO_LOWER, 0)
            self._columns[key] = column
        return self._columns[key]


def pairwise(builder: ModelBuilder, variables: Variables, slowdown: IntArray) -> Expression:
    """
    Sum over pairs of e(j, k) + e(k, j) at the closest domain that they share.

    Excesses do not fall towards closer domains (the caller has seen to that), so the pair's cost is the largest over
    all domains that they share: one column a pair, one row a domain.
    """
    presence = Presence(builder, variables)
    both = slowdown + slowdown.transpose(0, 2, 1)
    columns: list[int] = []
    for i, unit in enumerate(presence.units):
        p = presence.profile(unit)
        for other in presence.units[i + 1 :]:
            columns.extend(
                _at_least(builder, presence, unit, other, both[:, p, presence.profile(other)], running=False)
            )
        for job in presence.running:
            excess = both[:, p, presence.profile_of_job(job)]
            columns.extend(_at_least(builder, presence, unit, job, excess, running=True))
    return np.array(columns, dtype=np.int64), np.ones(len(columns), dtype=np.int64), 0


def _at_least(
    builder: ModelBuilder, presence: Presence, unit: int, other: int, excess: IntArray, *, running: bool
) -> list[int]:
    """Return one column that is at least the excess at every domain where the two meet; none where nothing can be."""
    if not excess.any():
        return []
    found = [(level, columns) for level, columns in presence.meetings(unit, other, running=running) if excess[level]]
    if not found:
        return []
    column = int(builder.add_variables(0, int(excess.max()), count=1)[0])
    for level, meeting in found:
        _meet_row(builder, column, meeting, int(excess[level]))
    return [column]


def _meet_row(builder: ModelBuilder, column: int, meeting: IntArray, excess: int) -> None:
    """Add column >= excess x (sum of meeting - (number of them - 1))."""
    coefficients = np.append(np.full(len(meeting), -excess, dtype=np.int64), 1)
    builder.add_row(np.append(meeting, column), coefficients, -excess * (len(meeting) - 1), NO_UPPER)


def worst(builder: ModelBuilder, variables: Variables, slowdown: IntArray, base: dict[int, int]) -> Expression:
    """Sum over jobs of the largest excess by any co-runner; ``base`` has that of running jobs among themselves."""
    presence = Presence(builder, variables)
    high = int(slowdown.max(initial=0))
    of_unit = {
        u: int(c) for u, c in zip(presence.units, builder.add_variables(0, high, len(presence.units)), strict=True)
    }
    least = np.array([base.get(job, 0) for job in presence.running], dtype=np.int64)
    added = builder.add_variables(least, np.maximum(least, high), len(least))
    of_running = {job: int(c) for job, c in zip(presence.running, added, strict=True)}
    for i, unit in enumerate(presence.units):
        p = presence.profile(unit)
        others = [(u, presence.profile(u), of_unit[u], False) for u in presence.units[i + 1 :]]
        others += [(job, presence.profile_of_job(job), of_running[job], True) for job in presence.running]
        for other, q, column, running in others:
            for level, meeting in presence.meetings(unit, other, running=running):
                if slowdown[level, p, q]:
                    _meet_row(builder, of_unit[unit], meeting, int(slowdown[level, p, q]))
                if slowdown[level, q, p]:
                    _meet_row(builder, column, meeting, int(slowdown[level, q, p]))
    columns = np.array([*of_unit.values(), *of_running.values()], dtype=np.int64)
    return columns, np.ones(len(columns), dtype=np.int64), 0


def curve(builder: ModelBuilder, variables: Variables, table: IntArray, base: dict[int, int]) -> Expression:
    """
    Sum over jobs of the largest excess over the GPUs that it shares, by the GPU's cumulative utilisation.

    A GPU's excess steps from level to level of its utilisation; a job on it is at least that slow once a second job
    is there.
    """
    v = variables
    high = int(table.max(initial=0))
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
        for job in holders.get(gpu, ()):
            column = column_of(job, base.get(job, 0))
            _curve_row(builder, column, digits, steps, first, [shared], high)
        by_job: dict[int, list[int]] = {}
        for q in mine.tolist():
            by_job.setdefault(v.unit_jobs[v.start_unit[v.grant_start[q]]][0], []).append(int(v.grant[q]))
        for job, grants in by_job.items():
            # a job has at most one of its options, so the sum of its grants here is 0 or 1
            held = builder.add_variables(0, 1, count=1)
            builder.add_row(np.append(grants, held), np.append(np.ones(len(grants), dtype=np.int64), -1), 0, 0)
            _curve_row(builder, column_of(job, 0), digits, steps, first, [shared, int(held[0])], high)
    fixed = sum(excess for job, excess in base.items() if job not in slow)
    return np.array(list(slow.values()), dtype=np.int64), np.ones(len(slow), dtype=np.int64), fixed


def _curve_row(
    builder: ModelBuilder, column: int, digits: IntArray, steps: IntArray, first: int, both: list[int], high: int
) -> None:
    """Add column >= first + steps . digits - high x (number of ``both`` that are 0)."""
    columns = np.concatenate([[column], digits, both])
    coefficients = np.concatenate([[1], -steps, np.full(len(both), -high)])
    builder.add_row(columns, coefficients, first - high * len(both), NO_UPPER)


def is_levelled(problem: Problem, slowdown: IntArray) -> bool:
    """Tell whether no excess falls towards a closer domain, for the profiles that jobs have."""
    profiles = np.unique(problem.class_profile[problem.class_profile >= 0])
    here = slowdown[:, profiles][:, :, profiles]
    return bool((here[:-1] >= here[1:]).all())
