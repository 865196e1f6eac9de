"""Stage 2b: the exact formulations, one level of the objective after the other."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from placeopt.errors import PlaceoptError, Unsupported
from placeopt.formulations import add_assignment, add_counts, decode, encode
from placeopt.linear import LinearModel, ModelBuilder
from placeopt.solvers.race import stand_in
from placeopt.solvers.result import Limit, Progress, Solution
from placeopt.solving.context import LevelName, SolveContext
from placeopt.solving.sizes import SIZES, product, waiting
from placeopt.solving.solver_call import Solve
from placeopt.terms.objective import cost_expression, value_expression
from placeopt.terms.rules.registry import relaxed
from placeopt.terms.variables import Variables

AGAIN_S = 0.5
"""Time left below which nothing is tried again: a new process takes some 0.3 s to load a solver."""

WORK_PER_SECOND = 0.1
"""Deterministic work asked for per second of the time limit, so that work, not the clock, ends the stage."""


def run_exact(context: SolveContext, solve: Solve, formulation: str, solver: str) -> None:
    """Solve the value level, and if that is proven the cost level at that value."""
    if not context.value_proven:
        _run_level(context, solve, formulation, solver, "value")
    if context.value_proven and context.weighted:
        context.prove_cost(0)  # no term is ever negative
    if context.value_proven and context.weighted and not context.proven and not context.stopped():
        _run_level(context, solve, formulation, solver, "cost")


def is_built(context: SolveContext, formulation: str) -> bool:
    """Tell whether the round is small enough for the formulation's model to be built."""
    return product(context) <= SIZES.exact_product[formulation]


def _run_level(context: SolveContext, solve: Solve, formulation: str, solver: str, level: LevelName) -> None:
    """Build the level's model and solve it; once more, by another solver, if the first fails with time left."""
    started, name = time.monotonic(), f"{formulation}-{level}"
    if not is_built(context, formulation):
        context.note_limit("size")
        size = f"{waiting(context)} jobs on {context.problem.num_gpus} GPUs"
        context.record(name, "skipped", started, f"{size}: too large for {formulation}", level)
        return
    builder = ModelBuilder(context.budget.deadline, SIZES.exact_columns)
    try:
        variables = build_level(context, builder, formulation, level)
    except PlaceoptError as error:
        context.stopped()
        context.note_limit("size" if builder.is_full else "none")
        context.record(name, "skipped", started, str(error), level)
        return
    model = builder.build()
    task = _Task(builder, model, variables, level)
    failed = _attempt(context, solve, task, solver, name, started, context.budget.solver_options)
    proven = context.value_proven if level == "value" else context.proven
    if failed is None or proven or context.stopped() or context.budget.left_s < AGAIN_S:
        context.note_limit(failed or "none")
        return
    again = _attempt(context, solve, task, stand_in(solver), f"{name}-again", time.monotonic(), extra=())
    context.note_limit(again or "none")


@dataclass(frozen=True)
class _Task:
    """A level as a model."""

    builder: ModelBuilder
    model: LinearModel
    variables: Variables
    level: LevelName


def _attempt(
    context: SolveContext,
    solve: Solve,
    task: _Task,
    solver: str,
    name: str,
    started: float,
    extra: tuple[tuple[str, str], ...],
) -> Limit | None:
    """Solve once and take in what is found. Returns what ended the solver if it failed, else None."""
    level, model, limits = task.level, task.model, context.budget
    hint = None if context.incumbent is None else encode(task.variables, context.incumbent.allocation, task.builder)
    options = replace(
        limits.options(WORK_PER_SECOND * limits.time_limit_s),
        threads=limits.threads,
        gap=limits.gap,
        hint=hint if hint is not None and model.is_feasible(hint) else None,
        extra=extra,
    )

    def on_progress(progress: Progress) -> None:
        if level == "value":
            context.report(name, progress.objective, progress.bound)
        else:
            context.report(name)

    try:
        solution = solve(solver, model, options, on_progress)
    except Unsupported as error:
        context.record(name, "skipped", started, str(error), level)
        return None
    if not solution.failed:
        context.note_limit(solution.limit)
    _take(context, solution, task, name, started, f"{solver}, {model.num_variables} columns")
    return solution.limit if solution.failed else None


def build_level(context: SolveContext, builder: ModelBuilder, formulation: str, level: LevelName) -> Variables:
    """Write one level of a round into ``builder``; that of the costs keeps the value at its bound, to be proven."""
    costs = [w.cost for w in context.weighted] if level == "cost" else []
    if formulation == "assignment":
        variables = add_assignment(builder, context.open)
    else:
        variables = add_counts(builder, context.open, costs)
    columns, coefficients, constant = value_expression(variables)
    if level == "value":
        builder.set_objective(columns, coefficients, "max", constant)
        return variables
    if len(columns):
        builder.add_row(columns, coefficients, context.value_bound - constant, context.value_bound - constant)
    columns, coefficients, constant = cost_expression(builder, variables, context.weighted)
    builder.set_objective(columns, coefficients, "min", constant)
    return variables


def _take(context: SolveContext, solution: Solution, task: _Task, name: str, started: float, detail: str) -> None:
    """Take in what the solver found: its bound, and its values if the referee accepts what they stand for."""
    before, level = context.incumbent, task.level
    refused = None
    if solution.values is not None:
        try:
            refused = context.offer(decode(task.variables, np.asarray(solution.values)))
        except ValueError as error:
            refused = f"values do not add up: {error}"
    if solution.status in ("infeasible", "error") or refused:
        message = refused or solution.message or solution.status
        context.record(name, "failed", started, f"{detail}: {message}; what was held is kept", level)
        return
    if level == "value":
        context.prove_value(solution.bound, relaxed(context.problem))
    else:
        context.prove_cost(solution.bound)
    ended = f", stopped by {solution.limit}" if solution.limit != "none" else ""
    cause = f" ({solution.message})" if solution.message else ""
    if context.incumbent is not before:
        context.record(name, "improved", started, detail + ended + cause, level)
    elif solution.status == "optimal":
        context.record(name, "proved", started, detail + cause, level)
    elif solution.failed:
        context.record(name, "failed", started, f"{detail}{ended}{cause}; what was held is kept", level)
    else:
        context.record(name, "kept", started, detail + ended + cause, level)
