"""Stage ``make-room``: waiting jobs take the place of running ones that are worth less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.formats.gc_pause import gc_paused
from placeopt.heuristics import make_room
from placeopt.solving.context import SolveContext
from placeopt.solving.stage import StageReport


@dataclass(frozen=True)
class MakeRoom:
    """Goes on from greedy's allocation by preempting and shrinking running jobs, as the policy lets it."""

    name: ClassVar[str] = "make-room"
    uses_solver: ClassVar[bool] = False
    share: float = 0.3
    """Part of the time left that it may take; later stages find more."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where running jobs may shrink or be preempted, after a whole pass of greedy by value."""
        if not (context.problem.may_shrink or context.problem.may_preempt):
            return "no running job may make room"
        if context.handover.first_pass is None:
            return "greedy did not reach all jobs"
        return None if context.greedy.shape == "value" else "the method chooses options in another way"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Offer greedy's allocation with waiting jobs in the place of running ones."""
        allocation = context.handover.first_pass
        assert allocation is not None  # noqa: S101 - see `skip_reason`
        rule, budget = context.greedy, context.budget
        with gc_paused():
            found = make_room(
                context.problem,
                allocation,
                rule.jobs(context.problem),
                rule.score,
                deadline=budget.heuristic_deadline(self.share),
                cancelled=budget.cancelled,
                stop_at_first_failure=rule.strict,
            )
            offer = context.incumbent.offer(found)
        yield StageReport("preempting and shrinking running jobs", offer=offer)
