"""
Stages ``make-room``, ``reserve``, ``previous`` and ``ranks``: the first plan is improved and checked without a solver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.errors import BadInput
from placeopt.heuristics import make_room
from placeopt.model import Plan
from placeopt.problem import Allocation, Move, State
from placeopt.problem.running import running_placement
from placeopt.solving.context import SolveContext
from placeopt.solving.searching import LAST_OFFER
from placeopt.solving.stage import StageReport
from placeopt.terms.costs.communication import Communication
from placeopt.terms.rules import fits


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
        """Offer the best plan with waiting jobs in the place of running ones."""
        rule, budget = context.greedy, context.budget
        with budget.heuristic() as deadline:
            deadline = min(deadline, budget.step_ends())
            revised = make_room(
                context.problem,
                context.incumbent.allocation,
                rule.jobs(context.problem),
                rule.score,
                deadline=deadline,
                cancelled=budget.cancelled,
                stop_at_first_failure=rule.strict,
            )
            reached_all = time.monotonic() < deadline
        offer = context.incumbent.offer(revised)
        if reached_all:
            context.handover.made_room = context.incumbent.number
        yield StageReport("preempting, shrinking and moving running jobs", offer=offer)


@dataclass(frozen=True)
class PreviousPlan:
    """
    Offers what the earlier plan decided and still fits, filled up by greedy.

    The earlier plan is only a hint: jobs that were removed, run by now or no longer fit are left out one by one, in the
    plan's order, and the referee reads the result like any other allocation.
    """

    name: ClassVar[str] = "previous"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only with an earlier plan, and where the queue may be overtaken."""
        if context.handover.previous_plan is None:
            return "there is no earlier plan"
        if context.greedy.strict:
            return "the queue is strict"
        return context.budget.stop_reason()

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Offer what still holds, filled up."""
        previous = context.handover.previous_plan
        assert previous is not None  # noqa: S101 - see `skip_reason`
        kept, total = _still_holds(context, previous)
        offer = context.incumbent.offer(context.greedy.fill_up(context.problem, context.budget, kept))
        held = sum(placement is not None for placement in kept) - len(context.problem.running)
        yield StageReport(f"{held} of {total} earlier placements hold", offer=offer)


def _still_holds(context: SolveContext, previous: Plan) -> tuple[Allocation, int]:
    """Return the earlier placements of waiting jobs that keep every rule now, and how many there were of such jobs."""
    problem = context.problem
    jobs = {job_id: j for j, job_id in enumerate(problem.job_ids)}
    nodes = {node_id: n for n, node_id in enumerate(problem.node_ids)}
    state, total = State(problem), 0
    for earlier in previous.placements:
        job = jobs.get(earlier.job)
        if job is None or job in problem.running:
            continue
        total += 1
        if any(assignment.node not in nodes for assignment in earlier.assignments):
            continue
        try:
            placement = running_placement(earlier, problem, job, nodes)
        except BadInput:  # the job has changed since
            continue
        if fits(state, job, placement):
            state.apply(Move(job, placement))
    return state.allocation(), total


@dataclass(frozen=True)
class RankMapping:
    """Permutes the ranks of placed jobs with a traffic graph on the GPUs that the best plan gives them."""

    name: ClassVar[str] = "ranks"
    uses_solver: ClassVar[bool] = False
    share: float = 0.25
    """Part of the time left that permuting may take; the rest is for choosing GPUs."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where traffic costs, and jobs that state theirs are placed; once for each plan."""
        if context.handover.ranked == context.incumbent.number:
            return "there is no better plan since"
        if reason := context.budget.stop_reason():
            return reason
        if all(w.cost.name != Communication.name for w in context.weighted):
            return "communication costs nothing"
        return None if _placed_with_traffic(context) else "no job with a traffic graph is placed"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Improve the ranks of one job after the other, and offer the result."""
        from placeopt.rank_mapping import improve_ranks  # only here: few rounds have traffic graphs

        budget, jobs = context.budget, _placed_with_traffic(context)
        allocation = list(context.incumbent.allocation)
        gained = 0
        with budget.heuristic(self.share) as deadline:
            for job in jobs:
                placement = allocation[job]
                if placement is None or time.monotonic() >= deadline:
                    continue
                allocation[job] = improve_ranks(context.problem, job, placement, deadline, seed=budget.params.seed)
                gained += allocation[job] is not placement
        offer = context.incumbent.offer(tuple(allocation)) if gained else None
        context.handover.ranked = context.incumbent.number
        detail = f"{gained} of {len(jobs)} jobs with a traffic graph gained"
        yield StageReport(detail, "improved" if gained else "kept", level="cost", offer=offer)


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


RESERVE_S = 0.02
RESERVE_PER_JOB_S = 12e-6
"""Seconds reserved for a first plan, reasons, the final check and the audit, fixed and per job; measured, generous."""
RESERVE_PER_COMPILE = 3.5
"""The same as a multiple of what compiling took in this round: it holds where the machine is busy with other work."""
RESERVE_PER_PLACED, RESERVE_PER_WAITING = 0.75, 0.5
"""
Shares of what a placed job took in the last offer that are reserved for every job that is placed, and for each that
waits, up to as much as all placed ones took. The end takes 0.3 to 0.6 offers where it has little to explain, 1.1 to 1.3
where single jobs wait of hundreds of classes, or gangs; gangs that wait have a time limit of their own.
"""


def first_reserve_s(num_jobs: int, compile_s: float) -> float:
    """Return the seconds to reserve before anything was offered."""
    return max(RESERVE_S + RESERVE_PER_JOB_S * num_jobs, RESERVE_PER_COMPILE * compile_s)


@dataclass(frozen=True)
class ReserveTime:
    """Checks the first plan if no stage did, and reserves time for the end by how long that took."""

    name: ClassVar[str] = "reserve"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: SolveContext) -> None:
        """Never: the first plan has to be checked before others build on it."""

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Set the deadline of later stages; the plan does not state that."""
        context.incumbent.read()
        placed = sum(placement is not None for placement in context.incumbent.allocation)
        waiting = context.problem.num_jobs - placed
        offers = RESERVE_PER_PLACED + min(1.0, RESERVE_PER_WAITING * waiting / max(placed, 1))
        offers += LAST_OFFER if context.handover.searching is not None else 0.0
        context.budget.reserve(RESERVE_S + offers * context.budget.offer_s)
        yield from ()
