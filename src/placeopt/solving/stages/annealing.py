"""Stage ``annealing``: local search on exact differences, from the best plan until its time or work ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from placeopt.search import LocalSearch, is_compiled, what_is_missing
from placeopt.solving import sizes
from placeopt.solving.budget import OFFER_SHARE, SHARE_BEFORE_EXACT
from placeopt.solving.context import SolveContext
from placeopt.solving.incumbent import Offer, Refused
from placeopt.solving.stage import StageReport, StatedReason

CALL_S = 0.01
"""Seconds that a call is to take: compiled, nothing interrupts it. It takes at most twice as long as the one before."""
STEPS_PER_SECOND = 5_000
"""Steps in deterministic mode, per second of the time limit; compiled, they take a part of it."""
JUDGED_STEPS_PER_SECOND = 500
"""The same where every placement is judged by rules that the search has no differences of: some 1,000 a second."""
STEPS_PER_CALL = 20
"""Steps of a call in deterministic mode: so few that uncompiled, too, it ends soon after a cancel."""
OFFER_EVERY = 1_000
"""Steps between two offers of better plans."""


@dataclass(frozen=True)
class Annealing:
    """Improves the best plan: its value first, then its cost, by the moves of `placeopt.search`."""

    name: ClassVar[str] = "annealing"
    uses_solver: ClassVar[bool] = False
    before_exact: str | None = None
    """Formulation of an exact stage that follows, for which time is left where its model is built."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only while anything is open, in rounds that the search handles."""
        if reason := context.budget.stop_reason():
            return reason
        if context.is_closed:
            return "the round is proven, or within the gap"
        missing = what_is_missing(context.problem, context.weighted)
        return StatedReason(f"the local search does not handle {missing}") if missing else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Search until time or work ends it, or the round is proven; offer what is better now and then."""
        budget, incumbent = context.budget, context.incumbent
        search = LocalSearch(context.problem, incumbent.allocation, context.weighted, seed=context.draw_seed())
        beside = incumbent.value - search.value  # what changes of running jobs cost
        few = self.before_exact is not None and sizes.may_be_built(context, self.before_exact)
        offer: Offer | None = None
        offered, since = 0, time.monotonic()
        with budget.heuristic(SHARE_BEFORE_EXACT if few else 1.0, reserve_s=context.end_s) as ends:
            deterministic = budget.params.deterministic
            per_second = JUDGED_STEPS_PER_SECOND if search.is_judged else STEPS_PER_SECOND
            pace: _Pace = _Counted(budget.steps(per_second)) if deterministic else _Timed(ends)
            while pace.goes_on() and not budget.stopped():
                pace.advance(search)
                if not incumbent.is_better(search.value + beside, search.cost) or search.steps - offered < OFFER_EVERY:
                    continue
                if budget.has_passed(since, budget.offer_s / OFFER_SHARE):
                    offer, offered = incumbent.offer(search.allocation()), search.steps
                    since = time.monotonic()
                    context.report(self.name)
                    if context.is_closed or isinstance(offer, Refused):
                        break
            if deterministic and not pace.goes_on():
                budget.note_limit("work")
        if incumbent.is_better(search.value + beside, search.cost) and not isinstance(offer, Refused):
            offer = incumbent.offer(search.allocation())
        form = ("compiled" if is_compiled() else "not compiled") + (", judged" if search.is_judged else "")
        detail = f"{search.steps} steps, {form}"
        yield StageReport(detail, level="cost" if context.value_proven else "value", offer=offer)


class _Pace(Protocol):
    """When a search ends, and how many steps its next call takes."""

    def goes_on(self) -> bool: ...

    def advance(self, search: LocalSearch) -> None: ...


class _Counted:
    """Ends after ``most`` steps, whatever the clock says."""

    def __init__(self, most: int) -> None:
        self._done, self._most = 0, most

    def goes_on(self) -> bool:
        return self._done < self._most

    def advance(self, search: LocalSearch) -> None:
        steps = min(STEPS_PER_CALL, self._most - self._done)
        search.advance(steps, self._done / self._most, self._most)
        self._done += steps


class _Timed:
    """Ends at a moment, ``ends``; learns how many steps a call may take."""

    def __init__(self, ends: float) -> None:
        self._started = self._now = time.monotonic()
        self._ends, self._steps = ends, 1

    def goes_on(self) -> bool:
        return self._now < self._ends

    def advance(self, search: LocalSearch) -> None:
        began, all_s = time.monotonic(), self._ends - self._started
        rate = search.steps / max(began - self._started, CALL_S)
        search.advance(self._steps, min(1.0, (began - self._started) / all_s), rate * all_s)
        self._now = time.monotonic()
        self._steps = max(1, int(self._steps * min(2.0, CALL_S / max(self._now - began, CALL_S / 2))))
