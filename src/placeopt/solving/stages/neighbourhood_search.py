"""Stage ``neighbourhood-search``: large neighbourhoods on rounds of any size, for value and then for cost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.heuristics.search import Guide, LargeNeighbourhoodSearch
from placeopt.problem import Allocation
from placeopt.search import what_is_missing
from placeopt.solving import sizes
from placeopt.solving.budget import OFFER_SHARE, SHARE_BEFORE_EXACT, UNLIMITED_STEPS
from placeopt.solving.context import SolveContext
from placeopt.solving.greedy_rule import has_many_fractions
from placeopt.solving.incumbent import Offer, Refused
from placeopt.solving.stage import StageReport
from placeopt.solving.stages.cost_relaxation import guide_of_best_value

STEPS_PER_SECOND = 10
"""Steps in deterministic mode, per second of the time limit: so few that work, not the clock, ends the stage."""
SMALL_PRODUCT = 2_000
"""Waiting jobs x GPUs up to which an exact stage comes before the search: it proves such rounds sooner."""
STALL = 400
"""Steps in a row without a better plan before a search gives way to the stages after it."""
OFFER_EVERY = 25
"""Steps between two offers of better plans."""


@dataclass(frozen=True)
class BeforeExact:
    """
    The condition of a search before an exact stage of ``formulation``: the round is too large for that, or wide.

    It is wide from a size on from which the search helps before exact stages: where only value counts, or shares are
    many and the value is not proven yet, only if the best plan is far from the bound.
    """

    formulation: str

    def __call__(self, context: SolveContext) -> str | None:
        """Return why exact stages come first, None if the search does."""
        if reason := context.budget.stop_reason():
            return reason
        if not sizes.may_be_built(context, self.formulation):
            return None
        if sizes.product(context) <= SMALL_PRODUCT:
            return "the round is small enough for an exact stage"
        costs_bind = bool(context.weighted) and (context.value_proven or not has_many_fractions(context.problem))
        return None if costs_bind or context.is_far else "the best plan is near the bound"


@dataclass(frozen=True)
class NeighbourhoodSearch:
    """
    Improves the best plan until the deadline or a proof; before an exact stage, and in deterministic mode, or a stall.

    The search begins with the best plan, or with one that stage ``rounding`` left because it is worth a little less:
    that catches up, or gives way to the best plan after half of the time.
    """

    name: ClassVar[str] = "neighbourhood-search"
    uses_solver: ClassVar[bool] = True
    before_exact: str | None = None
    """Formulation of an exact stage that follows, for which time is left where its model is built."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only while anything is open, in rounds that stage ``annealing`` does not handle."""
        if reason := context.budget.stop_reason():
            return reason
        if context.is_closed:
            return "the round is proven, or within the gap"
        return None if what_is_missing(context.problem, context.weighted) else "stage annealing searches this round"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Take the prices of the best value that there may be, and search."""
        guide = guide_of_best_value(context)
        few = self.before_exact is not None and sizes.may_be_built(context, self.before_exact)
        stall = STALL if self.before_exact is not None or context.budget.params.deterministic else UNLIMITED_STEPS
        search = _Run(context, guide, SHARE_BEFORE_EXACT if few else 1.0, stall)
        offer = search.run()
        yield StageReport(search.detail, level="cost" if context.value_proven else "value", offer=offer)


class _Run:
    """The steps of one search, and what of them is offered."""

    def __init__(self, context: SolveContext, guide: Guide | None, share: float, stall: int) -> None:
        """``share`` is the part of the time left that may be used; ``stall`` the steps in vain that end it."""
        budget = context.budget
        self._context, self._budget = context, budget
        self._guide = guide
        self._steps = self._better = 0
        self._seed = context.draw_seed()
        self._stall, self._most = stall, budget.steps(STEPS_PER_SECOND)
        self._started = time.monotonic()
        self._ends = budget.deadline - (1 - share) * budget.left_s

    @property
    def detail(self) -> str:
        """What was done, in words."""
        return f"{self._steps} steps, {self._better} of them better"

    def run(self) -> Offer | None:
        """Search; return what came of the last offer."""
        rounded, self._context.handover.rounded = self._context.handover.rounded, None
        search = self._begin(rounded)
        offer: Offer | None = None
        last = offered = 0
        since = time.monotonic()
        while not self._is_over(offer) and self._steps - last < self._stall:
            if self._lags(search):
                search = self._begin(None)
            better = search.step()
            self._steps += 1
            self._better += better
            last = self._steps if better else last
            pause_s = self._budget.offer_s / OFFER_SHARE
            if self._steps - offered >= OFFER_EVERY and self._budget.has_passed(since, pause_s):
                offered = self._steps
                offer = self._offer(search)
                since = time.monotonic()
                self._context.report("neighbourhood-search")
                if self._context.is_closed:
                    break
        if self._is_late():
            self._budget.note_limit("time")
        elif self._steps >= self._most:
            self._budget.note_limit("work")
        return offer if isinstance(offer, Refused) else self._offer(search)

    def _is_over(self, offer: Offer | None) -> bool:
        return isinstance(offer, Refused) or self._steps >= self._most or self._is_late()

    def _begin(self, plan: Allocation | None) -> LargeNeighbourhoodSearch:
        """Start from ``plan``; None for the best one."""
        context = self._context
        self._seed += 1
        return LargeNeighbourhoodSearch(
            context.problem,
            context.incumbent.allocation if plan is None else plan,
            context.weighted,
            guide=self._guide,
            seed=self._seed,
            stop=self._is_late,
        )

    def _lags(self, search: LargeNeighbourhoodSearch) -> bool:
        """Tell whether the search is still worth less than the best plan after half of the work."""
        best = self._context.incumbent
        if (search.value, -search.cost) >= (best.value, -best.cost):
            return False
        return self._budget.is_half_used(self._steps, self._most, self._started, self._ends)

    def _is_late(self) -> bool:
        """Tell whether the last offer, and a bound at its value, could no longer be made in time; called often."""
        return self._budget.stopped() or self._budget.is_past(self._ends - self._context.end_s)

    def _offer(self, search: LargeNeighbourhoodSearch) -> Offer | None:
        """Offer what is better; None where it is not."""
        incumbent = self._context.incumbent
        return incumbent.offer(search.allocation) if incumbent.is_better(search.value, search.cost) else None
