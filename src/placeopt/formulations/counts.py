"""``counts``: alike jobs and alike GPUs counted together. Exact, and far smaller than ``assignment``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.formulations.columns import add_columns
from placeopt.linear import ModelBuilder
from placeopt.problem import Problem, State
from placeopt.problem.free_capacity import usable_gpus
from placeopt.terms.protocols import Cost, FoldGuard
from placeopt.terms.rules.minimal_utility import MinimalUtility
from placeopt.terms.variables import Variables


def add_counts(builder: ModelBuilder, state: State, costs: Sequence[Cost] = ()) -> Variables:
    """
    Fold what the rules and ``costs`` cannot tell apart.

    Jobs of a class fold if each option has one bundle, no splits, no cost that asks for columns of its own, and either
    takes whole GPUs or one only (or two jobs could not be told apart on the GPUs that both share).

    GPUs of a node fold if they are idle, of one type, alike to every cost, and no
    option may take less than the whole of them. Those of a running job that may be changed fold only among themselves,
    and not at all where it may be shrunk.
    """
    apart: tuple[FoldGuard, ...] = (*costs, MinimalUtility())
    return add_columns(builder, state, _units(state, apart), _cells(state, apart))


def _units(state: State, apart: Sequence[FoldGuard]) -> list[tuple[int, ...]]:
    problem = state.problem
    folded: dict[int, list[int]] = {}
    folds: dict[int, bool] = {}
    for job in range(problem.num_jobs):
        if state.placements[job] is None:
            k = int(problem.job_class[job])
            if k not in folds:
                folds[k] = _folds(problem, job, apart)
            alone = job in problem.running or not folds[k]
            folded.setdefault(-1 - job if alone else k, []).append(job)
    return [tuple(jobs) for jobs in folded.values()]


def _folds(problem: Problem, job: int, apart: Sequence[FoldGuard]) -> bool:
    options = problem.options
    one_or_whole = (options.gpus * options.bundle_workers <= 1) | ((options.milli == 1000) & problem.shares_bind)
    return all(
        options.bundles[o] == 1
        and one_or_whole[o]
        and not options.splits[o]
        and not any(one.forbids_folding(problem, o) for one in apart)
        for o in problem.options_of(job)
    )


def _cells(state: State, apart: Sequence[FoldGuard]) -> list[tuple[int, ...]]:
    problem, options = state.problem, state.problem.options
    waiting = {int(problem.job_class[job]) for job, placement in enumerate(state.placements) if placement is None}
    shared = state.gpu_jobs > 0
    for o in range(len(options)):
        if int(options.job_class[o]) in waiting and options.gpus[o]:
            meets = options.milli[o] < 1000 if problem.shares_bind else True
            if meets and problem.jobs_per_gpu != 1:
                shared = shared | usable_gpus(state, o)
    holder = np.full(problem.num_gpus, -1, dtype=np.int64)
    for job in problem.changeable:
        placement = problem.running[job]
        held = np.array(placement.gpus, dtype=np.int64)
        holder[held] = job
        whole = not placement.gpus or options.milli[placement.option] == 1000
        if job in problem.may_shrink or not whole or not (problem.shares_bind or problem.jobs_per_gpu == 1):
            shared[held] = True
    keys = [problem.gpu_node, problem.gpu_type, holder, np.where(shared, np.arange(problem.num_gpus), -1)]
    resolutions = [one.gpu_classes(problem) for one in apart]
    keys.extend(alike for alike in resolutions if alike is not None)
    cells: dict[tuple[int, ...], list[int]] = {}
    for gpu, key in enumerate(zip(*(column.tolist() for column in keys), strict=True)):
        cells.setdefault(key, []).append(gpu)
    return [tuple(gpus) for gpus in cells.values()]
