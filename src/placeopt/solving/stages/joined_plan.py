"""Stage ``joined``: the first plan of a round that was solved in parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.problem import Allocation, State
from placeopt.solving.context import SolveContext
from placeopt.solving.stage import StageReport
from placeopt.solving.stages.lookahead import renumbered
from placeopt.terms.rules import fits


@dataclass(frozen=True)
class JoinedPlan:
    """Offers the placements of all parts, those left out that break a rule of the whole, filled up by greedy."""

    name: ClassVar[str] = "joined"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: SolveContext) -> None:
        """Never: a plan comes first, however little time is left."""

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Fill up, and offer."""
        handover = context.handover
        given = handover.start
        assert given is not None  # noqa: S101 - `Method.from_start` is for rounds with one
        kept = _kept(context, given)
        result = context.greedy.complete(context.problem, context.budget, kept, grace_s=context.budget.reserve_s)
        handover.first_pass = result.allocation
        offer = context.incumbent.offer(handover.first_pass)
        running = len(context.problem.running)
        placed, left, filled = (_placed(plan) - running for plan in (given, kept, handover.first_pass))
        cut = f", {result.by_class} of them by class" if result.by_class else ""
        yield StageReport(f"{left} of {placed} placements of parts hold, {filled - left} more{cut}", offer=offer)


def _placed(allocation: Allocation) -> int:
    return sum(placement is not None for placement in allocation)


def _kept(context: SolveContext, given: Allocation) -> Allocation:
    """Return the placements that keep the rules of the whole; only queues and uplinks belong to several parts."""
    problem = context.problem
    if context.narrowed or problem.has_shared_limits or problem.options.network_mbps.any():
        state = State(problem)
        for job, placement in enumerate(given):
            if placement is None or state.placements[job] is not None:
                continue
            here = placement if problem is context.whole else renumbered(problem, job, placement, context.whole)
            if fits(state, job, here):
                state.place(job, here)
        return state.allocation()
    return given
