"""Stage ``rounding``: a plan made again, of the jobs and by the prices of the relaxations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placeopt.heuristics.construction import construct
from placeopt.solving.context import SolveContext
from placeopt.solving.searching import OtherStart
from placeopt.solving.stage import LevelName, StageReport
from placeopt.solving.stages.capacity_relaxation import choose_jobs
from placeopt.solving.stages.cost_relaxation import surplus_at_best_value
from placeopt.terms.objective import cost, cost_alone, value

CHECKS = 2.0
"""Time left for the offer, in multiples of what the last one took."""


@dataclass(frozen=True)
class RoundRelaxations:
    """
    Offers a plan that begins with the running jobs alone.

    The jobs of the capacity relaxation are placed first, the hardest before others; jobs of equal worth
    are compared by the prices of the cost relaxation. The search goes on from the plan where it is better. It is made
    again where jobs or prices have changed.
    """

    name: ClassVar[str] = "rounding"
    uses_solver: ClassVar[bool] = True
    for_value: bool = False
    """Whether it comes before the prices, and so only where the jobs of the capacity relaxation are worth more."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where running jobs stay as they are, once for the same prices."""
        if context.problem.changeable:
            return "running jobs may be changed"
        if self.for_value and not _is_worth_more(context):
            return "the jobs of the capacity relaxation are worth no more"
        return (
            "it has run with the same jobs and prices"
            if context.has_finished(self.name, _begins_with(context))
            else None
        )

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Make a plan, and offer it."""
        budget, problem, best = context.budget, context.problem, context.incumbent
        begins_with = _begins_with(context)
        surplus, capacity = surplus_at_best_value(context), context.handover.capacity_plan
        if surplus is None:
            surplus = cost_alone(problem, context.weighted).astype(np.float64)
        with budget.heuristic(reserve_s=CHECKS * budget.offer_s) as deadline:
            result = construct(
                problem,
                context.weighted,
                surplus,
                chosen=None if capacity is None else choose_jobs(context, capacity, surplus),
                deadline=deadline,
                cancelled=budget.cancelled,
            )
        if not result.not_reached:
            context.finish(self.name, begins_with)
            price = cost(problem, result.allocation, context.weighted)
            context.handover.other_start = OtherStart(result.allocation, price)
        level: LevelName = "cost" if context.value_proven else "value"
        yield StageReport("nodes by close fit", level=level, offer=best.offer(result.allocation))


def _is_worth_more(context: SolveContext) -> bool:
    plan, best = context.handover.capacity_plan, context.incumbent.value
    return plan is not None and plan.value + value(context.problem, context.open.allocation()) > best


def _begins_with(context: SolveContext) -> tuple[int | None, ...]:
    """Return what the plan depends on: value of the chosen jobs, and those that the prices are for."""
    capacity, guide = context.handover.capacity_plan, context.handover.cost_guide
    values = (None if known is None else known.value for known in (capacity, guide))
    return (*values, context.bounds.value)
