"""Stage ``node-patterns``: patterns of whole nodes by column generation, mixed by linear programs, made into a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.errors import OutOfTime, PlaceoptError
from placeopt.heuristics import assign_gpus
from placeopt.heuristics.greedy_pass import stop_at
from placeopt.heuristics.swaps import gathered
from placeopt.solving import sizes
from placeopt.solving.context import SolveContext
from placeopt.solving.incumbent import Offer
from placeopt.solving.pattern_search import PatternSearch
from placeopt.solving.stage import StageReport, StatedReason
from placeopt.terms.costs.communication import Communication
from placeopt.terms.objective import weight_of

SMALL_PRODUCT = 20_000
"""Waiting jobs x GPUs below which an exact stage comes first: it proves such rounds sooner."""
COST_BOUND = 2.0
"""Time left for the relaxation of the cost, in the same multiples: it takes 0.7 to 1.5 of a check at 10,000 jobs."""
GATHER_SHARE = 0.3
"""Part of the time left in which the bundles of gangs are brought closer together."""


@dataclass(frozen=True)
class NodePatterns:
    """Proves a bound on value by prices of patterns, and offers the plan that a mix of patterns gives."""

    name: ClassVar[str] = "node-patterns"
    uses_solver: ClassVar[bool] = True
    before_exact: bool = False
    """Whether an exact stage follows, which proves small rounds sooner."""
    before_cost: bool = False
    """Whether the relaxation of the cost follows, for which time is left where costs count."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only while the value is open, and where running jobs stay as they are."""
        if reason := context.budget.stop_reason():
            return reason
        if self.before_exact and sizes.product(context) < SMALL_PRODUCT:
            return "the round is small enough for an exact stage"
        if context.value_proven:
            return StatedReason("the value is proven already")
        if context.problem.changeable:
            return StatedReason("running jobs may be changed, which node patterns do not support")
        return None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Mix patterns, prove, and round the mix where it is worth more than the incumbent."""
        bound, search, offer = context.bounds.value, None, None
        try:
            search = PatternSearch(context, COST_BOUND if self.before_cost and context.weighted else 0.0)
            search.mix()
            search.prove()
            if search.mixed > context.incumbent.value:
                search.dive()
                offer = _offer(context, search)
            search.prove(finely=True)
            detail = search.summary()
        except PlaceoptError as error:
            context.budget.note_error(error)
            detail = str(error)
            if search is None or not isinstance(error, OutOfTime):
                yield StageReport(detail, "skipped")
                return
        yield StageReport(detail, proved=context.bounds.value < bound, offer=offer)


def _offer(context: SolveContext, search: PatternSearch) -> Offer:
    """Offer the mix, rounded down and filled up by greedy."""
    jobs = ((request.job, request.option, request.nodes) for request in search.placement_requests())
    budget = context.budget
    with budget.heuristic(reserve_s=search.check_s) as deadline:
        start = assign_gpus(context.problem, jobs, stop_at(deadline, budget.cancelled))
        filled = context.greedy.fill_up(context.problem, budget, start, deadline)
        if weight_of(context.weighted, Communication):
            with budget.heuristic(GATHER_SHARE, reserve_s=search.check_s) as ends:
                filled = gathered(context.problem, filled, context.weighted, stop_at(ends, budget.cancelled))
    return context.incumbent.offer(filled)
