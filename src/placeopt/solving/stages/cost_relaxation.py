"""Stage ``cost-relaxation``: the relaxation that bounds the cost of any round, and whose prices guide the search."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import OutOfTime, PlaceoptError, Unsupported
from placeopt.formulations.cost_relaxation import (
    CostRelaxation,
    WholeJobs,
    build_cost_relaxation,
    make_job_set_model,
    with_whole_jobs,
)
from placeopt.readable import plural
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.result import Solution, SolveOptions
from placeopt.solving.budget import OF_SLICE
from placeopt.solving.context import CostGuide, SolveContext
from placeopt.solving.stage import StageReport, outcome_without_proof
from placeopt.terms.objective import value

MOST_PRICES, WORTH_IT = 8, 1000
"""How often whole jobs are priced, and the gain to go on for: 1 / 1000."""


@dataclass(frozen=True)
class CostRelaxationBound:
    """
    Bounds the cost of every plan that is worth as much as the best one or more, and hands the prices on.
    """

    name: ClassVar[str] = "cost-relaxation"
    uses_solver: ClassVar[bool] = True

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where costs count and are open, and it was not solved at the value of the best plan."""
        if context.has_cost_bound:
            return "the bound is at the value of the best plan"
        if context.has_finished(self.name, context.incumbent.value):
            return "it cannot be solved at the value of the best plan"
        return None if context.weighted else "no cost counts"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Solve the relaxation, and sharpen its prices."""
        began, handover, value = time.monotonic(), context.handover, context.incumbent.value
        handover.cost_guide = None
        try:
            relaxation, solution = solve_cost_relaxation(context, value)
        except PlaceoptError as error:
            if not context.budget.note_error(error):
                context.finish(self.name, value)
            handover.cost_bound_s = time.monotonic() - began
            yield StageReport(str(error), "skipped", level="cost")
            return
        detail = (
            f"relaxation of {plural(relaxation.model.num_variables, 'column')}, nodes in "
            f"{'1 class' if relaxation.node_classes.count == 1 else f'{relaxation.node_classes.count:,} classes'}"
        )
        if solution.bound is not None:
            context.bounds.prove_cost(max(solution.bound, 0), relaxation.relaxes)
        priced = None if solution.duals is None else _sharpen(context, relaxation, solution.duals)
        handover.cost_bound_s = time.monotonic() - began
        if solution.status != "optimal":
            if solution.limit not in OF_SLICE or context.budget.params.deterministic:
                context.finish(self.name, value)
            cause = solution.message or solution.limit
            yield StageReport(f"{detail}: {cause}", outcome_without_proof(solution), level="cost")
            return
        if priced is None:
            yield StageReport(f"{detail}, no time left to price whole jobs", "proved", level="cost")
            return
        handover.cost_guide = CostGuide(value, surplus_of(context, *priced))
        yield StageReport(detail, "proved", level="cost")


def _sharpen(
    context: SolveContext, relaxation: CostRelaxation, duals: NDArray[np.float64]
) -> tuple[CostRelaxation, WholeJobs] | None:
    """
    Take in what the same prices prove of whole jobs and of sets of them, then better ones, while there is gain.

    Returns the last prices of whole jobs; None where there was no time for any.
    """
    budget = context.budget
    ends = budget.step_ends()
    priced: tuple[CostRelaxation, WholeJobs] | None = None
    for _ in range(MOST_PRICES):
        before = context.bounds.cost or 0
        try:
            whole = with_whole_jobs(relaxation, duals, budget.deadline)
            priced = relaxation, whole
            bound = dual_bound(whole.model, whole.multipliers)
            context.bounds.prove_cost(max(bound, 0), relaxation.relaxes)
            relaxation, whole = with_job_set(context, relaxation, whole)
        except OutOfTime as error:
            budget.note_error(error)
            break
        bound = max(bound, dual_bound(whole.model, whole.multipliers))
        context.bounds.prove_cost(max(bound, 0), relaxation.relaxes)
        if bound < before + max(1, before // WORTH_IT) or budget.stopped():
            break
        if budget.is_past(ends):
            break
        solution = context.solvers.solve("highs", whole.raised_costs, relaxation_options(context))
        if solution.duals is None:
            break
        duals = solution.duals
    return priced


def with_job_set(
    context: SolveContext, relaxation: CostRelaxation, whole: WholeJobs
) -> tuple[CostRelaxation, WholeJobs]:
    """Return both with what the cheapest set of jobs costs at the prices; as they are where that is not known."""
    capacity, budget = context.handover.capacity_plan, context.budget
    if capacity is None or not relaxation.value_rows:
        return relaxation, whole
    least = context.incumbent.value - value(context.problem, context.open.allocation())
    try:
        job_set = make_job_set_model(relaxation, whole, capacity.relaxation, least, budget.deadline)
    except Unsupported:  # numbers too large to be exact
        return relaxation, whole
    options = budget.step_options()
    solution = context.solvers.solve(budget.integer_solver, job_set.model, options)
    return (relaxation, whole) if solution.bound is None else job_set.bound_with(relaxation, solution.bound)


def surplus_at_best_value(context: SolveContext) -> NDArray[np.float64] | None:
    """Return `surplus_of` by the prices of plans of the greatest value that there may be; None before there are any."""
    handover, most = context.handover, context.bounds.value
    if handover.cost_guide is None or context.value_proven:
        return None if handover.cost_guide is None else handover.cost_guide.surplus
    if handover.bound_guide is None or handover.bound_guide.value != most:
        surplus = _surplus_at(context, most)
        handover.bound_guide = None if surplus is None else CostGuide(most, surplus)
    return (handover.bound_guide or handover.cost_guide).surplus


def _surplus_at(context: SolveContext, value: int) -> NDArray[np.float64] | None:
    """Return `surplus_of` by the prices of plans of at least that value; None where the relaxation has none."""
    try:
        relaxation, solution = solve_cost_relaxation(context, value)
        if solution.duals is None or solution.status != "optimal":
            return None
        priced = with_whole_jobs(relaxation, solution.duals, context.budget.deadline)
        return surplus_of(context, relaxation, priced)
    except PlaceoptError as error:
        context.budget.note_error(error)
        return None


def solve_cost_relaxation(context: SolveContext, value: int) -> tuple[CostRelaxation, Solution]:
    """Build and solve the relaxation of the cost of plans of at least that value."""
    relaxation = build_cost_relaxation(
        context.relaxed,
        context.weighted,
        value,
        context.budget.deadline,
        cut=context.handover.capacity_cut,
        most_busy=context.handover.most_busy,
    )
    return relaxation, context.solvers.solve("highs", relaxation.model, relaxation_options(context))


def relaxation_options(context: SolveContext) -> SolveOptions:
    """Return the options of a solve of the relaxation."""
    return replace(context.budget.whole_options(), relax=True)


def surplus_of(context: SolveContext, relaxation: CostRelaxation, whole: WholeJobs) -> NDArray[np.float64]:
    """Shape (O,): what a job in each option costs beyond what it is worth."""
    # Rows of sets of jobs say what jobs cost at prices of before: they would hide what these cost now.
    model, prices = whole.model, whole.multipliers.copy()
    prices[list(relaxation.value_rows[1:])] = 0.0
    reduced = model.objective.astype(np.float64)
    np.subtract.at(reduced, model.columns, model.coefficients * prices[model.row_of_nonzero])
    surplus = np.zeros(len(context.problem.options), dtype=np.float64)
    surplus[relaxation.option] = reduced[: len(relaxation.option)]
    return surplus
