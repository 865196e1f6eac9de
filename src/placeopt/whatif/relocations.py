"""Moves of running jobs, in an order in which each of them keeps every rule at its time."""

from __future__ import annotations

from placeopt.check import violations
from placeopt.edits import edit_instance
from placeopt.errors import InternalFault
from placeopt.model import Placement
from placeopt.model.base import Id, Record
from placeopt.problem import Move, State
from placeopt.problem.running import placed_in
from placeopt.terms.rules import fits
from placeopt.whatif.occupation import Occupation
from placeopt.whatif.placements import plan_of


class Relocation(Record):
    """A move of a running job, from nodes to nodes."""

    job: Id
    from_nodes: tuple[Id, ...]
    to_nodes: tuple[Id, ...]
    gpu_milli: int


def in_order(occupation: Occupation, moved: dict[str, Placement]) -> tuple[tuple[Relocation, ...], bool]:
    """Return moves in an order in which each keeps the rules at its time; the referee checks the final placements."""
    base, problem = occupation.base, occupation.problem
    state = State(problem, occupation.state.allocation())
    before = {held.job: tuple(a.node for a in held.assignments) for held in base.running}
    pending, order = placed_in(problem, moved.values()), list[str]()
    while pending:
        for job, place in pending.items():
            back = state.apply(Move(job, None))
            if fits(state, job, place):
                state.apply(Move(job, place))
                order.append(problem.job_ids[job])
                del pending[job]
                break
            state.apply(back)
        else:
            break
    running = tuple(
        held.model_copy(update={"option": moved[held.job].option, "assignments": moved[held.job].assignments})
        if held.job in moved
        else held
        for held in base.running
    )
    after = edit_instance(base, running=running)
    if broken := violations(after, plan_of(after, ())):
        raise InternalFault(f"after the moves the referee refuses what runs: {broken[0].message}")
    moves = tuple(
        Relocation(
            job=name,
            from_nodes=before[name],
            to_nodes=tuple(assignment.node for assignment in moved[name].assignments),
            gpu_milli=occupation.milli[name],
        )
        for name in [*order, *(problem.job_ids[job] for job in pending)]
    )
    return moves, not pending
