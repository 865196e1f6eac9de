"""Greedy for waiting jobs that want each other: they start together, in one domain, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from placeopt.problem import BoolArray, Move, Placement, State
from placeopt.terms.rules import fits_beyond_room
from placeopt.terms.rules.relations import open_nodes

if TYPE_CHECKING:
    from placeopt.heuristics.candidates import Candidates
    from placeopt.heuristics.greedy_pass import Chooser


def place_together(
    candidates: Candidates, chosen: Chooser, job: int, order: Sequence[int], over: Callable[[], bool]
) -> list[int]:
    """
    Place a job with others that wait, so that each has near it what it wants; return them, none where that fails.

    ``candidates``: What ``chosen`` takes its nodes from. ``order``: Waiting jobs, the first to be wanted first. Of the
    domains of the finest level that the jobs' relations name, that of the best node for the first job is tried first.
    Raises ``OutOfTime`` as ``chosen`` does; the state is then as it was.
    """
    state, problem = candidates.state, candidates.problem
    gang = _gang(state, job, order)
    every, classes = problem.relations.every[: problem.relations.hard], problem.job_class[gang]
    near = [one.domain for one in every if one.record.kind == "near" and one.holds[classes].any()]
    domain = max(near, key=lambda domains: int(domains.max(initial=-1)))
    left = domain >= 0
    while len(gang) > 1 and not over():
        found = _laid(candidates, chosen, gang[:1], left)
        if found is None:
            break
        inside = domain == domain[found[0].nodes[0]]
        left = left & ~inside
        placements = _laid(candidates, chosen, gang, inside)
        if placements is not None and _start(candidates, gang, placements):
            return gang
    return []


def _gang(state: State, job: int, order: Sequence[int]) -> list[int]:
    """Return a job with the jobs that it wants near it and that wait, theirs, and so on; alone if one is missing."""
    problem, gang = state.problem, [job]
    waiting = [one for one in order if state.placements[one] is None and one not in problem.tree_of]
    for member in gang:
        for relation, counts in zip(problem.relations.every[: problem.relations.hard], state.relations, strict=False):
            wants = relation.record.kind == "near" and relation.holds[problem.job_class[member]]
            if not wants or counts.selected or relation.selected[problem.job_class[gang]].any():
                continue
            wanted = next((one for one in waiting if relation.selected[problem.job_class[one]]), None)
            if wanted is None:
                return [job]
            gang.append(wanted)
    return gang


def _laid(candidates: Candidates, chosen: Chooser, gang: Sequence[int], nodes: BoolArray) -> list[Placement] | None:
    """Return places for jobs on some nodes, one after the other, whatever is near them; the state stays as it is."""
    state, placements = candidates.state, list[Placement]()
    relations, opened = state.relations, [open_nodes(state, member, alone=False) for member in gang]
    state.relations = []
    try:
        for member, mask in zip(gang, opened, strict=True):
            candidates.restricted_to = nodes if mask is None else nodes & mask
            placement = chosen.place(member)
            if placement is None:
                break
            placements.append(placement)
            candidates.apply(Move(member, placement))
    finally:
        candidates.restricted_to = None
        for member in gang[: len(placements)]:
            candidates.apply(Move(member, None))
        state.relations = relations
    return placements if len(placements) == len(gang) else None


def _start(candidates: Candidates, gang: Sequence[int], placements: Sequence[Placement]) -> bool:
    """Place jobs together, if every rule allows each of them beside the others."""
    state = candidates.state
    for member, placement in zip(gang, placements, strict=True):
        candidates.apply(Move(member, placement))
    for member, placement in zip(gang, placements, strict=True):
        state.apply(Move(member, None))
        fits = fits_beyond_room(state, member, placement)
        state.place(member, placement)
        if not fits:
            for other in gang:
                candidates.apply(Move(other, None))
            return False
    return True
