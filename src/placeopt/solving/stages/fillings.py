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
        if self.beside_patterns and has_many_fractions(context.problem):
            return "patterns of single GPUs bound rounds of many fractions"
        if context.value_proven:
            return "the value is proven already"
        if context.has_finished(self.name):
            return "fillings do not support the round"
        search = context.handover.fillings
        if search is not None and search.is_done and not search.has_more_than(context.incumbent.value):
            return "prices prove no less"
        if context.problem.changeable:
            return StatedReason("running jobs may be changed, which fillings do not support")
        return None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Generate fillings, prove, and mix them in whole numbers where that may be worth more than the incumbent."""
        budget, handover, bound, offer = context.budget, context.handover, context.bounds.value, None
        try:
            search = handover.fillings = handover.fillings or FillingSearch(context)
            for close in (CLOSE, 0.0):
                with budget.until_out_of_time():
                    search.generate(close)
                if not context.value_proven and search.has_more_than(context.incumbent.value):
                    offer = _offer(context, search)
            search.keep_prices()
            with budget.until_out_of_time():
                search.bound_busy()
            detail = search.summary()
        except PlaceoptError as error:
            if not budget.note_error(error):
                context.finish(self.name)
            yield StageReport(str(error), "skipped")
            return
        yield StageReport(detail, proved=context.bounds.value < bound, offer=offer)


def _offer(context: SolveContext, search: FillingSearch) -> Offer:
    """Offer the mix in whole numbers, filled up by greedy."""
    budget = context.budget
    jobs = search.whole()
    with budget.heuristic() as deadline:
        start = assign_gpus(context.problem, jobs, stop_at(deadline, budget.cancelled))
        filled = context.greedy.fill_up(context.problem, budget, start, deadline)
    return context.incumbent.offer(filled)
