"""Stage ``annealing``: local search on exact differences, from the best plan until its time or work ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.search import LocalSearch, is_compiled, what_is_missing
from placeopt.solving.context import SolveContext
from placeopt.solving.stage import StageReport, StatedReason

CALL_S = 0.01
"""Seconds that a call is to take: compiled, nothing interrupts it. It takes at most twice as long as the one before."""
STEPS_PER_SECOND = 5_000
"""Steps in deterministic mode, per second of the time limit; compiled, they take a part of it."""
STEPS_PER_CALL = 20
"""Steps of a call in deterministic mode: so few that uncompiled, too, it ends soon after a cancel."""
RESERVES = 2.0
"""Time reserved for the offer at the end, in multiples of what the last one took."""


@dataclass(frozen=True)
class Annealing:
    """Improves the best plan: its value first, then its cost, by the moves of `placeopt.search`."""

    name: ClassVar[str] = "annealing"
    uses_solver: ClassVar[bool] = False
    share: float = 1.0
    """Part of the time left that it may take."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only while anything is open, in rounds that the search handles."""
        if reason := context.budget.stop_reason():
            return reason
        if context.is_closed:
            return "the round is proven, or within the gap"
        missing = what_is_missing(context.problem, context.weighted)
        return StatedReason(f"the local search does not handle {missing}") if missing else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Search until time or work ends it, and offer what is better."""
        incumbent, budget = context.incumbent, context.budget
        search = LocalSearch(context.problem, incumbent.allocation, context.weighted, seed=context.draw_seed())
        first = search.value, search.cost
        with budget.heuristic(self.share, reserve_s=RESERVES * budget.offer_s) as ends:
            if budget.params.deterministic:
                _take(context, search, budget.steps(STEPS_PER_SECOND))
            else:
                _search_until(context, search, ends)
        offer = incumbent.offer(search.allocation()) if (search.value, search.cost) != first else None
        how = "compiled" if is_compiled() else "not compiled"
        detail = f"{search.steps} steps, {how}"
        yield StageReport(detail, level="cost" if context.value_proven else "value", offer=offer)


def _take(context: SolveContext, search: LocalSearch, most: int) -> None:
    """Take ``most`` steps, unless nothing can be better."""
    while search.steps < most and not _is_best(context, search) and not context.budget.stopped():
        search.advance(min(STEPS_PER_CALL, most - search.steps), search.steps / most, most)
    context.budget.note_limit("work" if search.steps >= most else "none")


def _search_until(context: SolveContext, search: LocalSearch, ends: float) -> None:
    """Take steps until the clock ends them, or nothing can be better."""
    started = now = time.monotonic()
    steps = 1
    while now < ends and not _is_best(context, search) and not context.budget.stopped():
        rate = search.steps / (now - started) if search.steps else 0.0
        search.advance(steps, (now - started) / (ends - started), rate * (ends - started))
        before, now = now, time.monotonic()
        steps = max(1, int(steps * min(2.0, CALL_S / max(now - before, CALL_S / 2))))


def _is_best(context: SolveContext, search: LocalSearch) -> bool:
    """Return whether the search met the bounds of value and cost."""
    bounds, beside = context.bounds, context.incumbent.value - search.started_at
    if search.value + beside < bounds.value:
        return False
    return not context.weighted or (bounds.cost is not None and search.cost <= bounds.cost)
