"""Stage ``search``: large neighbourhoods on rounds of any size, for value and then for cost."""

from __future__ import annotations

import time

from placeopt.heuristics.search import Guide, Search
from placeopt.model.plan import StageOutcome
from placeopt.problem import IntArray
from placeopt.solving.context import LevelName, SolveContext, relative_gap
from placeopt.solving.sizes import SIZES, product
from placeopt.solving.solver_call import Solve
from placeopt.solving.stages.capacity_relaxation import choose_jobs, run_capacity_relaxation
from placeopt.solving.stages.cost_relaxation import prices, run_cost_relaxation
from placeopt.solving.stages.gpu_patterns import suits

STEPS_PER_SECOND = 10
"""Steps in deterministic mode, per second of the time limit: so few that work, not the clock, ends the stage."""
STALL = 400
"""Steps in a row that may come to nothing before the search gives up."""
OFFER_EVERY = 25
"""Steps between two offers of what became better."""
LAG = 0.003
"""Part of the value that a plan made anew may lag behind the best one and still be gone on with."""
FAR = 0.01
"""Gap of value from which on a plan is far from its bound."""
RESERVES = 2.0
"""Time kept back for the last offer and bound, in times of what the last ones took."""


def is_wide(context: SolveContext) -> bool:
    """
    Tell whether the round is so large that a search helps before exact stages.

    Where only value counts, or shares are many, it does so only if the best plan is far from the bound.
    """
    if product(context) <= SIZES.search_product:
        return False
    return is_far(context) or (bool(context.weighted) and not suits(context.problem))


def is_far(context: SolveContext) -> bool:
    """Tell whether the best plan is worth much less than the bound: then what fillings count is not what binds."""
    gap = None if context.incumbent is None else relative_gap(context.incumbent.value, context.value_bound)
    return gap is not None and gap > FAR


def run_search(context: SolveContext, solve: Solve, share: float = 1.0) -> None:
    """
    Bound value and cost, then improve the best plan until the deadline, a stall, or a proof; bound again at its value.

    The search begins with a plan made anew, of the jobs of a roster and as the prices of the bound have it; where that
    is worth less than the best plan it catches up, or gives way to the best plan: at once where it lags by much, else
    after half of the time. A second search of a round begins with the best plan. ``share`` is the part of the time left
    that may be used, for other stages come afterwards; deterministic rounds go by steps.
    """
    if (
        context.incumbent is None
        or context.proven
        or context.within_gap
        or (not context.weighted and context.value_proven)
    ):
        return
    counted = run_capacity_relaxation(context, solve)
    if context.proven or context.within_gap or (not context.weighted and context.value_proven):
        return
    bounding = time.monotonic()
    bounded = run_cost_relaxation(context, solve)
    bounding = time.monotonic() - bounding
    if context.stopped() or context.proven or context.within_gap:
        return
    started, before = time.monotonic(), context.incumbent
    guide = None if bounded is None else bounded.guide
    if guide is not None and not context.value_proven:  # prices of the best value that there may be are better ones
        guide = prices(context, solve, context.value_bound) or guide
    chosen = None if guide is None or counted is None else choose_jobs(context, solve, counted, guide.surplus)
    run = _Run(context, guide, chosen, bounding, share)
    refused = run.run()
    level: LevelName = "cost" if context.value_proven else "value"
    if refused:
        context.record("search", "failed", started, f"{run.detail}; refused by the referee: {refused}", level)
    else:
        outcome: StageOutcome = "kept" if context.incumbent is before else "improved"
        context.record("search", outcome, started, run.detail, level)
    if (
        context.incumbent is not before
        and (bounded is None or context.incumbent.value != bounded.value)
        and not context.stopped()
    ):
        run_cost_relaxation(context, solve)


class _Run:
    """The steps of one search, and what of them is offered."""

    def __init__(
        self, context: SolveContext, guide: Guide | None, chosen: IntArray | None, bounding: float, share: float
    ) -> None:
        self._context, self._bounding = context, bounding
        self._guide, self._chosen = guide, chosen
        self._steps = self._better = 0
        self._seed = len(context.stages)
        limits = context.budget
        self._most = int(STEPS_PER_SECOND * limits.time_limit_s) if limits.deterministic else 10**9
        self._started = time.monotonic()
        self._ends = limits.deadline - (1 - share) * limits.left_s

    @property
    def detail(self) -> str:
        """What was done, in words."""
        return f"{self._steps} steps, {self._better} of them better"

    def run(self) -> str | None:
        """Search; return the referee's complaint if it refused a plan."""
        search = self._begin(fresh=all(stage.name != "search" for stage in self._context.stages))
        self._started = time.monotonic()
        refused = self._offer(search)
        last = offered = 0
        while not refused and self._steps < self._most and self._steps - last < STALL and not self._late():
            if self._lags(search):
                search = self._begin(fresh=False)
            better = search.step()
            self._steps += 1
            self._better += better
            last = self._steps if better else last
            if self._steps - offered >= OFFER_EVERY:
                offered = self._steps
                refused = self._offer(search)
                self._context.report("search")
                if self._context.proven or self._context.within_gap:
                    break
        if self._late():
            self._context.note_limit("time")
        elif self._steps >= self._most:
            self._context.note_limit("work")
        return refused or self._offer(search)

    def _begin(self, *, fresh: bool) -> Search:
        """Start from the best plan; ``fresh``: from a plan made anew, where that is possible."""
        context, best = self._context, self._context.incumbent
        allocation = context.base.allocation() if best is None else best.allocation
        fresh = fresh and not context.problem.changeable
        self._seed += 1
        search = Search(
            context.problem,
            context.base.allocation() if fresh else allocation,
            context.weighted,
            guide=self._guide,
            seed=context.budget.seed + self._seed,
            stop=self._late,
        )
        if fresh:
            search.rebuild(self._chosen)
        return search

    def _lags(self, search: Search) -> bool:
        """Whether the search is worth less than the best plan: by much, or still so when half of the work is done."""
        best, limits = self._context.incumbent, self._context.budget
        if best is None or (search.value, -search.cost) >= (best.value, -best.cost):
            return False
        half = (self._ends - self._started) / 2
        late = self._steps > self._most / 2 if limits.deterministic else time.monotonic() - self._started > half
        return late or best.value - search.value > LAG * abs(best.value)

    def _late(self) -> bool:
        """Whether the last offer, and a bound at its value, could no longer be made in time; asked often."""
        context = self._context
        if context.stopped():
            return True
        return not context.budget.deterministic and self._ends - time.monotonic() < RESERVES * (
            context.offer_s + self._bounding
        )

    def _offer(self, search: Search) -> str | None:
        best = self._context.incumbent
        if best is not None and (search.value, -search.cost) <= (best.value, -best.cost):
            return None
        return self._context.offer(search.allocation)
