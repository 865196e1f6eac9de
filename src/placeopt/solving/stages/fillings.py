"""
Stages ``fillings`` and ``filling-costs``: column generation over fillings, which bounds and makes plans of its mix.

For the value whole nodes are filled, for the cost of plans of a value parts of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.errors import PlaceoptError
from placeopt.formulations.fillings import COUNTED
from placeopt.heuristics import assign_gpus
from placeopt.heuristics.greedy_pass import stop_at
from placeopt.solving.context import SolveContext
from placeopt.solving.filling_cost_search import FillingCostSearch
from placeopt.solving.filling_search import FillingSearch
from placeopt.solving.greedy_rule import has_many_fractions
from placeopt.solving.incumbent import Offer
from placeopt.solving.stage import StageReport, StatedReason
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.objective import Weighted

CLOSE = 1 / 8192
"""The mix is good enough for a plan when prices bound the value within this part of it."""


@dataclass(frozen=True)
class Fillings:
    """Proves a bound on value by prices of fillings, and offers the plan that a mix of fillings gives."""

    name: ClassVar[str] = "fillings"
    uses_solver: ClassVar[bool] = True
    resumes: ClassVar[bool] = True
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
                known = len(search.pool)
                with budget.until_out_of_time():
                    search.generate(close)
                is_new = close == CLOSE or len(search.pool) > known
                if is_new and not context.value_proven and search.has_more_than(context.incumbent.value):
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


@dataclass(frozen=True)
class FillingCosts:
    """Proves the least cost of plans worth as much as the best one or more, or bounds it."""

    name: ClassVar[str] = "filling-costs"
    uses_solver: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where costs are open, and where running jobs stay as they are."""
        if not context.weighted:
            return "no cost counts"
        if context.has_finished(self.name, _begins_with(context)):
            return "more work proves no more"
        if context.problem.changeable:
            return "running jobs may be changed, which fillings do not support"
        return None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Generate fillings while they make the program cheaper; then look for plans among them, and close the gap."""
        before = context.bounds.cost
        context.bounds.prove_cost(0)  # no term is ever negative
        if context.proven:
            return
        begins_with, budget = _begins_with(context), context.budget
        try:
            search = _search(context)
            with budget.until_out_of_time():
                search.run()
                if context.value_proven and search.weighted != _counted(context):
                    search = context.handover.filling_costs = FillingCostSearch(
                        context, _counted(context), search.center
                    )
                    search.run()
                if context.value_proven:
                    search.close()
        except PlaceoptError as error:
            if not budget.note_error(error):
                context.finish(self.name, begins_with)
            yield StageReport(str(error), "skipped", level="cost")
            return
        if search.is_priced and (search.is_closed or not context.value_proven):
            context.finish(self.name, begins_with)
        yield StageReport(search.detail, proved=context.bounds.cost != before, offer=search.offer, level="cost")


def _begins_with(context: SolveContext) -> tuple[int, int | None]:
    """Return what the work depends on: the value of the best plan, and its cost where plans come of it."""
    best = context.incumbent
    return best.value, best.cost if context.value_proven else None


def _counted(context: SolveContext) -> tuple[Weighted, ...]:
    return tuple(w for w in context.weighted if isinstance(w.cost, COUNTED))


def _search(context: SolveContext) -> FillingCostSearch:
    """
    Return the search that goes on, or a new one where the best plan is worth more.

    GPUs left free are not counted first, whatever they cost: such fillings take five times as long to price. At the
    proven value, where plans come of it, they are counted then, from the prices on that were found.
    """
    known, counted = context.handover.filling_costs, _counted(context)
    if known is None or known.value != context.incumbent.value:
        quick = tuple(w for w in counted if not isinstance(w.cost, Fragmentation)) or counted
        center = None if known is None or known.weighted != quick else known.center
        known = context.handover.filling_costs = FillingCostSearch(context, quick, center)
    known.offer = None
    return known
