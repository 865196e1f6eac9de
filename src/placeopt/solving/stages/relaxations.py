"""Stage ``flows``: a bound on the cost of rounds of any size, at the value of the best plan."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import OutOfTime, PlaceoptError
from placeopt.formulations.cost_relaxation import CostRelaxation, WholeJobs, with_whole_jobs
from placeopt.solvers.certify import dual_bound
from placeopt.solving.context import SolveContext
from placeopt.solving.handover import CostGuide
from placeopt.solving.stage import StageReport
from placeopt.solving.stages.cost_prices import guide_of, relaxation_options, solve_cost_relaxation

MOST_PRICES, SHARPEN_SHARE, WORTH_IT = 8, 0.05, 1000
"""How often whole jobs are priced, the share of the time left for that, and the gain to go on for: 1 / 1000."""


@dataclass(frozen=True)
class CostRelaxationBound:
    """
    Bounds the cost of every plan that is worth as much as the best one, and hands the prices on.

    It is the plan's bound once the value is proven; before that only the record of the stage states it.
    """

    name: ClassVar[str] = "flows"
    uses_solver: ClassVar[bool] = True
    after_improvement: bool = False
    """Whether it runs only where the stage before found a plan of another value than that of the last bound."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where costs count and are open."""
        if self.after_improvement:
            guide = context.handover.cost_guide
            if not context.handover.improved or (guide is not None and guide.value == context.incumbent.value):
                return "the bound is at the value of the best plan"
        elif context.is_closed:
            return "the round is proven, or within the gap"
        if reason := context.budget.stop_reason():
            return reason
        return "no cost counts, or all is proven" if not context.weighted or context.proven else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Solve the relaxation, and sharpen its prices."""
        began, handover, value = time.monotonic(), context.handover, context.incumbent.value
        handover.cost_guide = None
        try:
            relaxation, solution = solve_cost_relaxation(context, value)
        except PlaceoptError as error:
            context.budget.stopped()
            handover.cost_bound_s = time.monotonic() - began
            yield StageReport(str(error), "skipped", level="cost")
            return
        detail = (
            f"relaxation of {relaxation.model.num_variables} columns, {relaxation.node_classes.count} classes of nodes"
        )
        if solution.bound is not None:
            context.bounds.prove_cost(max(solution.bound, 0), relaxation.relaxes)
        priced = None if solution.duals is None else _sharpen(context, relaxation, solution.duals)
        handover.cost_bound_s = time.monotonic() - began
        if solution.status != "optimal" or priced is None:
            yield StageReport(f"{detail}: {solution.message or solution.limit}", "failed", level="cost")
            return
        handover.cost_guide = CostGuide(value, guide_of(context, relaxation, priced))
        yield StageReport(detail, "proved", level="cost")


def _sharpen(context: SolveContext, relaxation: CostRelaxation, duals: NDArray[np.float64]) -> WholeJobs | None:
    """
    Take in what the same prices prove of whole jobs, then better ones, as long as there is time and gain.

    Returns the last prices; None where there was no time for any.
    """
    began, whole, budget = time.monotonic(), None, context.budget
    for _ in range(MOST_PRICES):
        before = context.bounds.cost or 0
        try:
            whole = with_whole_jobs(relaxation, duals, budget.deadline)
        except OutOfTime:
            budget.stopped()
            break
        bound = dual_bound(whole.model, whole.multipliers)
        context.bounds.prove_cost(max(bound, 0), relaxation.relaxes)
        late = budget.is_past(began + SHARPEN_SHARE * budget.left_s)
        if bound < before + max(1, before // WORTH_IT) or late or budget.stopped():
            break
        solution = context.solvers.solve("highs", whole.raised_costs, relaxation_options(context))
        if solution.duals is None:
            break
        duals = solution.duals
    return whole
