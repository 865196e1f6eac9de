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


def is_wide(round_: SolveContext) -> bool:
    """
    Tell whether the round is so large that a search helps before exact stages.

    Where only value counts, or shares are many, it does so only if the best plan is far from the bound.
    """
    if product(round_) <= SIZES.search_product:
        return False
    return is_far(round_) or (bool(round_.weighted) and not suits(round_.problem))


def is_far(round_: SolveContext) -> bool:
    """Tell whether the best plan is worth much less than the bound: then what fillings count is not what binds."""
    gap = None if round_.best is None else relative_gap(round_.best.value, round_.value_bound)
    return gap is not None and gap > FAR


def run_search(round_: SolveContext, solve: Solve, share: float = 1.0) -> None:
    """
    Bound value and cost, then improve the best plan until the deadline, a stall, or a proof; bound again at its value.

    The search begins with a plan made anew, of the jobs of a roster and as the prices of the bound have it; where that
    is worth less than the best plan it catches up, or gives way to the best plan: at once where it lags by much, else
    after half of the time. A second search of a round begins with the best plan. ``share`` is the part of the time left
    that may be used, for other stages come afterwards; deterministic rounds go by steps.
    """
    if round_.best is None or round_.proven or round_.within_gap or (not round_.weighted and round_.value_proven):
        return
    counted = run_capacity_relaxation(round_, solve)
    if round_.proven or round_.within_gap or (not round_.weighted and round_.value_proven):
        return
    bounding = time.monotonic()
    bounded = run_cost_relaxation(round_, solve)
    bounding = time.monotonic() - bounding
    if round_.stopped() or round_.proven or round_.within_gap:
        return
    started, before = time.monotonic(), round_.best
    guide = None if bounded is None else bounded.guide
    if guide is not None and not round_.value_proven:  # prices of the best value that there may be are better ones
        guide = prices(round_, solve, round_.value_bound) or guide
    chosen = None if guide is None or counted is None else choose_jobs(round_, solve, counted, guide.surplus)
    run = _Run(round_, guide, chosen, bounding, share)
    refused = run.run()
    level: LevelName = "cost" if round_.value_proven else "value"
    if refused:
        round_.record("search", "failed", started, f"{run.detail}; refused by the referee: {refused}", level)
    else:
        outcome: StageOutcome = "kept" if round_.best is before else "improved"
        round_.record("search", outcome, started, run.detail, level)
    if round_.best is not before and (bounded is None or round_.best.value != bounded.value) and not round_.stopped():
        run_cost_relaxation(round_, solve)


class _Run:
    """The steps of one search, and what of them is offered."""

    def __init__(
        self, round_: SolveContext, guide: Guide | None, chosen: IntArray | None, bounding: float, share: float
    ) -> None:
        self._round, self._bounding = round_, bounding
        self._guide, self._chosen = guide, chosen
        self._steps = self._better = 0
        self._seed = len(round_.stages)
        limits = round_.limits
        self._most = int(STEPS_PER_SECOND * limits.time_limit_s) if limits.deterministic else 10**9
        self._started = time.monotonic()
        self._ends = limits.deadline - (1 - share) * limits.left_s

    @property
    def detail(self) -> str:
        """What was done, in words."""
        return f"{self._steps} steps, {self._better} of them better"

    def run(self) -> str | None:
        """Search; return the referee's complaint if it refused a plan."""
        search = self._begin(fresh=all(stage.name != "search" for stage in self._round.stages))
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
                self._round.report("search")
                if self._round.proven or self._round.within_gap:
                    break
        if self._late():
            self._round.cut("time")
        elif self._steps >= self._most:
            self._round.cut("work")
        return refused or self._offer(search)

    def _begin(self, *, fresh: bool) -> Search:
        """Start from the best plan; ``fresh``: from a plan made anew, where that is possible."""
        round_, best = self._round, self._round.best
        allocation = round_.base.allocation() if best is None else best.allocation
        fresh = fresh and not round_.problem.changeable
        self._seed += 1
        search = Search(
            round_.problem,
            round_.base.allocation() if fresh else allocation,
            round_.weighted,
            guide=self._guide,
            seed=round_.limits.seed + self._seed,
            stop=self._late,
        )
        if fresh:
            search.rebuild(self._chosen)
        return search

    def _lags(self, search: Search) -> bool:
        """Whether the search is worth less than the best plan: by much, or still so when half of the work is done."""
        best, limits = self._round.best, self._round.limits
        if best is None or (search.value, -search.cost) >= (best.value, -best.cost):
            return False
        half = (self._ends - self._started) / 2
        late = self._steps > self._most / 2 if limits.deterministic else time.monotonic() - self._started > half
        return late or best.value - search.value > LAG * abs(best.value)

    def _late(self) -> bool:
        """Whether the last offer, and a bound at its value, could no longer be made in time; asked often."""
        round_ = self._round
        if round_.stopped():
            return True
        return not round_.limits.deterministic and self._ends - time.monotonic() < RESERVES * (
            round_.offer_s + self._bounding
        )

    def _offer(self, search: Search) -> str | None:
        best = self._round.best
        if best is not None and (search.value, -search.cost) <= (best.value, -best.cost):
            return None
        return self._round.offer(search.allocation)
