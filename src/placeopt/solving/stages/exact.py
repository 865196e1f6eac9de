"""Stages ``counts`` and ``assignment``: exact models, one level of the objective after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from placeopt.check import violations
from placeopt.errors import BadInput, PlaceoptError, Unsupported
from placeopt.formulations import add_assignment, add_counts, decode, encode
from placeopt.linear import LinearModel, ModelBuilder
from placeopt.model import Instance, Policy
from placeopt.problem import State, compile_problem
from placeopt.readable import plural
from placeopt.solvers.racing import RACE, stand_in
from placeopt.solvers.result import Progress, Solution
from placeopt.solving import sizes
from placeopt.solving.budget import OF_SLICE, Budget, solver_of
from placeopt.solving.context import SolveContext
from placeopt.solving.draft import draft_plan
from placeopt.solving.incumbent import Accepted, Refused
from placeopt.solving.params import SolveParams
from placeopt.solving.stage import LevelName, StageReport
from placeopt.terms.objective import cost_expression, value_expression
from placeopt.terms.rules import relaxed
from placeopt.terms.variables import Variables


@dataclass(frozen=True)
class Exact:
    """Solves an exact model of the value level, and if that is proven one of the cost level at that value."""

    formulation: str  # ``counts`` or ``assignment``
    solver: str  # by name; ``race`` is HiGHS and CP-SAT side by side, each with its share of the threads
    uses_solver: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The formulation; reports are named by it and the level."""
        return self.formulation

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only while anything is open that a model may close, and the search finds nothing better."""
        if context.is_closed:
            return "the round is proven, or within the gap"
        if reason := context.budget.stop_reason():
            return reason
        if context.has_finished(self.name, "cost" if context.value_proven else "value"):
            return "it has done what it can"
        searching = context.handover.searching
        if searching is None or searching.has_stalled or context.budget.params.deterministic:
            return None
        return "the search still finds better plans"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Solve the levels that are open, one after the other, with all threads."""
        if not context.value_proven:
            yield from self._run_level(context, "value")
        if context.value_proven and context.weighted:
            context.bounds.prove_cost(0)  # no term is ever negative
            if not context.proven and not context.budget.stopped():
                yield from self._run_level(context, "cost")

    def _run_level(self, context: SolveContext, level: LevelName) -> Iterator[StageReport]:
        """Build the level's model and solve it; once more, by another solver, if the first fails with time left."""
        budget, name = context.budget, f"{self.formulation}-{level}"
        if not sizes.may_be_built(context, self.formulation):
            budget.note_limit("size")
            context.finish(self.name, level)
            detail = f"{sizes.stated(context)}: too large for {self.formulation}"
            yield StageReport(detail, "skipped", level=level, step=name)
            return
        solver = solver_of(self.solver, budget.params, budget.threads)
        if solver == RACE:
            context.solvers.warm_up()
        try:
            task = self._task(context, level)
        except PlaceoptError as error:
            if not budget.note_error(error):
                context.finish(self.name, level)
            yield StageReport(str(error), "skipped", level=level, step=name)
            return
        if context.handover.searching is not None:
            context.handover.searching.alone()
        report, solution = _attempt(context, task, solver, name, tuple(budget.params.solver_options.items()))
        yield report
        proven = context.value_proven if level == "value" else context.proven
        if solution is not None and solution.failed and not proven and not budget.stopped():
            report, solution = _attempt(context, task, stand_in(solver), f"{name}-again", extra=())
            yield report
        if solution is None or solution.failed or solution.limit not in OF_SLICE:
            context.finish(self.name, level)
        budget.note_limit(solution.limit if solution is not None and solution.failed else "none")

    def _task(self, context: SolveContext, level: LevelName) -> ExactTask:
        """Return the level as a model, that of the slice before where it is the same."""
        budget, known = context.budget, context.handover.exact
        value = context.bounds.value if level == "cost" else None
        if known is not None and (known.level, known.value) == (level, value):
            return known
        context.handover.exact = None
        builder = ModelBuilder(min(budget.step_ends(), budget.until(0.5)), sizes.most_columns(budget))
        try:
            variables = build_level(context, builder, self.formulation, level)
        except PlaceoptError:
            budget.note_limit("size" if builder.is_full else "none")
            raise
        context.handover.exact = ExactTask(builder, builder.build(), variables, level, value)
        return context.handover.exact


@dataclass(frozen=True)
class ExactTask:
    """A level as a model."""

    builder: ModelBuilder
    model: LinearModel
    variables: Variables
    level: LevelName
    value: int | None
    """What the plans of a cost level are worth."""


def _attempt(
    context: SolveContext, task: ExactTask, solver: str, name: str, extra: tuple[tuple[str, str], ...]
) -> tuple[StageReport, Solution | None]:
    """Solve once and take in what is found; None where the solver cannot."""
    level, model, budget = task.level, task.model, context.budget
    hint = encode(task.variables, context.incumbent.allocation, task.builder)
    options = replace(
        budget.step_options(),
        threads=budget.threads,
        gap=budget.params.gap,
        hint=hint if hint is not None and model.is_feasible(hint) else None,
        extra=extra,
    )

    def on_progress(progress: Progress) -> None:
        if level == "value":
            context.report(name, progress.objective, progress.bound)
        else:
            context.report(name)

    try:
        solution = context.solvers.solve(solver, model, options, on_progress)
    except Unsupported as error:
        return StageReport(str(error), "skipped", level=level, step=name), None
    report = replace(_take(context, solution, task, f"{solver}, {plural(model.num_variables, 'column')}"), step=name)
    return report, solution


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
        builder.add_row(columns, coefficients, context.bounds.value - constant, context.bounds.value - constant)
    columns, coefficients, constant = cost_expression(builder, variables, context.weighted)
    builder.set_objective(columns, coefficients, "min", constant)
    return variables


def _take(context: SolveContext, solution: Solution, task: ExactTask, detail: str) -> StageReport:
    """Take in what the solver found: its bound, and its values if the referee accepts what they stand for."""
    level, refused, accepted = task.level, None, False
    if solution.values is not None:
        try:
            offer = context.incumbent.offer(decode(task.variables, np.asarray(solution.values)))
        except ValueError as error:
            refused = f"values do not add up: {error}"
        else:
            refused = offer.why if isinstance(offer, Refused) else None
            accepted = isinstance(offer, Accepted)
    if solution.status in ("infeasible", "error") or refused:
        message = refused or solution.message or solution.status
        return StageReport(f"{detail}: {message}; what was held is kept", "failed", level=level)
    if level == "value":
        context.bounds.prove_value(solution.bound, relaxed(context.problem))
    else:
        context.bounds.prove_cost(solution.bound)
    ended = f", stopped by {solution.limit}" if solution.limit != "none" else ""
    cause = f" ({solution.message})" if solution.message else ""
    if accepted:
        return StageReport(detail + ended + cause, "improved", level=level)
    if solution.status == "optimal":
        return StageReport(detail + cause, "proved", level=level)
    if solution.failed:
        return StageReport(f"{detail}{ended}{cause}; what was held is kept", "failed", level=level)
    return StageReport(detail + ended + cause, "kept", level=level)


FORMULATIONS = ("assignment", "counts")


def level_model(
    instance: Instance, policy: Policy | None, formulation: str, *, optimal_value: int | None = None
) -> LinearModel:
    """
    Build the model that an exact stage would solve.

    - ``instance``, ``policy``: The round, and the policy instead of its own.
    - ``formulation``: One of `FORMULATIONS`.
    - ``optimal_value``: ``None`` for the first level, the value of what is placed, maximised. A number for the second,
      the costs, minimised over the placements of that value, which should be the optimum of the first.

    Returns its objective is that level's objective in a plan of the round, where the costs have exact linear forms, and
    a bound on it where they have not (the plan's ``bound_relaxes`` names them). Raises ``BadInput`` if the running
    placements break a rule. Raises ``Unsupported`` if the round is too large, the second level is requested of a policy
    without costs, or the formulation cannot express it.
    """
    problem = compile_problem(instance, policy)
    faults = violations(instance, draft_plan(instance, problem, State(problem).allocation())) if problem.running else ()
    if faults:
        raise BadInput(f"running placements: {faults[0].message} ({faults[0].rule}); they contradict each other")
    context = SolveContext(problem, Budget(SolveParams(time_limit_s=math.inf), time.monotonic(), deadline=math.inf))
    if not sizes.may_be_built(context, formulation):
        others = [f"use {name!r}, or " for name in FORMULATIONS if sizes.may_be_built(context, name)]
        what = f"{sizes.stated(context)}: too large for {formulation!r}"
        raise Unsupported(f"{what}; {''.join(others)}take fewer jobs or nodes")
    if optimal_value is not None and not context.weighted:
        raise Unsupported(f"policy {problem.policy.name!r} weighs no costs, so there is only the level 'value'")
    context.bounds.prove_value(optimal_value)
    builder = ModelBuilder(most_variables=sizes.MOST_COLUMNS)
    build_level(context, builder, formulation, "value" if optimal_value is None else "cost")
    return builder.build()
