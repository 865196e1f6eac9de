"""Stage ``roster``: a relaxation that counts room, which bounds the value and says which jobs a plan can hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.errors import PlaceoptError
from placeopt.formulations.capacity_relaxation import RELAXES, build_capacity_relaxation
from placeopt.solving.context import SolveContext
from placeopt.solving.handover import CapacityPlan
from placeopt.solving.stage import StageReport
from placeopt.terms.objective import value


@dataclass(frozen=True)
class CapacityRelaxationBound:
    """Bounds the value by the jobs that fit by capacity alone, and hands these on."""

    name: ClassVar[str] = "roster"
    uses_solver: ClassVar[bool] = True
    share: float = 0.05
    """Part of the time left that it may take."""
    work: float = 2.0
    """Deterministic work."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only while anything is open, where GPU shares bind and running jobs stay as they are."""
        if reason := context.budget.stop_reason():
            return reason
        if context.is_closed:
            return "the round is proven, or within the gap"
        if not context.problem.shares_bind or context.problem.changeable:
            return "GPU shares do not bind, or running jobs may be changed"
        return None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Solve the model of the value level."""
        budget, bound = context.budget, context.bounds.value
        context.handover.capacity_plan = None
        relaxation = build_capacity_relaxation(context.relaxed)
        try:
            model = relaxation.model(deadline=budget.deadline)
            options = budget.options(self.work, self.share * budget.left_s)
            solution = context.solvers.solve(budget.integer_solver, model, options)
        except PlaceoptError as error:
            budget.stopped()
            yield StageReport(str(error), "skipped")
            return
        if solution.bound is not None:
            held = value(context.problem, context.open.allocation())
            context.bounds.prove_value(held + solution.bound, RELAXES)
        detail = f"{model.num_variables} columns, {model.num_rows} rows"
        if solution.values is None or solution.objective is None:
            yield StageReport(f"{detail}: {solution.message or solution.limit}", "failed")
            return
        context.handover.capacity_plan = CapacityPlan(relaxation, solution.values, solution.objective)
        yield StageReport(detail, "proved" if context.bounds.value < bound else "kept")
