"""Stage ``rounding``: plans made again, of the jobs and by the prices of the relaxations."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.heuristics.construction import RANKINGS, construct
from placeopt.problem import Allocation
from placeopt.solving.context import SolveContext
from placeopt.solving.incumbent import Offer, Refused
from placeopt.solving.stage import LevelName, StageReport
from placeopt.solving.stages.capacity_relaxation import choose_jobs
from placeopt.solving.stages.cost_relaxation import guide_of_best_value
from placeopt.terms.objective import cost_alone, value

LAG = 0.003
"""Part of the value by which a plan made again may lag behind the best one, and others are still made."""
CHECKS = 2.0
"""Time left for offers, in multiples of what the last one took."""
NEXT = 4.0
"""Time left, in multiples of what the last ranking took, from which on another one is tried: it takes up to three."""
JOBS_PER_S = 1000
"""Waiting jobs for each second of the time limit up to which several rankings are tried in deterministic mode."""


@dataclass(frozen=True)
class RoundRelaxations:
    """
    Offers plans that begin with the running jobs alone.

    The jobs of the capacity relaxation are placed first, the hardest before others; jobs of equal worth, and nodes for
    gangs, are compared by the prices of the cost relaxation. Nodes for single bundles are ranked by fit, by cost, and
    by cost as if opened domains fill up: a plan for each, in reverse where all jobs fit. Where one lags by much, the
    others are not made.
    """

    name: ClassVar[str] = "rounding"
    uses_solver: ClassVar[bool] = True

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only while anything is open, where running jobs stay as they are, by each ranking once."""
        if reason := context.budget.stop_reason():
            return reason
        if context.is_closed:
            return "the round is proven, or within the gap"
        if context.problem.changeable:
            return "running jobs may be changed"
        return "all plans are made" if context.handover.rankings == [] else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Make a plan by each ranking, as long as there is time and none lags by much."""
        budget, handover, best = context.budget, context.handover, context.incumbent
        guide, capacity = guide_of_best_value(context), handover.capacity_plan
        surplus = cost_alone(context.problem, context.weighted) if guide is None else guide.surplus
        chosen = None if capacity is None else choose_jobs(context, capacity, surplus)
        if handover.rankings is None:
            scarce = any(placement is None for placement in best.allocation)
            handover.rankings = list(RANKINGS if scarce else RANKINGS[::-1])
        left = handover.rankings
        offer, took_s = None, 0.0
        made = list[str]()
        while left:
            if made and not (budget.steps(JOBS_PER_S) >= context.problem.num_jobs and budget.has_left(NEXT * took_s)):
                break
            ranking, began = left.pop(0), time.monotonic()
            with budget.heuristic(reserve_s=CHECKS * budget.offer_s) as deadline:
                result = construct(
                    context.problem,
                    context.weighted,
                    ranking=ranking,
                    guide=guide,
                    chosen=chosen,
                    deadline=deadline,
                    cancelled=budget.cancelled,
                )
            took_s = time.monotonic() - began
            made.append(ranking)
            offer, lags = _offer(context, result.allocation)
            if lags or isinstance(offer, Refused):
                left.clear()
            if budget.stopped():
                break
        level: LevelName = "cost" if context.value_proven else "value"
        yield StageReport(f"nodes by {', '.join(made)}", level=level, offer=offer)


def _offer(context: SolveContext, allocation: Allocation) -> tuple[Offer | None, bool]:
    """Offer a plan that is worth as much as the best one; tell whether it lags by more than ``LAG``."""
    best, worth = context.incumbent, value(context.problem, allocation)
    if worth >= best.value:
        return best.offer(allocation), False
    return None, best.value - worth > LAG * abs(best.value)
