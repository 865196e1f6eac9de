"""Columns for a partition of jobs into units and of GPUs into cells: what every formulation is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import IntArray, Placement, Problem, State
from placeopt.problem.changes import part_of
from placeopt.problem.free_capacity import bundles_per_node, usable_gpus
from placeopt.terms.objective import start_value
from placeopt.terms.rules.registry import add_rules
from placeopt.terms.variables import MOVE, NEW, SHRINK, STAY, Variables


def add_columns(
    builder: ModelBuilder,
    state: State,
    units: Sequence[tuple[int, ...]],
    cells: Sequence[tuple[int, ...]],
) -> Variables:
    """
    Add start, bundle and grant columns wherever the static masks allow, and the rows of all rules.

    Parameters
    ----------
    state
        With the running jobs in place that must stay as they are; the others are decided.
    units
        Jobs counted together; all of a unit are of one class, and one that runs is alone.
    cells
        GPUs counted together; all of a cell are on one node, of one type and idle, or alone. One that a running job
        may leave is alone too, or all of them are held whole by one such job, which stays or leaves as a whole.
    """
    problem = state.problem
    gpu_to_cell = np.full(problem.num_gpus, -1, dtype=np.int64)
    for c, gpus in enumerate(cells):
        gpu_to_cell[list(gpus)] = c
    columns = _Columns(state, cells, gpu_to_cell)
    for u, jobs in enumerate(units):
        builder.check_time()
        if jobs[0] in problem.running:
            columns.add_running(u, jobs[0])
        else:
            for option in problem.options_of(jobs[0]):
                columns.add_anywhere(u, len(jobs), option, NEW, int(problem.options.value[option]))
    must_run = [jobs[0] in problem.running and jobs[0] not in problem.may_preempt for jobs in units]
    variables = Variables(
        problem=problem,
        state=state,
        unit_jobs=tuple(units),
        unit_least=_ints([int(must) for must in must_run]),
        start=_add(builder, columns.start_most),
        start_unit=_ints(columns.start_unit),
        start_option=_ints(columns.start_option),
        start_kind=_ints(columns.start_kind),
        start_value=_ints(columns.start_value),
        bundle=_add(builder, columns.bundle_most),
        bundle_start=_ints(columns.bundle_start),
        bundle_node=_ints(columns.bundle_node),
        bundle_most=_ints(columns.bundle_most),
        grant=_add(builder, columns.grant_most),
        grant_bundle=_ints(columns.grant_bundle),
        grant_cell=_ints(columns.grant_cell),
        grant_most=_ints(columns.grant_most),
        grant_milli=_ints(columns.grant_milli),
        cell_gpus=tuple(cells),
        gpu_to_cell=gpu_to_cell,
    )
    add_rules(builder, variables)
    return variables


class _Columns:
    """Lists of what the columns stand for, as they are found."""

    def __init__(self, state: State, cells: Sequence[tuple[int, ...]], gpu_to_cell: IntArray) -> None:
        self.state = state
        self.problem: Problem = state.problem
        self.gpu_to_cell = gpu_to_cell
        self.cell_gpu = np.array([gpus[0] for gpus in cells], dtype=np.int64)
        self.cell_size = np.array([len(gpus) for gpus in cells], dtype=np.int64)
        self.cell_node = self.problem.gpu_node[self.cell_gpu] if len(cells) else np.zeros(0, dtype=np.int64)
        self.start_unit: list[int] = []
        self.start_option: list[int] = []
        self.start_kind: list[int] = []
        self.start_value: list[int] = []
        self.start_most: list[int] = []
        self.bundle_start: list[int] = []
        self.bundle_node: list[int] = []
        self.bundle_most: list[int] = []
        self.grant_bundle: list[int] = []
        self.grant_cell: list[int] = []
        self.grant_most: list[int] = []
        self.grant_milli: list[int] = []

    def add_running(self, unit: int, job: int) -> None:
        """Add what may become of a running job: to stay, to shrink to each number of workers, to move."""
        problem, options, held = self.problem, self.problem.options, self.problem.running[job]
        self._add_where_it_is(unit, held, held.option, STAY, start_value(problem, job, held))
        for option in problem.options_of(job):
            workers = int(options.workers[option])
            fewer = options.name[option] == options.name[held.option] and workers < len(held.nodes)
            if fewer and job in problem.may_shrink:
                shrunk = part_of(problem, job, option, tuple(range(workers)))
                self._add_where_it_is(unit, held, option, SHRINK, start_value(problem, job, shrunk))
            if job in problem.may_move:
                price, stop = problem.policy.changes.move_price, problem.policy.changes.preemption_price
                self.add_anywhere(unit, 1, option, MOVE, int(options.value[option]) - price + stop)

    def add_anywhere(self, unit: int, size: int, option: int, kind: int, value: int) -> None:
        """Add a start of ``size`` jobs wherever the option may start, if there is room for one."""
        state, options = self.state, self.problem.options
        nodes, per_node = bundles_per_node(state, option)
        bundles = int(options.bundles[option])
        if int(per_node.sum()) < bundles:
            return
        first = len(self.bundle_node)
        most = np.minimum(per_node, size * bundles)
        self._add_start(unit, option, kind, value, min(size, int(per_node.sum()) // bundles), nodes, most)
        need = int(options.gpus[option] * options.bundle_workers[option])
        if need:
            position = np.full(self.problem.num_nodes, -1, dtype=np.int64)
            position[nodes] = np.arange(len(nodes))
            here = np.flatnonzero(usable_gpus(state, option)[self.cell_gpu] & (position[self.cell_node] >= 0))
            at = position[self.cell_node[here]]
            self.grant_bundle.extend((first + at).tolist())
            self.grant_cell.extend(here.tolist())
            self.grant_most.extend(np.minimum(need * most[at], self.cell_size[here] * size).tolist())
            self.grant_milli.extend([int(options.milli[option])] * len(here))

    def _add_where_it_is(self, unit: int, held: Placement, option: int, kind: int, value: int) -> None:
        """Add a start in ``option`` with bundles and grants only where the running job has its workers now."""
        first = len(self.bundle_node)
        single = int(self.problem.options.bundles[option]) == 1
        workers = dict.fromkeys(held.nodes, 1) if single else Counter(held.nodes)
        at = {node: first + i for i, node in enumerate(workers)}
        self._add_start(unit, option, kind, value, 1, _ints(list(workers)), _ints(list(workers.values())))
        cells = Counter(int(self.gpu_to_cell[gpu]) for gpu in held.gpus)
        for cell, amount in cells.items():
            self.grant_bundle.append(at[int(self.cell_node[cell])])
            self.grant_cell.append(cell)
            self.grant_most.append(amount)
            self.grant_milli.append(int(self.problem.options.milli[option]))

    def _add_start(
        self, unit: int, option: int, kind: int, value: int, most: int, nodes: IntArray, per_node: IntArray
    ) -> None:
        s = len(self.start_unit)
        self.start_unit.append(unit)
        self.start_option.append(option)
        self.start_kind.append(kind)
        self.start_value.append(value)
        self.start_most.append(most)
        self.bundle_start.extend([s] * len(nodes))
        self.bundle_node.extend(nodes.tolist())
        self.bundle_most.extend(per_node.tolist())


def _ints(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def _add(builder: ModelBuilder, most: list[int]) -> IntArray:
    upper = _ints(most)
    return builder.add_variables(np.zeros(len(upper), dtype=np.int64), upper)
