"""Greedy for waiting jobs that want each other: they start together, in one domain, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from placeopt.problem import BoolArray, Move, Placement, State
from placeopt.terms.rules import fits_beyond_room

if TYPE_CHECKING:
    from placeopt.heuristics.candidates import Candidates
    from placeopt.heuristics.greedy_pass import Chooser
    from placeopt.heuristics.scores.table import ScoreTable


def place_together(
    state: State,
    chosen: Chooser,
    limited: Candidates | ScoreTable,
    job: int,
    order: Sequence[int],
    over: Callable[[], bool],
) -> list[int]:
    """
    Place a job with others that wait, so that each has near it what it wants; return them, none where that fails.

    ``limited``: What ``chosen`` takes its nodes from. ``order``: Waiting jobs, the first to be wanted first. Of the
    domains of the finest level that the jobs' relations name, that of the best node for the first job is tried first.
    """
    gang = _gang(state, job, order)
    problem, hard = state.problem, state.problem.relations.every[: state.problem.relations.hard]
    classes = {int(problem.job_class[member]) for member in gang}
    near = [one for one in hard if one.record.kind == "near" and one.holds[list(classes)].any()]
    if len(gang) < 2 or not near:
        return []
    domain = max((one.domain for one in near), key=lambda domains: int(domains.max(initial=-1)))
    left = domain >= 0
    while not over():
        found = _laid(state, chosen, limited, gang[:1], left)
        if found is None:
            return []
        inside = domain == domain[found[0].nodes[0]]
        left = left & ~inside
        placements = _laid(state, chosen, limited, gang, inside)
        if placements is not None and _start(state, chosen, gang, placements):
            return gang
    return []


def _gang(state: State, job: int, order: Sequence[int]) -> list[int]:
    """Return a job with the jobs that it wants near it and that wait, theirs, and so on; none if one is missing."""
    problem, gang = state.problem, [job]
    for member in gang:
        k = int(problem.job_class[member])
        for r in problem.relations.of_class[k]:
            relation = problem.relations.every[r]
            if r >= problem.relations.hard or relation.record.kind != "near" or not relation.holds[k]:
                continue
            if state.relations[r].selected or any(relation.selected[problem.job_class[one]] for one in gang):
                continue
            waiting = (
                one
                for one in order
                if relation.selected[problem.job_class[one]]
                and state.placements[one] is None
                and one not in problem.tree_of
            )
            wanted = next(waiting, None)
            if wanted is None:
                return []
            gang.append(wanted)
    return gang


def _laid(
    state: State, chosen: Chooser, limited: Candidates | ScoreTable, gang: Sequence[int], nodes: BoolArray
) -> list[Placement] | None:
    """Return places for jobs on some nodes, one after the other, whatever is near them; the state stays as it is."""
    relations, placements = state.relations, list[Placement]()
    opened = [_open_beside(state, member) for member in gang]
    state.relations = []
    try:
        for member, mask in zip(gang, opened, strict=True):
            limited.restricted_to = nodes & mask
            placement = chosen.place(member)
            if placement is None:
                return None
            placements.append(placement)
            _apply(state, chosen, member, placement)
        return placements
    finally:
        limited.restricted_to = None
        for member in gang[: len(placements)]:
            _apply(state, chosen, member, None)
        state.relations = relations


def _open_beside(state: State, job: int) -> BoolArray:
    """Shape (N,): nodes of which no relation keeps off a job, apart from those near others of which none is placed."""
    problem, k = state.problem, int(state.problem.job_class[job])
    found = np.ones(problem.num_nodes, dtype=bool)
    for r in problem.relations.of_class[k]:
        counts = state.relations[r]
        if r < problem.relations.hard and (counts.relation.record.kind == "apart" or counts.selected):
            mask = counts.open_to(k)
            found &= True if mask is None else mask
    return found


def _start(state: State, chosen: Chooser, gang: Sequence[int], placements: Sequence[Placement]) -> bool:
    """Place jobs together, if each may start beside the others."""
    for member, placement in zip(gang, placements, strict=True):
        _apply(state, chosen, member, placement)
    if all(_is_lawful(state, member, placement) for member, placement in zip(gang, placements, strict=True)):
        return True
    for member in gang:
        _apply(state, chosen, member, None)
    return False


def _is_lawful(state: State, job: int, placement: Placement) -> bool:
    """Return whether every rule allows a placed job beside all others."""
    state.apply(Move(job, None))
    fits = fits_beyond_room(state, job, placement)
    state.place(job, placement)
    return fits


def _apply(state: State, chosen: Chooser, job: int, placement: Placement | None) -> None:
    """Place a job, or take it away with None."""
    before = state.apply(Move(job, placement)).placement
    for node in dict.fromkeys((placement or before or Placement(0, (), ())).nodes):
        chosen.changed(node)
