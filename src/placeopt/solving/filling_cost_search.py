"""Column generation over fillings of parts of nodes, for the cost of plans of one value, of one round."""

from __future__ import annotations

from dataclasses import replace

from placeopt.errors import OutOfTime, PlaceoptError
from placeopt.formulations.cost_relaxation import build_cost_relaxation
from placeopt.formulations.fillings import COST_RELAXES, Column, CostMix, Prices, Spread, plan_of
from placeopt.readable import plural
from placeopt.solvers.result import Solution
from placeopt.solving.budget import OF_SLICE
from placeopt.solving.context import SolveContext
from placeopt.solving.incumbent import Accepted, Offer
from placeopt.terms.objective import Weighted, last_name_first, raw_costs

MOST_COLUMNS = 1 << 15
"""Spreads and fillings up to which an integer program is tried."""
FEWER = 4
"""Part of the gap that columns are taken for where there are too many of them."""
QUICK_GAP = 1 / 4096
"""Relative gap at which the search for a good plan among known columns ends."""
BEGINNINGS_PER_S = 1 << 20
"""Work of pricing in deterministic mode per second of the time limit, in beginnings of fillings."""
SMOOTHING = 0.5
"""Weight of the prices that proved most, beside those of the linear program (Wentges 1997)."""
NO_PRESOLVE = (("presolve", "off"),)
"""On some ten thousand columns in thirty rows presolve takes HiGHS ten seconds, the search without it one to three."""


class FillingCostSearch:
    """Column generation on some costs of one round."""

    def __init__(self, context: SolveContext, weighted: tuple[Weighted, ...], center: Prices | None = None) -> None:
        """Begin with the fillings of the best plan, and with some prices, which others proved most at."""
        self._context, self.weighted, self._first = context, weighted, center
        self.value = context.incumbent.value
        """What the plans are worth whose cost counts."""
        self._spent, self._ends = 0, context.budget.step_ends()
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
        """Of the latest turn, the last plan that was better than the best one, or the first one."""
        self.is_priced = self.is_closed = False
        """Whether no filling is missing in the program; whether no more can be proven of it in whole numbers."""

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

    def run(self) -> None:
        """
        Generate fillings until none is new, or the program costs no more than is proven.

        Raises ``OutOfTime`` where the step ends.
        """
        budget = self._context.budget
        self._ends = budget.step_ends()
        most = self._spent + budget.steps(BEGINNINGS_PER_S)
        if self.center is None and (price := self._first or self._program(first=True)) is not None:
            self._price(price)
        while not self.is_priced and (price := self._program()) is not None:
            for at in (price,) if self.center is None else (self.center.between(price, SMOOTHING), price):
                if self._price(at):
                    break
            else:
                break
            if self._context.is_closed or self._least >= self._costs:
                break
            if self._spent >= most:
                raise OutOfTime("the work ended before all parts were priced")
        self.is_priced = True

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
        options = replace(budget.whole_options(), relax=True)
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
        self._ends = context.budget.step_ends()
        self._integer(list(mix.program), mix.pool.columns, QUICK_GAP)
        gap = context.incumbent.cost - self._others - self._least
        if gap <= 0 or context.is_closed:
            return
        while (near := mix.near(self.center, self._least + gap, MOST_COLUMNS)) is None and gap:
            gap //= FEWER
            context.budget.note_limit("size")
        if near is None:
            self.is_closed = True
            return
        solution = self._integer(*near, 0.0)
        known = solution.objective if solution.status in ("optimal", "infeasible") else solution.bound or 0
        beyond = self._least + gap + 1  # of any plan with anything else
        self._prove(beyond if known is None else min(beyond, mix.fixed + known))
        self.is_closed = solution.limit not in OF_SLICE

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
        solver = budget.integer_solver
        options = replace(
            budget.step_options(),
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
        left = [w for w, score in zip(context.weighted, raw, strict=True) if w not in self.weighted]
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
        options = replace(context.budget.whole_options(), relax=True)
        solution = context.solvers.solve("highs", relaxation.model, options)
        return max(solution.bound or 0, 0)
