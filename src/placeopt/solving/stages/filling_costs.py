"""Stage ``filling-costs``: column generation over fillings of parts of nodes; bounds the cost of plans of a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from placeopt.errors import OutOfTime, PlaceoptError
from placeopt.formulations.cost_relaxation import build_cost_relaxation
from placeopt.formulations.fillings import COST_RELAXES, COUNTED, CostMix, CostPrices
from placeopt.readable import plural
from placeopt.solvers.result import Basis
from placeopt.solving.context import SolveContext
from placeopt.solving.stage import StageReport
from placeopt.terms.objective import last_name_first, raw_costs

SHARE = 0.25
"""Part of the time left that the stage may take: a bound makes no plan better."""
CELLS_PER_S = 1 << 23
"""Work of pricing in deterministic mode per second of the time limit, in numbers of its tables."""
SIMPLEX_WORK = 2.0
"""Work of one linear program in deterministic mode."""
SMOOTHING = 0.5
"""Weight of the prices that proved most, beside those of the linear program (Wentges 1997)."""


@dataclass(frozen=True)
class FillingCostBound:
    """Bounds the cost of every plan that is worth as much as the best one or more."""

    name: ClassVar[str] = "filling-costs"
    uses_solver: ClassVar[bool] = True

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where costs are open, once for plans of the same value, and where running jobs stay as they are."""
        if reason := context.budget.stop_reason():
            return reason
        if not context.weighted or context.is_closed:
            return "no cost counts, or the round is proven, or within the gap"
        if context.handover.filling_cost_value == context.incumbent.value:
            return "the bound is at the value of the best plan"
        if context.problem.changeable:
            return "running jobs may be changed, which fillings do not support"
        return None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Generate fillings while they make the program cheaper; add what other costs are at least."""
        before = context.bounds.cost
        context.handover.filling_cost_value = context.incumbent.value
        try:
            search = _Search(context)
            with context.budget.until_out_of_time():
                search.run()
        except PlaceoptError as error:
            context.budget.note_error(error)
            yield StageReport(str(error), "skipped", level="cost")
            return
        yield StageReport(search.detail, proved=context.bounds.cost != before, level="cost")


class _Search:
    """Column generation on the cost of one round."""

    def __init__(self, context: SolveContext) -> None:
        self._context, self._ends = context, context.budget.until(SHARE)
        self._cells, self._most_cells = 0, context.budget.steps(CELLS_PER_S)
        self._mix = CostMix(
            context.relaxed,
            context.weighted,
            context.incumbent.allocation,
            context.handover.capacity_cut,
            self._spend,
        )
        self._basis: Basis | None = None
        self._programs, self._costs = 0, context.incumbent.cost

    @property
    def detail(self) -> str:
        """What was done, in words."""
        return (
            f"{plural(len(self._mix.pool), 'filling')} of {plural(len(self._mix.parts), 'state')} of parts, "
            f"{plural(self._programs, 'linear program')}; mix costs {self._costs}"
        )

    def _spend(self, cells: int) -> None:
        self._cells += cells
        budget = self._context.budget
        if budget.stopped() or budget.is_past(self._ends):
            raise OutOfTime("the time limit came before all parts were priced")

    def run(self) -> None:
        """Generate fillings until none is new, or the program costs no more than is proven."""
        others = self._others()
        center = self._program(first=True)
        best = 0
        if center is not None:
            best, _ = self._price(center, others)
        while (price := self._program()) is not None:
            for at in (price,) if center is None else (center.between(price, SMOOTHING), price):
                bound, new = self._price(at, others)
                if center is None or bound > best:
                    center, best = at, bound
                if new:
                    break
            else:
                return
            if self._context.is_closed or best >= self._costs:
                return
            if self._cells >= self._most_cells:
                self._context.budget.note_limit("work")
                return

    def _price(self, prices: CostPrices, others: int) -> tuple[int, int]:
        """Take in the fillings and the bound that prices give; ``others``: the least that other costs add."""
        bound, new = self._mix.price(prices)
        self._context.bounds.prove_cost(max(bound + others, 0), (*COST_RELAXES, *self._left_out))
        return bound, new

    def _program(self, *, first: bool = False) -> CostPrices | None:
        """
        Solve the linear program over the known fillings, or, ``first``, over pieces apart.

        Returns its prices; None where there are none.
        """
        budget, master = self._context.budget, self._mix.master
        model = master.spread_model(budget.deadline) if first else master.model(budget.deadline)
        options = replace(budget.options(SIMPLEX_WORK), relax=True, start=self._basis, keep_basis=True)
        solution = self._context.solvers.solve("highs", model, options)
        if solution.status != "optimal" or solution.duals is None or solution.bound is None:
            return None
        self._programs += 1
        if not first:
            self._basis, self._costs = solution.basis, self._mix.fixed + solution.bound
        return master.prices(model, solution.duals)

    def _others(self) -> int:
        """Return a lower bound of the costs that no filling is charged for, by the relaxation of these alone."""
        context = self._context
        raw = raw_costs(context.problem, context.incumbent.allocation, context.weighted)
        left = [w for w, score in zip(context.weighted, raw, strict=True) if not isinstance(w.cost, COUNTED)]
        self._left_out = tuple(f"the cost {w.cost.name!r}" for w in last_name_first(left))
        if not any(score for w, score in zip(context.weighted, raw, strict=True) if w in left):
            return 0  # nor can they be bounded by more
        try:
            relaxation = build_cost_relaxation(
                context.relaxed,
                tuple(left),
                context.incumbent.value,
                context.budget.deadline,
                cut=context.handover.capacity_cut,
                most_busy=context.handover.most_busy,
            )
        except PlaceoptError as error:
            context.budget.note_error(error)
            return 0
        options = replace(context.budget.options(SIMPLEX_WORK), relax=True)
        solution = context.solvers.solve("highs", relaxation.model, options)
        return max(solution.bound or 0, 0)
