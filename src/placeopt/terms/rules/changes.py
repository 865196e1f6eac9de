"""Rule: what may be done to running jobs, and to how many of them (``placeopt.problem.changes`` has the meaning)."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, ModelBuilder
from placeopt.problem import IntArray, Placement, Problem, State
from placeopt.problem.changes import change_limits, change_of, may_become, submission_order
from placeopt.terms.variables import MOVE, SHRINK, STAY, Variables


class RunningChanges:
    """
    Running jobs change only as policy and job allow, and no more of each kind than the policy allows.

    ``fits`` looks at jobs that are placed: how many may be absent, and in which order, is a matter of the whole
    allocation (``placeopt.problem.changes.keeps_limits``).
    """

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether a running job may be put there, and the limit of its kind of change is not reached yet."""
        problem = state.problem
        if job not in problem.running:
            return True
        if not may_become(problem, job, placement):
            return False
        change = change_of(problem, job, placement)
        if change == "kept":
            return True
        others = ((k, state.placements[k]) for k in problem.changeable if k != job)
        return (
            sum(p is not None and change_of(problem, k, p) == change for k, p in others)
            < change_limits(problem)[change]
        )

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Tie what stays to its start, what remains of a job to its workers, and count the changes."""
        if not variables.problem.changeable:
            return
        _tie_stays(builder, variables)
        for s in np.flatnonzero(variables.start_kind == SHRINK).tolist():
            _tie_workers(builder, variables, s)
        v = variables
        units = [u for u, jobs in enumerate(v.unit_jobs) if jobs[0] in v.problem.may_preempt]
        add_change_limits(builder, v.problem, v.start, v.start_kind, v.start[np.isin(v.start_unit, units)])
        _add_order(builder, variables)


def _tie_stays(builder: ModelBuilder, v: Variables) -> None:
    """A job that stays has all its bundles and GPUs, and no part of them (the relaxation would take a part)."""
    for columns, most, start in ((v.bundle, v.bundle_most, v.bundle_start), (v.grant, v.grant_most, v.grant_start)):
        mine = np.flatnonzero(v.start_kind[start] == STAY)
        rows = np.arange(len(mine))
        starts = (rows, v.start[start[mine]], -most[mine])
        builder.add_parts(0, 0, (rows, columns[mine], 1), starts, count=len(mine))


def _tie_workers(builder: ModelBuilder, v: Variables, s: int) -> None:
    """
    The chief remains, and a worker remains with all its GPUs. The grant of its first GPU says whether it does.

    Workers without GPUs are counted by their bundles, of which the chief's node keeps one.
    """
    problem, start = v.problem, int(v.start[s])
    placement = problem.running[v.unit_jobs[v.start_unit[s]][0]]
    gpus = int(problem.options.gpus[placement.option])
    if not gpus:
        chief = np.flatnonzero((v.bundle_start == s) & (v.bundle_node == placement.nodes[0]))
        builder.add_row(np.append(v.bundle[chief], start), [1, -1], 0, NO_UPPER)
        return
    mine = np.flatnonzero(v.grant_start == s)
    grant_of = dict(zip(v.grant_cell[mine].tolist(), v.grant[mine].tolist(), strict=True))
    held = np.array([grant_of[int(v.gpu_to_cell[gpu])] for gpu in placement.gpus], dtype=np.int64).reshape(-1, gpus)
    first, others = np.repeat(held[:, 0], gpus - 1), held[:, 1:].ravel()
    _add_pairs(builder, others, first, 0)
    _add_pairs(builder, held[:, 0], np.full(len(held), start), NO_LOWER)
    _add_pairs(builder, held[:1, 0], np.array([start]), 0)


def _add_pairs(builder: ModelBuilder, one: IntArray, other: IntArray, lower: int) -> None:
    """``lower <= one - other <= 0``."""
    rows = np.arange(len(one))
    builder.add_parts(lower, 0, (rows, one, 1), (rows, other, -1), count=len(one))


def add_change_limits(
    builder: ModelBuilder, problem: Problem, start: IntArray, kind: IntArray, may_end: IntArray
) -> None:
    """
    Limit the jobs that are moved, shrunk, and preempted, which is to have no start at all.

    ``start``, ``kind``: columns and what they do; ``may_end``: the columns of all jobs that may be preempted.
    """
    most = change_limits(problem)
    builder.add_row(start[kind == MOVE], 1, NO_LOWER, most["moved"])
    builder.add_row(start[kind == SHRINK], 1, NO_LOWER, most["shrunk"])
    builder.add_row(may_end, 1, len(problem.may_preempt) - most["preempted"], NO_UPPER)


def _add_order(builder: ModelBuilder, v: Variables) -> None:
    """Between two groups of jobs a binary: 1 if anything is taken from the earlier, and then from all of the later."""
    untaken: dict[int, list[int]] = {}  # starts of which one is taken unless the job is shrunk or preempted
    for s, kind in enumerate(v.start_kind.tolist()):
        if kind in (STAY, MOVE):
            untaken.setdefault(v.unit_jobs[v.start_unit[s]][0], []).append(int(v.start[s]))
    for queue in submission_order(v.problem):
        for earlier, later in pairwise(queue):
            both = int(builder.add_variables(0, 1, count=1)[0])
            keeps = [untaken[job] for job in earlier]
            builder.define(np.array([both]), partial(_is_taken_from, keeps))
            for jobs, lower, upper in ((earlier, 1, NO_UPPER), (later, NO_LOWER, 1)):
                columns = [[*untaken[job], both] for job in jobs]
                row = np.repeat(np.arange(len(jobs)), [len(of_job) for of_job in columns])
                builder.add_rows(row, np.concatenate(columns), 1, lower, upper, len(jobs))


def _is_taken_from(keeps: list[list[int]], values: IntArray) -> bool:
    """Whether any of some jobs, given by the starts of each that keep it whole, has none of these."""
    return not all(values[starts].any() for starts in keeps)
