"""Stage ``annealing``: local search on exact differences, which begins beside other stages, and ends alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.search import is_compiled, what_is_missing
from placeopt.solving import sizes
from placeopt.solving.context import SolveContext
from placeopt.solving.greedy_rule import jobs_repeat
from placeopt.solving.incumbent import Offer, Refused
from placeopt.solving.searching import Searching, has_thread
from placeopt.solving.stage import StageReport, StatedReason

STEPS_PER_SECOND = 4096
"""Steps in deterministic mode, per second of the time limit; compiled, they take a part of it."""
JUDGED_STEPS_PER_SECOND = 512
"""The same where every placement is judged by rules that the search has no differences of: some 1,000 a second."""
STEPS_PER_CALL = 16
"""Steps of a call in deterministic mode: so few that uncompiled, too, it ends soon after a cancel."""
OFFER_EVERY = 1_000
"""Steps between two offers of better plans."""


def _skip_reason(context: SolveContext) -> str | None:
    """Return why nothing is to be searched for, or not by the local search; None if it may run."""
    if reason := context.budget.stop_reason():
        return reason
    if context.is_closed:
        return "the round is proven, or within the gap"
    missing = what_is_missing(context.problem, context.weighted)
    return StatedReason(f"the local search does not handle {missing}") if missing else None


@dataclass(frozen=True)
class BeginSearch:
    """
    Begins the search with the best plan; it goes on beside later stages, or in turns with them.

    Before greedy, that is with what runs: compiled, the search places jobs a hundred times as fast. Where its plan is
    not far ahead of greedy's in the end, it begins again with that, which is packed better.
    """

    name: ClassVar[str] = "annealing"
    uses_solver: ClassVar[bool] = False
    before_greedy: bool = False

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where there is time for it, as the stage itself, which states the reason; before greedy beside it."""
        searching, begun = context.handover.searching, context.handover.begun_bound
        if searching is not None and (searching.holds_best or searching.is_far_ahead(context.incumbent.value)):
            return "it is far ahead of greedy"
        if context.budget.params.deterministic:
            return "the search runs in its own stage only"
        if self.before_greedy and sizes.product(context) < sizes.LARGE_PRODUCT:
            return "greedy takes as long as it takes to begin"
        if self.before_greedy and jobs_repeat(context.problem):
            return "jobs repeat, so greedy is quick, and slower beside it"
        if self.before_greedy and (not has_thread(context) or (begun is not None and begun.rounds)):
            return "no thread is free for it"
        reason = _skip_reason(context)
        return None if reason is None else str(reason)

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Leave the search to later stages; the plan does not state that."""
        if context.handover.searching is None:
            context.handover.searching = Searching(context)
        else:
            context.handover.searching.begin_again()
        yield from ()


@dataclass(frozen=True)
class Annealing:
    """Improves the best plan: its value first, then its cost, by the moves of `placeopt.search`."""

    name: ClassVar[str] = "annealing"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: SolveContext) -> str | None:
        """
        Only while anything is open, in rounds that the search handles; by the clock it runs beside other stages.

        It takes turns with the exact stage, which does not run beside it, where it can begin again.
        """
        if reason := _skip_reason(context):
            return reason
        handover = context.handover
        if context.budget.params.deterministic or handover.is_alone or handover.searching is None:
            return None
        if handover.searching.has_stalled and handover.other_start is not None:
            return None
        return "it runs beside other stages"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """
        Search until slice, time or work ends it, or the round is proven; offer what is better now and then.

        It also ends where half of its steps found nothing better, for the exact stage, which does not run beside it.
        """
        budget, handover = context.budget, context.handover
        if handover.searching is None:
            handover.searching = Searching(context)
        search = handover.searching
        search.alone()
        offer: Offer | None = None
        offered = search.steps
        per_second = JUDGED_STEPS_PER_SECOND if search.is_judged else STEPS_PER_SECOND
        deterministic, ends_at = budget.params.deterministic, search.steps + budget.steps(per_second)
        had_stalled = search.has_stalled
        with budget.heuristic(reserve_s=context.end_s) as ends:
            ends = min(ends, budget.step_ends())
            while time.monotonic() < ends and search.steps < ends_at and not budget.stopped():
                if deterministic:
                    search.advance(min(STEPS_PER_CALL, ends_at - search.steps))
                else:
                    search.call()
                if not deterministic and search.has_stalled and not had_stalled:
                    break
                if not search.is_better or search.steps - offered < OFFER_EVERY:
                    continue
                if deterministic or search.is_due:
                    offer, offered = search.exchange(), search.steps
                    context.report(self.name)
                    if context.is_closed or isinstance(offer, Refused):
                        break
            if search.steps >= ends_at:
                budget.note_limit("work")
        offer = search.exchange() or offer
        form = ("compiled" if is_compiled() else "not compiled") + (", judged" if search.is_judged else "")
        detail = f"{search.steps} steps, {form}"
        yield StageReport(detail, level="cost" if context.value_proven else "value", offer=offer)
