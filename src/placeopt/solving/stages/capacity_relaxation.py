"""Stage ``capacity-relaxation``: the jobs that fit by capacity alone, which bound the value and make first plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placeopt.errors import PlaceoptError
from placeopt.formulations.capacity_relaxation import RELAXES, build_capacity_relaxation
from placeopt.problem import IntArray
from placeopt.readable import plural
from placeopt.solving.budget import OF_SLICE
from placeopt.solving.context import CapacityPlan, SolveContext
from placeopt.solving.stage import StageReport, outcome_without_proof
from placeopt.terms.objective import value


@dataclass(frozen=True)
class CapacityRelaxationBound:
    """Bounds the value by the jobs that fit by capacity alone, and hands these on."""

    name: ClassVar[str] = "capacity-relaxation"
    uses_solver: ClassVar[bool] = True

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where GPU shares bind and running jobs stay as they are."""
        if not context.problem.shares_bind or context.problem.changeable:
            return "GPU shares do not bind, or running jobs may be changed"
        return "it is solved" if context.has_finished(self.name) else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Solve the model of the value level."""
        budget, bound = context.budget, context.bounds.value
        relaxation = build_capacity_relaxation(context.relaxed)
        try:
            model = relaxation.model(deadline=budget.deadline)
            options = budget.step_options()
            solution = context.solvers.solve(budget.integer_solver, model, options)
        except PlaceoptError as error:
            if not budget.note_error(error):
                context.finish(self.name)
            yield StageReport(str(error), "skipped")
            return
        if solution.limit not in OF_SLICE:
            context.finish(self.name)
        if solution.bound is not None:
            held = value(context.problem, context.open.allocation())
            context.bounds.prove_value(held + solution.bound, RELAXES)
        detail = f"{plural(model.num_variables, 'column')}, {plural(model.num_rows, 'row')}"
        if solution.values is None or solution.objective is None:
            yield StageReport(f"{detail}: {solution.message or solution.limit}", outcome_without_proof(solution))
            return
        known = context.handover.capacity_plan
        if known is None or known.value < solution.objective:
            context.handover.capacity_plan = CapacityPlan(relaxation, solution.values, solution.objective)
        yield StageReport(detail, "proved" if context.bounds.value < bound else "kept")


def choose_jobs(context: SolveContext, plan: CapacityPlan, surplus: np.ndarray) -> IntArray:
    """
    Return the jobs, by number, of the cheapest set that is worth as much as ``plan``.

    ``surplus``, shape (O,), is what a job in each option costs beyond what it is worth.
    """
    budget, problem, relaxation, numbers = context.budget, context.problem, plan.relaxation, plan.jobs
    try:
        model = relaxation.model(surplus, plan.value, budget.deadline)
        options = budget.step_options()
        solution = context.solvers.solve(budget.integer_solver, model, options)
        numbers = plan.jobs if solution.values is None else solution.values
    except PlaceoptError as error:  # the most valuable set does as well
        budget.note_error(error)
    counts = np.zeros(len(problem.class_communication), dtype=np.int64)
    np.add.at(counts, problem.options.job_class[relaxation.option], numbers)
    jobs = np.flatnonzero(np.array([placement is None for placement in context.open.placements], dtype=bool))
    jobs = jobs[np.argsort(problem.job_class[jobs], kind="stable")]
    of_class = problem.job_class[jobs]
    turn = np.arange(len(jobs)) - np.searchsorted(of_class, of_class)
    chosen: IntArray = np.sort(jobs[turn < counts[of_class]])
    return chosen
