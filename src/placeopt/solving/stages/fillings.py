"""Stage ``fillings``: column generation over fillings of whole nodes; bounds the value, and makes a plan of a mix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.errors import PlaceoptError
from placeopt.heuristics import assign_gpus
from placeopt.heuristics.greedy_pass import stop_at
from placeopt.solving.context import SolveContext
from placeopt.solving.filling_search import FillingSearch
from placeopt.solving.greedy_rule import has_many_fractions
from placeopt.solving.incumbent import Offer
from placeopt.solving.stage import StageReport, StatedReason

GENERATE_SHARE, WHOLE_SHARE = 0.5, 0.5
"""Part of the time left that fillings may be generated for, and then that the mix in whole numbers may take."""
CLOSE = 1e-4
"""The mix is good enough for a plan when prices bound the value within this part of it."""


@dataclass(frozen=True)
class Fillings:
    """Proves a bound on value by prices of fillings, and offers the plan that a mix of fillings gives."""

    name: ClassVar[str] = "fillings"
    uses_solver: ClassVar[bool] = True
    beside_patterns: bool = False
    """Whether patterns of single GPUs come before, which bound rounds of many fractions."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only while the value is open, and where running jobs stay as they are."""
        if reason := context.budget.stop_reason():
            return reason
        if self.beside_patterns and has_many_fractions(context.problem):
            return "patterns of single GPUs bound rounds of many fractions"
        if context.value_proven:
            return StatedReason("the value is proven already")
        if context.is_closed:
            return "the value is within the gap"
        if context.problem.changeable:
            return StatedReason("running jobs may be changed, which fillings do not support")
        return None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Generate fillings, prove, and mix them in whole numbers where that may be worth more than the incumbent."""
        bound, offer = context.bounds.value, None
        try:
            search, mixed = FillingSearch(context), 0
            for close in (CLOSE, 0.0):
                with context.budget.until_out_of_time():
                    search.generate(context.budget.until(GENERATE_SHARE), close)
                is_open = not context.value_proven and search.mixed > context.incumbent.value
                if is_open and len(search.pool) > mixed:
                    offer, mixed = _offer(context, search), len(search.pool)
            search.keep_prices()
            with context.budget.until_out_of_time():
                search.bound_busy()
            detail = search.summary()
        except PlaceoptError as error:
            context.budget.note_error(error)
            yield StageReport(str(error), "skipped")
            return
        yield StageReport(detail, proved=context.bounds.value < bound, offer=offer)


def _offer(context: SolveContext, search: FillingSearch) -> Offer:
    """Offer the mix in whole numbers, filled up by greedy."""
    budget = context.budget
    jobs = search.whole(WHOLE_SHARE * budget.left_s)
    with budget.heuristic() as deadline:
        start = assign_gpus(context.problem, jobs, stop_at(deadline, budget.cancelled))
        filled = context.greedy.fill_up(context.problem, budget, start, deadline)
    return context.incumbent.offer(filled)
