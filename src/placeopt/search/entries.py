"""Placements as entries of the state, and back."""

from __future__ import annotations

from placeopt.problem import Allocation, Placement, Problem
from placeopt.problem.changes import restarted
from placeopt.search.hardware import mask_of
from placeopt.search.placing import place
from placeopt.search.state import State


def put(state: State, problem: Problem, job: int, placement: Placement) -> None:
    """Place a job as ``placement`` says."""
    state.entries[job] = write(state, problem, state.first_slot[job], placement)
    place(state, job, placement.option)


def write(state: State, problem: Problem, first: int, placement: Placement) -> int:
    """Write the entries of a placement to slots from ``first`` on; return how many there are."""
    gpus, first_gpu = int(problem.options.gpus[placement.option]), state.first_gpu
    held: dict[int, list[int]] = {}
    for rank, node in enumerate(placement.nodes):
        of_node = held.setdefault(node, [0, 0])
        held_gpus = (gpu - first_gpu[node] for gpu in placement.gpus[rank * gpus : (rank + 1) * gpus])
        of_node[0] |= mask_of(gpu for gpu in held_gpus if 0 <= gpu < state.gpus[node])
        of_node[1] += 1
    for slot, (node, (mask, workers)) in enumerate(held.items(), first):
        state.slot_node[slot], state.slot_gpus[slot], state.slot_workers[slot] = node, mask, workers
    return len(held)


Entries = tuple[int, tuple[tuple[int, int, int], ...]]
"""A placement as the search holds it: its option, then node, GPUs and workers of each slot."""


def allocation_of(state: State, problem: Problem, before: Allocation, made: dict[Entries, Placement]) -> Allocation:
    """Return the best placements, of fixed jobs those ``before``; what was there, or is in ``made``, is that object."""
    option, entries, first = state.best_option_of, state.best_entries_of, state.first_slot
    node, held, workers = state.best_node, state.best_gpus, state.best_workers
    found: list[Placement | None] = list(before)
    for job in range(problem.num_jobs):
        if state.fixed[job]:
            continue
        if option[job] < 0:
            found[job] = None
            continue
        slots = range(first[job], first[job] + entries[job])
        key = option[job], tuple([(node[slot], held[slot], workers[slot]) for slot in slots])
        if state.home[job] >= 0:
            found[job] = _changed(state, problem, job, key)
            continue
        if key not in made:
            former, placed = before[job], _placement(state, key)
            made[key] = placed if former is None or former != placed else former
        found[job] = made[key]
    return tuple(found)


def placement_of(state: State, problem: Problem, job: int) -> Placement | None:
    """Return the placement of a job as it stands; None where it waits."""
    if state.option[job] < 0:
        return None
    slots = range(state.first_slot[job], state.first_slot[job] + state.entries[job])
    held = [(state.slot_node[slot], state.slot_gpus[slot], state.slot_workers[slot]) for slot in slots]
    key = state.option[job], tuple(held)
    return _changed(state, problem, job, key) if state.home[job] >= 0 else _placement(state, key)


def _changed(state: State, problem: Problem, job: int, entries: Entries) -> Placement:
    """Return the placement of a running job that may be changed: the very one that runs where it lies at home."""
    slots = range(state.first_slot[job], state.first_slot[job] + state.home_entries[job])
    at_home = tuple([(state.home_node[slot], state.home_gpus[slot], state.home_workers[slot]) for slot in slots])
    if entries == (state.home[job], at_home):
        return problem.running[job]
    return restarted(problem, job, _placement(state, entries))


def _placement(state: State, entries: Entries) -> Placement:
    option, slots = entries
    nodes, gpus = list[int](), list[int]()
    for node, held, workers in slots:
        nodes += [node] * workers
        gpus += [state.first_gpu[node] + bit for bit in range(held.bit_length()) if held >> bit & 1]
    return Placement(option, tuple(nodes), tuple(gpus))
