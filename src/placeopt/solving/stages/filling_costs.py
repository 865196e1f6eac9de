"""
Stage ``filling-costs``: column generation over fillings of parts of nodes; proves the cost of plans of a value.

At the proven value it ends with integer programs over all fillings that a better plan can have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.errors import PlaceoptError
from placeopt.formulations.fillings import COUNTED
from placeopt.solving.context import SolveContext
from placeopt.solving.filling_cost_search import FillingCostSearch
from placeopt.solving.stage import StageReport
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.objective import Weighted


@dataclass(frozen=True)
class FillingCosts:
    """Proves the least cost of plans worth as much as the best one or more, or bounds it."""

    name: ClassVar[str] = "filling-costs"
    uses_solver: ClassVar[bool] = True

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
