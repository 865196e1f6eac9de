"""
Why a tree, or a job with relations to others, waits: whether it fits beside the plan or alone.

Greedy tells, and where that finds nothing the model of its members.
"""

from __future__ import annotations

import time

import numpy as np

from placeopt.errors import OutOfTime, PlaceoptError
from placeopt.formulations import add_counts
from placeopt.heuristics import Candidates, place, score_named
from placeopt.heuristics.tree_placer import TreePlacer
from placeopt.linear import ModelBuilder
from placeopt.model.plan import UnplacedReason
from placeopt.problem import Problem, State
from placeopt.problem.tree import Tree
from placeopt.solvers.result import SolveOptions
from placeopt.solving.context import SolveContext
from placeopt.solving.runners import Solve


def reason_by_model(
    context: SolveContext, job: int, tree: Tree | None, final: State, deadline: float
) -> tuple[UnplacedReason, str]:
    """Return reason and detail of a job that waits, or of its tree; ``final`` is the cluster under the plan."""
    possible = bool(context.problem.options_of(job)) if tree is None else bool(tree.forms)
    if not possible:
        return "policy", "every option's utility is below the job's minimum, utility_min_thousandths"
    solve, options = context.solvers.solve, context.budget.whole_options()
    try:
        if fits_by_model(final, job, tree, solve, options, deadline):
            if context.value_proven:
                return "outvoted", "fits, but placing it would not raise the value"
            limit = context.budget.limit
            return "not_reached", "fits; " + (
                "the search did not get to it" if limit == "none" else f"stopped by {limit}"
            )
        alone = fits_by_model(context.base, job, tree, solve, options, deadline)
    except OutOfTime:
        return "not_reached", "no time was left to tell whether there is a place for it"
    room = "other jobs of the plan hold the room that its groups need together"
    if alone:
        return "outvoted", f"fits alone, but {room if tree is not None else 'not beside the other jobs of the plan'}"
    how = "lay all its groups" if tree is not None else "keep its relations to other jobs, and theirs to it,"
    return "conflict", f"no way to {how} beside the running jobs, even alone"


def is_related(problem: Problem, job: int) -> bool:
    """Return whether a job has relations that must hold, or others have them to it."""
    hard = problem.relations.hard
    return hard > 0 and any(r < hard for r in problem.relations.of_class[problem.job_class[job]])


def fits_by_model(
    state: State, job: int, tree: Tree | None, solve: Solve, options: SolveOptions, deadline: float
) -> bool:
    """
    Return whether a job that waits, or its tree, can start in a state; raises ``OutOfTime`` where that stays open.

    ``solve``, ``options``: What decides where greedy finds no place. ``deadline``: Of ``time.monotonic``.
    """
    out_of_time = OutOfTime("no time left to lay the job's workers")
    if time.monotonic() >= deadline:
        raise out_of_time
    trial = State(state.problem, state.allocation())
    if state.settled:
        trial.settle()
    candidates = Candidates(trial, score_named("first_fit", trial.problem))
    if tree is None:
        found = place(candidates, job) is not None
    else:
        found = TreePlacer(candidates, lambda: time.monotonic() >= deadline).place(tree)
    if found:
        return True
    members = frozenset((job,) if tree is None else tree.members)
    builder = ModelBuilder(deadline)
    try:
        variables = add_counts(builder, state, jobs=members)
    except PlaceoptError as error:
        raise out_of_time from error
    mine = [variables.unit_jobs[unit][0] in members for unit in variables.start_unit.tolist()]
    starts = np.flatnonzero(np.array(mine, dtype=bool))
    if not len(starts):
        return False
    builder.set_objective(variables.start[starts], 1, "max")
    solution = solve("highs", builder.build(), options)
    if solution.values is not None and solution.objective:
        return True
    if solution.bound == 0 or solution.status == "infeasible":
        return False
    raise out_of_time
