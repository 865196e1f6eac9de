"""
Exact formulations: columns for a partition of jobs into units and of GPUs into cells.

``counts`` counts alike jobs and alike GPUs together and is far smaller than ``assignment``, which has a column for
every job, node and GPU, as in Horus eq. 3-6: for tests, tiny rounds, odd hardware.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import BundleRooms, IntArray, Placement, Problem, State
from placeopt.problem.changes import part_of
from placeopt.problem.free_capacity import usable_gpus
from placeopt.terms.objective import start_value
from placeopt.terms.protocols import Cost
from placeopt.terms.rules import RULES
from placeopt.terms.rules.minimal_utility import MinimalUtility
from placeopt.terms.rules.spread import Spread
from placeopt.terms.variables import MOVE, NEW, SHRINK, STAY, Variables

START = ("unit", "option", "kind", "value", "most")
BUNDLE = ("start", "node", "most")
GRANT = ("bundle", "cell", "most", "milli")
"""What stands in a row of each kind of column."""

FoldGuard = Cost | MinimalUtility | Spread
"""What states that jobs, or GPUs, are not alike."""


def add_columns(
    builder: ModelBuilder,
    state: State,
    units: Sequence[tuple[int, ...]],
    cells: Sequence[tuple[int, ...]],
) -> Variables:
    """
    Add start, bundle and grant columns wherever the static masks allow, and the rows of all rules.

    - ``state``: With the running jobs in place that must stay as they are; the others are decided.
    - ``units``: Jobs counted together; all of a unit are of one class, and one that runs is alone.
    - ``cells``: GPUs counted together; all of a cell are on one node, of one type and idle, or alone. One that a
      running job may leave is alone too, or all of them are held whole by one such job, which stays or leaves as a
      whole.
    """
    problem = state.problem
    gpu_to_cell = np.full(problem.num_gpus, -1, dtype=np.int64)
    for c, gpus in enumerate(cells):
        gpu_to_cell[list(gpus)] = c
    columns = _Columns(state, cells, gpu_to_cell)
    for u, jobs in enumerate(units):
        builder.check_time()
        builder.check_room(columns.number)
        if jobs[0] in problem.running:
            columns.add_running(u, jobs[0])
        else:
            for option in problem.options_of(jobs[0]):
                columns.add_anywhere(u, len(jobs), option, NEW, int(problem.options.value[option]))
    must_run = [jobs[0] in problem.running and jobs[0] not in problem.may_preempt for jobs in units]
    start_unit, start_option, start_kind, start_value, start_most = _rows(columns.starts, len(START))
    bundle_start, bundle_node, bundle_most = _rows(columns.bundles, len(BUNDLE))
    grant_bundle, grant_cell, grant_most, grant_milli = _rows(columns.grants, len(GRANT))
    variables = Variables(
        problem=problem,
        state=state,
        unit_jobs=tuple(units),
        unit_least=np.array(must_run, dtype=np.int64),
        start=builder.add_variables(0, start_most),
        start_unit=start_unit,
        start_option=start_option,
        start_kind=start_kind,
        start_value=start_value,
        bundle=builder.add_variables(0, bundle_most),
        bundle_start=bundle_start,
        bundle_node=bundle_node,
        bundle_most=bundle_most,
        grant=builder.add_variables(0, grant_most),
        grant_bundle=grant_bundle,
        grant_cell=grant_cell,
        grant_most=grant_most,
        grant_milli=grant_milli,
        cell_gpus=tuple(cells),
        gpu_to_cell=gpu_to_cell,
    )
    for rule in RULES:
        rule.add_to(builder, variables)
    return variables


class _Columns:
    """What the columns stand for, in blocks of rows: of ``START``, of ``BUNDLE`` and of ``GRANT``."""

    def __init__(self, state: State, cells: Sequence[tuple[int, ...]], gpu_to_cell: IntArray) -> None:
        self.state, self._rooms = state, BundleRooms(state)
        self.problem: Problem = state.problem
        self.gpu_to_cell = gpu_to_cell
        self.cell_gpu = np.array([gpus[0] for gpus in cells], dtype=np.int64)
        self.cell_size = np.array([len(gpus) for gpus in cells], dtype=np.int64)
        self.cell_node = self.problem.gpu_node[self.cell_gpu] if len(cells) else np.zeros(0, dtype=np.int64)
        self.starts: list[IntArray] = []
        self.bundles: list[IntArray] = []
        self.grants: list[IntArray] = []
        self._num_bundles = self.number = 0

    def add_running(self, unit: int, job: int) -> None:
        """Add what may become of a running job: to stay, to shrink to each number of workers, to move."""
        problem, options, held = self.problem, self.problem.options, self.problem.running[job]
        self._add_where_it_is(unit, held, held.option, STAY, start_value(problem, job, held))
        for option in problem.options_of(job):
            workers = int(options.workers[option])
            fewer = options.kinds[option] == options.kinds[held.option] and workers < len(held.nodes)
            if fewer and job in problem.may_shrink:
                shrunk = part_of(problem, job, option, tuple(range(workers)))
                self._add_where_it_is(unit, held, option, SHRINK, start_value(problem, job, shrunk))
            if job in problem.may_move:
                price, stop = problem.policy.changes.move_price, problem.policy.changes.preemption_price
                self.add_anywhere(unit, 1, option, MOVE, int(options.value[option]) - price + stop)

    def add_anywhere(self, unit: int, size: int, option: int, kind: int, value: int) -> None:
        """Add a start of ``size`` jobs wherever the option may start, if there is room for one."""
        state, options = self.state, self.problem.options
        nodes, per_node = self._rooms.per_node(option)
        bundles = int(options.bundles[option])
        if int(per_node.sum()) < bundles:
            return
        first, most = self._num_bundles, np.minimum(per_node, size * bundles)
        self._add_start(unit, option, kind, value, min(size, int(per_node.sum()) // bundles), nodes, most)
        need = int(options.gpus[option] * options.bundle_workers[option])
        if need:
            position = np.full(self.problem.num_nodes, -1, dtype=np.int64)
            position[nodes] = np.arange(len(nodes))
            here = np.flatnonzero(usable_gpus(state, option)[self.cell_gpu] & (position[self.cell_node] >= 0))
            at = position[self.cell_node[here]]
            amount = np.minimum(need * most[at], self.cell_size[here] * size)
            self.grants.append(np.column_stack((first + at, here, amount, np.full(len(here), options.milli[option]))))
            self.number += len(here)

    def _add_where_it_is(self, unit: int, held: Placement, option: int, kind: int, value: int) -> None:
        """Add a start in ``option`` with bundles and grants only where the running job has its workers now."""
        first = self._num_bundles
        single = int(self.problem.options.bundles[option]) == 1
        workers = dict.fromkeys(held.nodes, 1) if single else Counter(held.nodes)
        at = {node: first + i for i, node in enumerate(workers)}
        self._add_start(unit, option, kind, value, 1, np.array(list(workers)), np.array(list(workers.values())))
        milli = int(self.problem.options.milli[option])
        for cell, amount in Counter(int(self.gpu_to_cell[gpu]) for gpu in held.gpus).items():
            self.grants.append(np.array([[at[int(self.cell_node[cell])], cell, amount, milli]]))
            self.number += 1

    def _add_start(
        self, unit: int, option: int, kind: int, value: int, most: int, nodes: IntArray, per_node: IntArray
    ) -> None:
        start = np.full(len(nodes), len(self.starts))
        self.starts.append(np.array([[unit, option, kind, value, most]]))
        self.bundles.append(np.column_stack((start, nodes, per_node)))
        self._num_bundles += len(nodes)
        self.number += 1 + len(nodes)


def _rows(blocks: list[IntArray], width: int) -> IntArray:
    """Shape (width, n): the rows of all blocks, as columns."""
    return np.concatenate([np.zeros((0, width), dtype=np.int64), *blocks]).T.copy()


def add_counts(
    builder: ModelBuilder, state: State, costs: Sequence[Cost] = (), jobs: Container[int] | None = None
) -> Variables:
    """
    Fold what the rules and ``costs`` cannot tell apart.

    Jobs of a class fold if each option has one bundle, no splits, no cost that needs columns of its own, and either
    takes whole GPUs or one only (or two jobs could not be told apart on the GPUs that both share).

    GPUs of a node fold if they are idle, of one type, alike to every cost, and no
    option may take less than the whole of them. Those of a running job that may be changed fold only among themselves,
    and not at all where it may be shrunk.

    ``jobs``: The only ones whose place is chosen, of those that ``state`` leaves open; None: all.
    """
    apart: tuple[FoldGuard, ...] = (*costs, MinimalUtility(), Spread())
    units = [unit for unit in _units(state, apart) if jobs is None or unit[0] in jobs]
    return add_columns(builder, state, units, _cells(state, apart))


def _units(state: State, apart: Sequence[FoldGuard]) -> list[tuple[int, ...]]:
    problem = state.problem
    folded: dict[int, list[int]] = {}
    folds: dict[int, bool] = {}
    for job in range(problem.num_jobs):
        if state.placements[job] is None:
            k = int(problem.job_class[job])
            if k not in folds:
                folds[k] = _folds(problem, job, apart)
            alone = job in problem.running or job in problem.tree_of or not folds[k]
            folded.setdefault(-1 - job if alone else k, []).append(job)
    return [tuple(jobs) for jobs in folded.values()]


def _folds(problem: Problem, job: int, apart: Sequence[FoldGuard]) -> bool:
    options = problem.options
    one_or_whole = (options.gpus * options.bundle_workers <= 1) | ((options.milli == 1000) & problem.shares_bind)
    return all(
        options.bundles[o] == 1
        and one_or_whole[o]
        and not options.lies[o]
        and not any(guard.forbids_folding(problem, o) for guard in apart)
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
    resolutions = [guard.gpu_classes(problem) for guard in apart]
    keys.extend(alike for alike in resolutions if alike is not None)
    cells: dict[tuple[int, ...], list[int]] = {}
    for gpu, key in enumerate(zip(*(column.tolist() for column in keys), strict=True)):
        cells.setdefault(key, []).append(gpu)
    return [tuple(gpus) for gpus in cells.values()]


def add_assignment(builder: ModelBuilder, state: State) -> Variables:
    """Fold nothing: every job not fixed in ``state`` is a unit, every GPU a cell."""
    waiting = [(job,) for job in range(state.problem.num_jobs) if state.placements[job] is None]
    return add_columns(builder, state, waiting, [(gpu,) for gpu in range(state.problem.num_gpus)])
