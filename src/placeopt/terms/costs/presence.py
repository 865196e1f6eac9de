"""Where jobs can meet: domains one inside the other, which jobs are in which, and whether two jobs share one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import BoolArray, IntArray, Problem
from placeopt.problem.state import holdings
from placeopt.terms.linearized_costs import Rows
from placeopt.terms.variables import Variables

LEVELS = 4
"""GPU, switch, socket, node: 0 to 3."""

Where = tuple[int, int]
"""A level and the number of a domain of it."""


def nested_domains(problem: Problem) -> list[IntArray]:
    """
    Shape (G,) for each level: the domain of every GPU; jobs that share one share all above it.

    A GPU without a switch stands under one of its own, and what has no socket likewise: it adds no place to meet.
    """
    out = [np.arange(problem.num_gpus)]
    for own in (problem.gpu_switch, problem.gpu_socket, problem.gpu_node):
        out.append(np.where(own >= 0, own, int(own.max(initial=0)) + 1 + out[-1]))
    return out


def _single_gpus(problem: Problem) -> list[BoolArray]:
    """Shape (G,) for each level: whether the GPU is its whole domain, so that only jobs that share it meet."""
    lonely = problem.gpu_switch < 0
    return [np.ones_like(lonely), lonely, lonely & (problem.gpu_socket < 0), np.zeros_like(lonely)]


def steps(excess: IntArray) -> IntArray:
    """
    What sharing at each level adds to sharing only further out; same shape, level first.

    With S_l whether two jobs share a domain of level l, the excess at their closest one is ``sum steps[l] S_l``.
    """
    out: IntArray = excess - np.concatenate([excess[1:], np.zeros_like(excess[:1])])
    return out


def count_shared_domains(problem: Problem, most: float = float("inf")) -> int:
    """
    Pairs of jobs that can disturb each other x domains in which both can be, of levels where that matters.

    Ends early, with a part of them, once there are more than ``most``. Counts are floats: exact below 2^53, and no
    overflow above, where 2,000,000 jobs may meet in as many domains.
    """
    matters = steps(problem.slowdown) != 0
    matters |= matters.transpose(0, 2, 1)
    profiles, domains = problem.slowdown.shape[1], nested_domains(problem)
    options, single = problem.options, _single_gpus(problem)
    shares = ((options.milli < 1000) | (not problem.shares_bind)) & (problem.jobs_per_gpu != 1)
    fixed = {job: held for job, held in problem.running.items() if job not in problem.changeable}
    jobs = np.bincount(problem.job_class, minlength=len(problem.class_profile))
    jobs -= np.bincount(problem.job_class[list(fixed)], minlength=len(jobs))
    classes = np.flatnonzero((problem.class_profile >= 0) & (jobs > 0)).tolist()
    reach: dict[int, tuple[BoolArray, BoolArray]] = {}  # by class: of all options, and of those that share GPUs
    held = holdings(problem, fixed.items())
    of_grant = problem.class_profile[problem.job_class[held.job]]
    total = 0.0
    for level in range(LEVELS):
        if not matters[level].any():
            continue
        inside = np.zeros((int(domains[level].max(initial=0)) + 1, profiles))
        where = domains[level][held.gpu] * problem.num_jobs + held.job  # each job once a domain
        _, first = np.unique(where[of_grant >= 0], return_index=True)
        grants = np.flatnonzero(of_grant >= 0)[first]
        np.add.at(inside, (domains[level][held.gpu[grants]], of_grant[grants]), 1)
        pairs = inside.T @ inside - np.diag(inside.sum(axis=0))  # a job does not meet itself
        total += float((pairs * matters[level]).sum()) / 2
        for k in classes:
            if k not in reach:
                reach[k] = _reach(problem, k, np.ones_like(shares)), _reach(problem, k, shares)
            profile, count = int(problem.class_profile[k]), float(jobs[k])
            there = np.unique(domains[level][np.where(single[level], reach[k][1], reach[k][0])])
            total += count * float(inside[np.ix_(there, matters[level][profile])].sum())  # with those before
            if matters[level][profile, profile]:
                total += count * (count - 1) / 2 * len(there)  # with each other
            inside[there, profile] += count
            if total > most:
                return int(total)
    return int(total)


def _reach(problem: Problem, k: int, counts: BoolArray) -> BoolArray:
    """Shape (G,): GPUs that a job of class k may hold in an option that ``counts``."""
    out = np.zeros(problem.num_gpus, dtype=bool)
    for o in range(int(problem.class_option_start[k]), int(problem.class_option_start[k + 1])):
        if counts[o] and problem.options.gpus[o]:
            out |= problem.gpu_ok(o) & problem.node_ok(o)[problem.gpu_node]
    return out


class Presence:
    """
    For every job with a profile: a column, or the constant 1 of a running job: whether it is in a domain.

    Where ``exactly`` is not asked for, the column may also be 1 elsewhere: enough where that only costs.
    """

    def __init__(self, builder: ModelBuilder, variables: Variables, levels: list[int], *, exactly: bool) -> None:
        """Add a column for every waiting unit and every domain of ``levels`` that it can reach, and the rows."""
        problem = variables.problem
        self._v, self._levels = variables, levels
        self._domain_of_gpu = nested_domains(problem)
        self._single = _single_gpus(problem)
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
        self._add_columns(builder, exactly=exactly)

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

    def shared_domains(self, unit: int, other: int, *, running: bool) -> Iterator[tuple[int, list[int]]]:
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
            yield level, int(self._domain_of_gpu[level][gpu])

    def _add_columns(self, builder: ModelBuilder, *, exactly: bool) -> None:
        """A column is 1 where any grant of the unit lies in the domain."""
        v, options = self._v, self._v.problem.options
        rows = Rows(builder)
        most: list[int] = []
        entries: list[tuple[int, int]] = []  # (column counted from the first, grant)
        number: dict[tuple[int, Where], int] = {}
        for q, unit in enumerate(v.start_unit[v.grant_start].tolist()):
            if unit not in self._columns:
                continue
            builder.check_time()
            cell, option = int(v.grant_cell[q]), v.grant_option[q]
            gpu, alone = v.cell_gpus[cell][0], not v.cell_met[cell]
            for where in self._around(gpu):
                if alone and self._single[where[0]][gpu]:
                    continue  # no jobs meet on such a GPU
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
            if exactly:
                rows.add([*grants, int(columns[c])], [*[-1] * len(grants), 1], NO_LOWER, 0)
        rows.hand_over()


class Together:
    """Binaries, each: whether two jobs meet in any of several domains; asked for first, then added at once."""

    def __init__(self, builder: ModelBuilder) -> None:
        self._builder = builder
        self._meetings: list[tuple[int, int, int]] = []  # number of the binary, columns that are both 1
        self._low_high: list[tuple[bool, bool]] = []

    def request(self, shared_domains: list[list[int]], *, low: bool, high: bool) -> int:
        """
        Ask for a binary and return its number; ``shared_domains`` as `Presence.shared_domains` yields them.

        ``low``: it is at least 1 where they meet, for what meeting costs; ``high``: at most 0 where they do not, for
        what meeting saves.
        """
        self._builder.check_time()
        number = len(self._low_high)
        self._meetings.extend((number, columns[0], columns[-1]) for columns in shared_domains)
        self._low_high.append((low, high))
        return number

    def hand_over(self) -> IntArray:
        """Add all binaries with their rows, and return their columns."""
        builder = self._builder
        owner, one, other = np.array(self._meetings, dtype=np.int64).reshape(-1, 3).T
        low, high = np.array(self._low_high, dtype=bool).reshape(-1, 2).T
        columns = builder.add_variables(0, 1, count=len(low))
        builder.define(columns, lambda x: np.bincount(owner, x[one] * x[other], len(low)) > 0)
        two = (one != other).astype(np.int64)
        at = np.flatnonzero(low[owner])
        row = np.arange(len(at))  # they meet where both are
        both = ((row, one[at], 1), (row, other[at], two[at]))
        builder.add_parts(NO_LOWER, two[at], *both, (row, columns[owner[at]], -1))
        at = np.flatnonzero(high[owner])
        there = one[at].copy()  # columns that are 1 where they meet in this domain
        pair = np.flatnonzero(two[at])
        there[pair] = builder.add_variables(0, 1, count=len(pair))
        a, b = one[at[pair]], other[at[pair]]
        builder.define(there[pair], lambda x: x[a] * x[b])
        row = np.arange(len(pair))
        for side in (a, b):
            builder.add_parts(NO_LOWER, 0, (row, there[pair], 1), (row, side, -1), count=len(pair))
        asked = np.flatnonzero(high)
        position = np.cumsum(high) - 1  # they meet nowhere else
        meetings = (np.arange(len(asked)), columns[asked], 1)
        builder.add_parts(NO_LOWER, 0, (position[owner[at]], there, -1), meetings, count=len(asked))
        return columns
