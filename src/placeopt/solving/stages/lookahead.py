"""Stage ``lookahead``: jobs that end earlier if they wait leave the round, and others keep to their places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.formats.gc_pause import gc_paused
from placeopt.heuristics.lookahead import LookaheadDecision, look_ahead
from placeopt.model.plan import StageOutcome
from placeopt.problem import Problem
from placeopt.solving.budget import Budget
from placeopt.solving.choices import all_start
from placeopt.solving.context import SolveContext
from placeopt.solving.greedy_rule import GreedyRule
from placeopt.solving.incumbent import Offer, Refused
from placeopt.solving.narrowing import hold_back, renumbered
from placeopt.solving.stage import StageReport

SHARE_OF_TIME = 0.3
"""Part of a round's time that schedules may take; ours: most is left to the stages that prove something."""


def decide_ahead(problem: Problem, rule: GreedyRule, budget: Budget) -> LookaheadDecision:
    """Return which waiting jobs start now, and where, and which end earlier if they wait."""
    return look_ahead(
        problem,
        rule.jobs(problem),
        rule.score,
        reorder=not rule.strict,
        deadline=budget.heuristic_deadline(SHARE_OF_TIME),
        cancelled=budget.cancelled,
    )


@dataclass(frozen=True)
class LookAhead:
    """
    Narrows the round to what may start now, and where, for all later stages, if the policy looks ahead.

    A job that waits may go nowhere. A GPU that is needed later is closed to options that might not end in time: alone
    and as far apart as on a machine. A job whose place was weighed by times has that place or none, since costs do not
    contain times. Later stages need not look at any of that. What they prove is of plans that keep to it; the plan's
    own bound is of the whole round, so it is hardly ever called optimal.

    Nothing is left to decide where all that waits starts, each job in its place. Nearly every round of a cluster that
    is seldom full is like that, and need not be compiled anew.
    """

    name: ClassVar[str] = "lookahead"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only under a policy with look-ahead."""
        return None if context.problem.policy.postpone.rule == "lookahead" else "the policy does not look ahead"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Decide, unless that was done before on this very problem; narrow the round, and offer what starts."""
        with gc_paused():
            ahead = context.handover.decision or decide_ahead(context.problem, context.greedy, context.budget)
            offer = self._apply(context, ahead)
        detail = lookahead_summary(ahead) + (
            "; stages after this one are about plans that keep to it" if context.narrowed else ""
        )
        if isinstance(offer, Refused):
            yield StageReport(f"{detail}: {offer.why}", "failed")
            return
        outcome: StageOutcome = "improved" if ahead.starts or ahead.waits else "kept"
        yield StageReport(detail, outcome)

    def _apply(self, context: SolveContext, ahead: LookaheadDecision) -> Offer | None:
        former, offer = context.problem, None
        if all_start(former, ahead):
            offer = _start(context, former, ahead)
            incumbent = context.incumbent
            if all(incumbent.allocation[job] == placement for job, placement in ahead.starts.items()):
                context.handover.is_decided = True
                context.bounds.prove_value(incumbent.value)
                context.bounds.prove_cost(incumbent.cost)
                return offer
        if ahead.waits or ahead.needed or ahead.scheduled:
            offer = _start(context, hold_back(former, ahead), ahead)
        return offer


def _start(context: SolveContext, narrowed: Problem, ahead: LookaheadDecision) -> Offer:
    """Narrow the round, and offer what starts now."""
    former = context.problem
    context.narrow(narrowed, ahead)
    starts = {job: renumbered(narrowed, job, one, former) for job, one in ahead.starts.items()}
    return context.incumbent.offer(tuple(starts.get(job, held) for job, held in enumerate(context.base.allocation())))


def lookahead_summary(ahead: LookaheadDecision) -> str:
    """Say what look-ahead decided."""
    number = len(ahead.waits)
    if not number:
        return "nobody ends earlier by waiting"
    return f"{'1 job ends' if number == 1 else f'{number} jobs end'} earlier by waiting"
