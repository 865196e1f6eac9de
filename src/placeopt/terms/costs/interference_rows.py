"""The exact linear forms of interference: which jobs meet in which domain, and how full a shared GPU becomes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, ModelBuilder
from placeopt.problem import IntArray
from placeopt.terms.costs.presence import Presence, Together, steps
from placeopt.terms.linearized_costs import Rows
from placeopt.terms.protocols import Expression
from placeopt.terms.variables import Variables

Meetings = list[tuple[int, list[int]]]
"""Level and columns that are all 1 where two jobs meet, one entry a domain."""


class _Pair(NamedTuple):
    """Two jobs that can meet: positions in a list of jobs, profiles, meetings."""

    one: int
    other: int
    p: int
    q: int
    shared_domains: Meetings


def pairwise(builder: ModelBuilder, variables: Variables, slowdown: IntArray) -> Expression:
    """
    Sum over pairs of e(j, k) + e(k, j) at the closest domain that they share.

    Where no excess falls towards a closer domain, a pair's cost is the largest over all domains that they share: one
    column a pair, one row a domain. Elsewhere it is the sum of the steps from level to level, of those at which they
    meet.
    """
    both = slowdown + slowdown.transpose(0, 2, 1)
    presence = _presence(builder, variables, both)
    together, rows = Together(builder), Rows(builder)
    plain: list[tuple[IntArray, Meetings]] = []  # excess by level, shared_domains
    stepped: list[tuple[int, int]] = []  # number of a binary, what it costs
    for pair in _pairs(builder, presence):
        excess = both[:, pair.p, pair.q]
        step = steps(excess)
        met = [m for m in pair.shared_domains if step[m[0]]]
        if not met:
            continue
        if (step >= 0).all():
            plain.append((excess, met))
        else:
            stepped += _ask(together, met, step)
    highest = np.array([max(excess[level] for level, _ in met) for excess, met in plain], dtype=np.int64)
    columns = builder.add_variables(np.zeros(len(plain), dtype=np.int64), highest)
    for column, (excess, met) in zip(columns.tolist(), plain, strict=True):
        for level, shared_domain in met:
            _meet_row(rows, column, shared_domain, int(excess[level]))
    rows.hand_over(columns)
    binaries = together.hand_over()[[number for number, _ in stepped]]
    costs = np.array([cost for _, cost in stepped], dtype=np.int64)
    ones = np.ones(len(columns), dtype=np.int64)
    return np.append(columns, binaries), np.append(ones, costs), 0


def worst(builder: ModelBuilder, variables: Variables, slowdown: IntArray, base: dict[int, int]) -> Expression:
    """Sum over jobs of the largest excess by any co-runner; ``base`` has that of running jobs among themselves."""
    presence = _presence(builder, variables, slowdown)
    units, running = len(presence.units), presence.running
    least = np.array([0] * units + [base.get(job, 0) for job in running], dtype=np.int64)
    columns = builder.add_variables(least, np.maximum(least, int(slowdown.max(initial=0))))
    together, rows = Together(builder), Rows(builder)
    stepped: list[tuple[int, list[tuple[int, int]]]] = []  # a job's column, (number of a binary, what it costs)
    for pair in _pairs(builder, presence):
        both = ((pair.one, slowdown[:, pair.p, pair.q]), (pair.other, slowdown[:, pair.q, pair.p]))
        for at, excess in both:
            step = steps(excess)
            met = [m for m in pair.shared_domains if step[m[0]]]
            if (step >= 0).all():
                for level, shared_domain in met:
                    _meet_row(rows, int(columns[at]), shared_domain, int(excess[level]))
            elif met:
                asked = _ask(together, met, step)
                stepped.append((int(columns[at]), asked))
    binaries = together.hand_over()
    for column, asked in stepped:
        rows.add([column, *(int(binaries[n]) for n, _ in asked)], [1, *(-cost for _, cost in asked)], 0, NO_UPPER)
    rows.hand_over(columns, least)
    return columns, np.ones(len(columns), dtype=np.int64), 0


def _presence(builder: ModelBuilder, variables: Variables, slowdown: IntArray) -> Presence:
    """Add which jobs are in which domain, of the levels at which any excess changes."""
    step = steps(slowdown)
    levels = np.flatnonzero(step.any(axis=(1, 2))).tolist()
    return Presence(builder, variables, levels, exactly=bool((step < 0).any()))


def _pairs(builder: ModelBuilder, presence: Presence) -> Iterator[_Pair]:
    """Yield all pairs of a unit and a later one, or a running job; these are counted after the units."""
    units, running = presence.units, presence.running
    of_unit = [presence.profile(unit) for unit in units]
    of_running = [presence.profile_of_job(job) for job in running]
    for i, unit in enumerate(units):
        for j in range(i + 1, len(units)):
            builder.check_time()
            met = list(presence.shared_domains(unit, units[j], running=False))
            yield _Pair(i, j, of_unit[i], of_unit[j], met)
        for j, job in enumerate(running):
            met = list(presence.shared_domains(unit, job, running=True))
            yield _Pair(i, len(units) + j, of_unit[i], of_running[j], met)


def _ask(together: Together, met: Meetings, step: IntArray) -> list[tuple[int, int]]:
    """Ask whether two jobs meet at each level that they can meet at, and return the numbers with the steps."""
    by_level: dict[int, list[list[int]]] = {}
    for level, shared_domain in met:
        by_level.setdefault(level, []).append(shared_domain)
    return [
        (together.request(domains, low=bool(step[level] > 0), high=bool(step[level] < 0)), int(step[level]))
        for level, domains in by_level.items()
    ]


def _meet_row(rows: Rows, column: int, shared_domain: list[int], excess: int) -> None:
    """Add column >= excess x (sum of meeting - (number of them - 1))."""
    rows.add(
        [*shared_domain, column], [*[-excess] * len(shared_domain), 1], -excess * (len(shared_domain) - 1), NO_UPPER
    )


def curve(builder: ModelBuilder, variables: Variables, table: IntArray, base: dict[int, int]) -> Expression:
    """
    Sum over jobs of the largest excess over the GPUs that it shares, by the GPU's cumulative utilisation.

    A GPU's excess steps from level to level of its utilisation; a job on it is at least that slow once a second job
    is there.
    """
    v = variables
    high = int(table.max(initial=0))
    rows = Rows(builder)
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
        most = len(mine) + max(here - 1, 0)  # by how many the jobs on the GPU can pass one
        builder.add_row(np.append(v.grant[mine], shared), np.append(ones, -most), NO_LOWER, 1 - here)
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
    rows.hand_over(np.array(list(slow.values()), dtype=np.int64), least)
    fixed = sum(excess for job, excess in base.items() if job not in slow)
    return np.array(list(slow.values()), dtype=np.int64), np.ones(len(slow), dtype=np.int64), fixed


def _more_than(columns: IntArray, count: int, values: IntArray) -> bool:
    """Return whether more than ``count`` of the binary columns are 1."""
    return int(values[columns].sum()) > count


def _curve_row(
    rows: Rows, column: int, digits: IntArray, steps: IntArray, first: int, both: list[int], high: int
) -> None:
    """Add column >= first + steps . digits - high x (number of ``both`` that are 0)."""
    coefficients = [1, *(-steps).tolist(), *[-high] * len(both)]
    rows.add([column, *digits.tolist(), *both], coefficients, first - high * len(both), NO_UPPER)
