"""
Stage ``filling-costs``: column generation over fillings of parts of nodes; proves the cost of plans of a value.

At the proven value it ends with integer programs over all fillings that a better plan can have.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from placeopt.errors import OutOfTime, PlaceoptError
from placeopt.formulations.cost_relaxation import build_cost_relaxation
from placeopt.formulations.fillings import COST_RELAXES, COUNTED, Column, CostMix, Prices, Spread, plan_of
from placeopt.readable import plural
from placeopt.solvers.result import Solution
from placeopt.solving.context import SolveContext
from placeopt.solving.incumbent import Accepted, Offer
from placeopt.solving.stage import StageReport
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.objective import Weighted, last_name_first, raw_costs

SHARE, PROVEN_SHARE = 0.25, 0.35
"""Part of the time left that fillings may be generated for: for the bound, and then where plans come of it, too."""
CLOSE_SHARE = 0.5
"""Part of the time left then that integer programs may take."""
MOST_COLUMNS = 40_000
"""Spreads and fillings up to which an integer program is tried."""
FEWER = 4
"""Part of the gap that columns are taken for where there are too many of them."""
QUICK_GAP = 3e-4
"""Relative gap at which the search for a good plan among known columns ends."""
BEGINNINGS_PER_S = 1 << 20
"""Work of pricing in deterministic mode per second of the time limit, in beginnings of fillings."""
SIMPLEX_WORK, INTEGER_WORK = 2.0, 1.0
"""Work of one linear program in deterministic mode, and of an integer program per second of the time limit."""
SMOOTHING = 0.5
"""Weight of the prices that proved most, beside those of the linear program (Wentges 1997)."""
NO_PRESOLVE = (("presolve", "off"),)
"""On some ten thousand columns in thirty rows presolve takes HiGHS ten seconds, the search without it one to three."""


@dataclass(frozen=True)
class FillingCosts:
    """Proves the least cost of plans worth as much as the best one or more, or bounds it."""

    name: ClassVar[str] = "filling-costs"
    uses_solver: ClassVar[bool] = True

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where costs are open, once for plans of the same value, and where running jobs stay as they are."""
        if reason := context.budget.stop_reason():
            return reason
        if not context.weighted or context.is_closed:
            return "no cost counts, or the round is proven, or within the gap"
        if context.handover.filling_cost_value == (context.incumbent.value, context.value_proven):
            return "the bound is at the value of the best plan"
        if context.problem.changeable:
            return "running jobs may be changed, which fillings do not support"
        return None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Generate fillings while they make the program cheaper; then look for plans among them, and close the gap."""
        before = context.bounds.cost
        context.bounds.prove_cost(0)  # no term is ever negative
        if context.proven:
            return
        last = context.incumbent.value, context.value_proven
        try:
            search = _searched(context)
            if context.value_proven:
                with context.budget.until_out_of_time():
                    search.close()
        except PlaceoptError as error:
            context.budget.note_error(error)
            yield StageReport(str(error), "skipped", level="cost")
            return
        if search.is_done or not context.budget.params.deterministic:  # more work may do more
            context.handover.filling_cost_value = last
        yield StageReport(search.detail, proved=context.bounds.cost != before, offer=search.offer, level="cost")


def _searched(context: SolveContext) -> _Search:
    """
    Generate fillings, without GPUs left free first, whatever they cost: these take five times as long to price.

    At the proven value, where plans come of it, they are counted then, from the prices on that were found.
    """
    weighted = tuple(w for w in context.weighted if isinstance(w.cost, COUNTED))
    quick = tuple(w for w in weighted if not isinstance(w.cost, Fragmentation))
    search: _Search | None = None
    if quick:
        search = _Search(context, quick, SHARE)
        with context.budget.until_out_of_time():
            search.run(None)
    if search is None or (quick != weighted and context.value_proven and not context.is_closed):
        center = None if search is None else search.center
        search = _Search(context, weighted, PROVEN_SHARE)
        with context.budget.until_out_of_time():
            search.run(center)
    return search


class _Search:
    """Column generation on some costs of one round."""

    def __init__(self, context: SolveContext, weighted: tuple[Weighted, ...], share: float) -> None:
        self._context, self._ends, self._weighted = context, context.budget.until(share), weighted
        self._spent, self._most = 0, context.budget.steps(BEGINNINGS_PER_S)
        self._mix = CostMix(
            context.relaxed,
            weighted,
            context.incumbent.allocation,
            context.handover.capacity_cut,
            self._spend,
        )
        self._programs = self._integers = 0
        self._costs, self._least = context.incumbent.cost, 0
        self.center: Prices | None = None
        """The prices that proved most."""
        self._others = self._bound_others()
        self.offer: Offer | None = None
        """The last plan that was better than the best one, or the first one."""
        self.is_done = False
        """Whether more work would do no more."""

    @property
    def detail(self) -> str:
        """What was done, in words."""
        mix = self._mix
        counts = (
            (len(mix.program), "spread"),
            (len(mix.pool), "filling"),
            (self._programs, "linear program"),
            (self._integers, "integer program"),
        )
        return ", ".join(plural(count, noun) for count, noun in counts) + f"; mix costs {self._costs}"

    def _spend(self, beginnings: int) -> None:
        self._spent += beginnings
        budget = self._context.budget
        if budget.stopped() or budget.is_past(self._ends):
            raise OutOfTime("the time limit came before all parts were priced")

    def run(self, center: Prices | None) -> None:
        """Generate fillings, from some prices on, until none is new, or the program costs no more than is proven."""
        if (price := center or self._program(first=True)) is not None:
            self._price(price)
        while (price := self._program()) is not None:
            for at in (price,) if self.center is None else (self.center.between(price, SMOOTHING), price):
                if self._price(at):
                    break
            else:
                break
            if self._context.is_closed or self._least >= self._costs:
                break
            if self._spent >= self._most:
                self._context.budget.note_limit("work")
                return
        self.is_done = not self._context.value_proven

    def _price(self, prices: Prices) -> int:
        """Take in the fillings and the bound that prices give; return how many are new."""
        bound, new = self._mix.price(prices)
        self._prove(bound)
        if self.center is None or bound > self._least:
            self.center, self._least = prices, bound
        return new

    def _prove(self, bound: int) -> None:
        self._context.bounds.prove_cost(max(bound + self._others, 0), (*COST_RELAXES, *self._left_out))

    def _program(self, *, first: bool = False) -> Prices | None:
        """
        Solve the linear program over what is known, or, ``first``, over single bundles.

        Returns its prices; None where there are none.
        """
        budget, mix = self._context.budget, self._mix
        model = mix.apart(budget.deadline) if first else mix.model(budget.deadline)
        options = replace(budget.options(SIMPLEX_WORK), relax=True)
        solution = self._context.solvers.solve("highs", model, options)
        if solution.status != "optimal" or solution.duals is None or solution.bound is None:
            return None
        self._programs += 1
        if not first:
            self._costs = mix.fixed + solution.bound
        return mix.master.cost_prices(model, solution.duals)

    def close(self) -> None:
        """
        Prove the cost of the best plan, after better ones were looked for.

        A program over what is known looks for a good plan. Then one over all that a plan can have which costs no more
        than the best one or, where that is too much, which costs less beyond what is proven: any other costs more.
        """
        context, mix = self._context, self._mix
        if self.center is None or context.is_closed:
            return
        self._ends = context.budget.until(CLOSE_SHARE)
        self._integer(list(mix.program), mix.pool.columns, QUICK_GAP)
        gap = context.incumbent.cost - self._others - self._least
        if gap <= 0 or context.is_closed:
            return
        while (near := mix.near(self.center, self._least + gap, MOST_COLUMNS)) is None and gap:
            gap //= FEWER
            context.budget.note_limit("size")
        if near is None:
            return
        solution = self._integer(*near, 0.0)
        known = solution.objective if solution.status in ("optimal", "infeasible") else solution.bound or 0
        beyond = self._least + gap + 1  # of any plan with anything else
        self._prove(beyond if known is None else min(beyond, mix.fixed + known))
        self.is_done = solution.status in ("optimal", "infeasible")

    def _integer(self, spreads: list[Spread], fillings: list[Column], gap: float) -> Solution:
        """Solve an integer program, with the best plan as a hint, and offer the plan that it finds."""
        context, budget, mix = self._context, self._context.budget, self._mix
        own_spreads, own_fillings = mix.held(context.incumbent.allocation)
        spreads, fillings = (
            list(dict.fromkeys([*spreads, *own_spreads])),
            list(dict.fromkeys([*fillings, *own_fillings])),
        )
        model = mix.program_of(spreads, fillings, budget.deadline)
        hint = mix.values(context.incumbent.allocation, spreads, fillings)
        seconds, solver = max(self._ends - time.monotonic(), 0.0), budget.integer_solver
        options = replace(
            budget.options(INTEGER_WORK * budget.work_s, seconds if gap == 0 else seconds / 2),
            threads=budget.threads,
            gap=gap,
            hint=hint if model.is_feasible(hint) else None,
            extra=NO_PRESOLVE if solver == "highs" else (),
        )
        solution = context.solvers.solve(solver, model, options)
        self._integers += 1
        if solution.values is not None:
            offer = context.incumbent.offer(plan_of(context.base, mix, spreads, fillings, solution.values))
            if self.offer is None or isinstance(offer, Accepted):
                self.offer = offer
        return solution

    def _bound_others(self) -> int:
        """Return a lower bound of the costs that no filling is charged for, by the relaxation of these alone."""
        context = self._context
        raw = raw_costs(context.problem, context.incumbent.allocation, context.weighted)
        left = [w for w, score in zip(context.weighted, raw, strict=True) if w not in self._weighted]
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
