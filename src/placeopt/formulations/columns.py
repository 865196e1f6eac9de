"""Columns for a partition of jobs into units and of GPUs into cells: what every formulation is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import IntArray, State
from placeopt.terms.rules import add_rules
from placeopt.terms.variables import Variables


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
        With the running jobs in place; the waiting ones are decided.
    units
        Waiting jobs counted together; all of a unit are of one class.
    cells
        GPUs counted together; all of a cell are on one node, of one type and idle, or alone.
    """
    problem, options = state.problem, state.problem.options
    gpu_to_cell = np.full(problem.num_gpus, -1, dtype=np.int64)
    for c, gpus in enumerate(cells):
        gpu_to_cell[list(gpus)] = c
    cell_gpu = np.array([gpus[0] for gpus in cells], dtype=np.int64)
    start_unit: list[int] = []
    start_option: list[int] = []
    start_most: list[int] = []
    bundle_start: list[int] = []
    bundle_node: list[int] = []
    bundle_most: list[int] = []
    grant_bundle: list[int] = []
    grant_cell: list[int] = []
    grant_most: list[int] = []
    cell_node = problem.gpu_node[cell_gpu] if len(cells) else np.zeros(0, dtype=np.int64)
    cell_size = np.array([len(gpus) for gpus in cells], dtype=np.int64)
    for u, jobs in enumerate(units):
        builder.check_time()
        for option in problem.options_of(jobs[0]):
            nodes, per_node = room_on_nodes(state, option)
            if int(per_node.sum()) < options.bundles[option]:
                continue
            s, size = len(start_unit), len(jobs)
            start_unit.append(u)
            start_option.append(option)
            start_most.append(min(size, int(per_node.sum()) // int(options.bundles[option])))
            first = len(bundle_node)
            most = np.minimum(per_node, size * options.bundles[option])
            bundle_start.extend([s] * len(nodes))
            bundle_node.extend(nodes.tolist())
            bundle_most.extend(most.tolist())
            need = int(options.gpus[option] * options.bundle_workers[option])
            if need:
                position = np.full(problem.num_nodes, -1, dtype=np.int64)
                position[nodes] = np.arange(len(nodes))
                usable = _usable_cells(state, option, cell_gpu) & (position[cell_node] >= 0)
                here = np.flatnonzero(usable)
                at = position[cell_node[here]]
                grant_bundle.extend((first + at).tolist())
                grant_cell.extend(here.tolist())
                grant_most.extend(np.minimum(need * most[at], cell_size[here] * size).tolist())
    variables = Variables(
        problem=problem,
        state=state,
        unit_jobs=tuple(units),
        start=_add(builder, start_most),
        start_unit=_ints(start_unit),
        start_option=_ints(start_option),
        bundle=_add(builder, bundle_most),
        bundle_start=_ints(bundle_start),
        bundle_node=_ints(bundle_node),
        grant=_add(builder, grant_most),
        grant_bundle=_ints(grant_bundle),
        grant_cell=_ints(grant_cell),
        cell_gpus=tuple(cells),
        gpu_to_cell=gpu_to_cell,
    )
    add_rules(builder, variables)
    return variables


def usable_gpus(state: State, option: int) -> np.ndarray:
    """Shape (G,): GPUs that could take one more job in ``option`` as things stand."""
    problem = state.problem
    ok = problem.gpu_ok(option) & (state.gpu_free_memory >= problem.options.gpu_memory_mib[option])
    if problem.shares_bind:
        ok &= state.gpu_free_milli >= problem.options.milli[option]
    if problem.jobs_per_gpu is not None:
        ok &= state.gpu_jobs < problem.jobs_per_gpu
    usable: np.ndarray = ok
    return usable


def _usable_cells(state: State, option: int, cell_gpu: IntArray) -> np.ndarray:
    usable: np.ndarray = usable_gpus(state, option)[cell_gpu]
    return usable


def room_on_nodes(state: State, option: int) -> tuple[IntArray, IntArray]:
    """Return the nodes that can take a bundle of ``option``, and how many each could at most by any one resource."""
    problem, options = state.problem, state.problem.options
    workers = int(options.bundle_workers[option])
    need = options.demand[option] * workers
    room = np.full(problem.num_nodes, 1 << 20, dtype=np.int64)
    for r in np.flatnonzero(need):
        room = np.minimum(room, state.node_free[:, r] // need[r])
    gpus = int(options.gpus[option]) * workers
    if gpus:
        usable = usable_gpus(state, option)
        jobs = _jobs_that_fit(state, option)[usable]
        per_node = np.bincount(problem.gpu_node[usable], weights=jobs, minlength=problem.num_nodes)
        count = np.bincount(problem.gpu_node[usable], minlength=problem.num_nodes)
        room = np.where(count >= gpus, np.minimum(room, per_node.astype(np.int64) // gpus), 0)
    room = np.where(problem.node_ok(option), np.maximum(room, 0), 0)
    nodes = np.flatnonzero(room)
    return nodes, room[nodes]


def _jobs_that_fit(state: State, option: int) -> IntArray:
    """Shape (G,): how many jobs in ``option`` could hold the GPU together, by share, number and memory."""
    problem, options = state.problem, state.problem.options
    room = np.full(problem.num_gpus, 1000, dtype=np.int64)
    if problem.shares_bind:
        room = np.minimum(room, state.gpu_free_milli // options.milli[option])
    if problem.jobs_per_gpu is not None:
        room = np.minimum(room, problem.jobs_per_gpu - state.gpu_jobs)
    if options.gpu_memory_mib[option]:
        room = np.minimum(room, state.gpu_free_memory // options.gpu_memory_mib[option])
    return np.maximum(room, 0)


def _ints(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def _add(builder: ModelBuilder, most: list[int]) -> IntArray:
    upper = _ints(most)
    return builder.add_variables(np.zeros(len(upper), dtype=np.int64), upper)
