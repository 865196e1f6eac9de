"""Why a tree waits: whether it fits beside the plan or alone, by greedy, and where that finds nothing by its model."""

from __future__ import annotations

import time

import numpy as np

from placeopt.errors import OutOfTime, PlaceoptError
from placeopt.formulations import add_counts
from placeopt.heuristics import Candidates, score_named
from placeopt.heuristics.tree_placer import TreePlacer
from placeopt.linear import ModelBuilder
from placeopt.model.plan import UnplacedReason
from placeopt.problem import State
from placeopt.problem.tree import Tree
from placeopt.solvers.result import SolveOptions
from placeopt.solving.context import SolveContext
from placeopt.solving.runners import Solve
from placeopt.terms.rules.trees import starts_of_trees

WORK = 1.0
"""Deterministic work of one question, in units of roughly a second."""
NO_TIME: tuple[UnplacedReason, str] = ("not_reached", "no time was left to tell whether there is a place for it")


def tree_reason(context: SolveContext, tree: Tree, final: State, deadline: float) -> tuple[UnplacedReason, str]:
    """Return reason and detail of a tree that waits; ``final`` is the cluster under the plan."""
    try:
        if not tree.forms:
            return "policy", "every option's utility is below the job's minimum, utility_min_thousandths"
        beside = _fits(context, tree, final, deadline)
        if beside is None:
            return NO_TIME
        if beside:
            if context.value_proven:
                return "outvoted", "fits, but placing it would not raise the value"
            limit = context.budget.limit
            return "not_reached", "fits; " + (
                "the search did not get to it" if limit == "none" else f"stopped by {limit}"
            )
        alone = _fits(context, tree, context.base, deadline)
    except OutOfTime:
        return NO_TIME
    if alone is None:
        return NO_TIME
    if alone:
        return "outvoted", "fits alone, but other jobs of the plan hold the room that its groups need together"
    return "conflict", "no way to lay all its groups beside the running jobs, even alone"


def _fits(context: SolveContext, tree: Tree, state: State, deadline: float) -> bool | None:
    return tree_fits(state, tree, context.solvers.solve, context.budget.options(WORK), deadline)


def tree_fits(state: State, tree: Tree, solve: Solve, options: SolveOptions, deadline: float) -> bool | None:
    """
    Return whether a tree that waits can start in a state; None where time was too short to tell.

    ``solve``, ``options``: What decides where greedy finds no place. ``deadline``: Of ``time.monotonic``.
    """
    if time.monotonic() >= deadline:
        return None
    trial = State(state.problem, state.allocation())
    candidates = Candidates(trial, score_named("first_fit", trial.problem))
    if TreePlacer(candidates, lambda: time.monotonic() >= deadline).place(tree):
        return True
    builder = ModelBuilder(deadline)
    try:
        variables = add_counts(builder, state, jobs=frozenset(tree.members))
    except PlaceoptError:
        return None
    starts = np.concatenate([np.zeros(0, dtype=np.int64), *starts_of_trees(variables).values()])
    if not len(starts):
        return False
    builder.set_objective(variables.start[starts], 1, "max")
    solution = solve("highs", builder.build(), options)
    if solution.values is not None and solution.objective:
        return True
    return False if solution.bound == 0 or solution.status == "infeasible" else None
