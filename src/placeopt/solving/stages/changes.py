"""Stages ``make-room`` and ``ranks``: running jobs make room, and placed jobs permute their ranks, without a solver."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.heuristics import make_room, place_again
from placeopt.readable import plural
from placeopt.solving.context import SolveContext
from placeopt.solving.incumbent import Accepted
from placeopt.solving.stage import StageReport, reason_of_binding
from placeopt.terms.costs.communication import Communication


@dataclass(frozen=True)
class MakeRoom:
    """Goes on from the best plan by preempting, shrinking and moving running jobs, as the policy lets it."""

    name: ClassVar[str] = "make-room"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where running jobs may be changed, after a whole pass of greedy by value; once for each plan."""
        if not context.problem.changeable:
            return "no running job may make room"
        if context.handover.first_pass is None:
            return "greedy did not reach all jobs"
        if context.greedy.shape != "value":
            return "the method chooses options in another way"
        if context.value_proven:
            return "the value is proven already"
        if context.handover.made_room == context.incumbent.number:
            return "there is no better plan since"
        return context.budget.stop_reason()

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """
        Offer a plan with waiting jobs in the place of running ones: the first one made so, then the best one.

        The search may have spent the changes that are allowed on less than these find from greedy's plan.
        """
        rule, budget, handover = context.greedy, context.budget, context.handover
        start = context.incumbent.allocation if handover.made_room is not None else handover.first_pass
        assert start is not None  # noqa: S101 - see `skip_reason`
        with budget.heuristic() as deadline:
            deadline = min(deadline, budget.step_ends())
            revised = make_room(
                context.problem,
                start,
                rule.jobs(context.problem),
                rule.score,
                deadline=deadline,
                cancelled=budget.cancelled,
                stop_at_first_failure=rule.strict,
            )
            reached_all = time.monotonic() < deadline
        is_best = start == context.incumbent.allocation
        offer = context.incumbent.offer(revised)
        if reached_all:
            handover.made_room = context.incumbent.number if is_best or isinstance(offer, Accepted) else 0
        yield StageReport("preempting, shrinking and moving running jobs", offer=offer)


GANGS_PER_SECOND = 64
"""Jobs that are placed again in deterministic mode, per second of the time limit; by the clock they are some 500."""


@dataclass(frozen=True)
class RankMapping:
    """
    Places jobs with a traffic graph again, by bi-partitioning, and permutes their ranks on the GPUs that they have.

    These alone know graphs: other stages choose GPUs as if each rank talked to all others alike.
    """

    name: ClassVar[str] = "ranks"
    uses_solver: ClassVar[bool] = False
    places_again: bool = False
    share: float = 0.25
    """Part of the time left that each of both may take; the rest is for choosing GPUs."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where traffic costs, and jobs that state theirs are placed; once for each plan."""
        if context.handover.ranked == context.incumbent.number:
            return "there is no better plan since"
        if reason := context.budget.stop_reason():
            return reason
        if all(w.cost.name != Communication.name for w in context.weighted):
            return "communication costs nothing"
        return reason_of_binding(context) if _placed_with_traffic(context) else "no job with a traffic graph is placed"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Improve one job after the other, and offer the result."""
        reached_all = True
        if self.places_again:
            with context.budget.heuristic(self.share) as deadline:
                allocation, moved, reached_all = place_again(
                    context.problem,
                    context.incumbent.allocation,
                    _placed_with_traffic(context),
                    context.weighted,
                    context.budget.steps(GANGS_PER_SECOND),
                    deadline=min(deadline, context.budget.step_ends()),
                    cancelled=context.budget.cancelled,
                )
            offer = context.incumbent.offer(allocation) if moved else None
            detail = f"{plural(moved, 'job')} placed again by bi-partitioning"
            yield StageReport(detail, level="cost", step="drb-again", offer=offer)
        yield self._permute(context, _placed_with_traffic(context))
        context.handover.ranked = context.incumbent.number if reached_all else None

    def _permute(self, context: SolveContext, jobs: list[int]) -> StageReport:
        from placeopt.rank_mapping import improve_ranks  # only here: few rounds have traffic graphs

        budget, allocation = context.budget, list(context.incumbent.allocation)
        gained = 0
        with budget.heuristic(self.share) as deadline:
            for job in jobs:
                placement = allocation[job]
                if placement is None or time.monotonic() >= deadline:
                    continue
                allocation[job] = improve_ranks(context.problem, job, placement, deadline, seed=budget.params.seed)
                gained += allocation[job] is not placement
        offer = context.incumbent.offer(tuple(allocation)) if gained else None
        detail = f"{gained} of {len(jobs)} jobs with a traffic graph gained"
        return StageReport(detail, "improved" if gained else "kept", level="cost", offer=offer)


def _placed_with_traffic(context: SolveContext) -> list[int]:
    """Return the jobs that start and state a traffic graph."""
    problem = context.problem
    return [
        job
        for job, placement in enumerate(context.incumbent.allocation)
        if placement is not None
        and job not in problem.running
        and problem.class_communication[problem.job_class[job]].edges
    ]
