"""Rule: shares of a GPU with profiles lie in slots, none of which two of them take."""

from __future__ import annotations

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import IntArray, Placement, State
from placeopt.problem.gpu_slots import held_slots, load_of, packing, slot_loads, slots_of, taken
from placeopt.terms.variables import MOVE, SHRINK, STAY, Variables


class GpuSlots:
    """What is on a GPU has a packing: running shares in their slots, new ones at any of their profile's starts."""

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every GPU with profiles has a packing with the job's shares."""
        del job
        problem = state.problem
        for gpu, load in slot_loads(problem, placement) if problem.has_geometry else ():
            others, slots = state.gpu_slots.item(gpu), slots_of(problem.type_geometry[problem.gpu_type[gpu]])
            if held_slots(others) & held_slots(load) or packing(slots, others + load) is None:
                return False
        return True

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """
        For each cell of GPUs a column per profile and start, a row per slot and one per profile.

        Shares are intervals of slots: where none of k alike GPUs is taken more than k times, they can be divided among
        these GPUs (interval graphs are perfect).
        """
        v = variables
        if not v.problem.has_geometry:
            return
        for cell in np.unique(v.grant_cell).tolist():
            if v.problem.type_geometry[v.problem.gpu_type[v.cell_gpus[cell][0]]]:
                _add_cell(builder, v, cell)
        _add_moves(builder, v)


def _add_cell(builder: ModelBuilder, v: Variables, cell: int) -> None:
    problem, gpus = v.problem, v.cell_gpus[cell]
    geometry = problem.type_geometry[problem.gpu_type[gpus[0]]]
    slots = slots_of(geometry)
    at = [(p, start) for p, (_, starts) in enumerate(slots) for start in starts]
    columns = builder.add_variables(0, len(gpus), count=len(at))
    mine = np.flatnonzero(v.grant_cell == cell)
    loads = np.array([_grant_load(v, q, gpus) for q in mine.tolist()], dtype=np.int64)
    base = [int(v.state.gpu_slots[gpu]) for gpu in gpus]
    for slot in range(max(start + slots[p][0] for p, start in at)):
        covering = [i for i, (p, start) in enumerate(at) if taken(slots[p][0], start) >> slot & 1]
        stays = mine[(loads >> slot & 1).astype(bool)]
        room = len(gpus) - sum(load >> slot & 1 for load in base)
        builder.add_row(np.append(columns[covering], v.grant[stays]), 1, NO_LOWER, room)
    for p, profile in enumerate(geometry):
        new = mine[loads == load_of(geometry, profile.id)]
        here = [i for i, (q, _) in enumerate(at) if q == p]
        terms = np.append(v.grant[new], columns[here])
        signs = np.append(np.ones(len(new), dtype=np.int64), np.full(len(here), -1))
        builder.add_row(terms, signs, NO_LOWER, 0)

    def packed(values: IntArray) -> IntArray:
        starts = packing(slots, base[0] + int(loads @ values[v.grant[mine]]))
        return np.array([int(starts is not None and start in starts[p]) for p, start in at], dtype=np.int64)

    if len(gpus) == 1:
        builder.define(columns, packed)


def _grant_load(v: Variables, grant: int, gpus: tuple[int, ...]) -> int:
    """Return the load of one GPU that a grant counts: in its slots what stays, else a share without a start."""
    problem, start = v.problem, v.grant_start[grant]
    geometry = problem.type_geometry[problem.gpu_type[gpus[0]]]
    first = None
    if v.start_kind[start] in (STAY, SHRINK):
        held = problem.running[v.unit_jobs[v.start_unit[start]][0]]
        first = held.starts[held.gpus.index(gpus[0])] if held.starts else None
    return load_of(geometry, problem.options.gpu_profile[v.grant_option[grant]], first)


def _add_moves(builder: ModelBuilder, v: Variables) -> None:
    """A job that moves leaves at least one of its GPUs: on all of them it would keep its slots, as one that stays."""
    for start in np.flatnonzero(v.start_kind == MOVE).tolist():
        held = v.problem.running[v.unit_jobs[v.start_unit[start]][0]]
        if held.starts:
            cells = v.gpu_to_cell[list(held.gpus)]
            there = np.flatnonzero((v.grant_start == start) & np.isin(v.grant_cell, cells))
            builder.add_row(v.grant[there], 1, NO_LOWER, len(held.gpus) - 1)
