"""Stages ``joined``, ``previous`` and ``given``: plans of the parts of a round, of an earlier one, of a scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.errors import BadInput
from placeopt.model import Plan
from placeopt.problem import Allocation, Move, State
from placeopt.problem.running import running_placement
from placeopt.solving.audit import allocation_of
from placeopt.solving.context import SolveContext
from placeopt.solving.incumbent import figures
from placeopt.solving.stage import StageReport, StatedReason, reason_of_binding
from placeopt.solving.stages.lookahead import renumbered
from placeopt.terms.rules import fits


@dataclass(frozen=True)
class JoinedPlan:
    """Offers the placements of all parts, those left out that break a rule of the whole, filled up by greedy."""

    name: ClassVar[str] = "joined"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where jobs were placed in parts; then a plan comes first, however little time is left."""
        return "the round was not solved in parts" if context.handover.start is None else reason_of_binding(context)

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Fill up, and offer."""
        handover = context.handover
        given = handover.start
        assert given is not None  # noqa: S101 - see `skip_reason`
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
        return reason_of_binding(context) or context.budget.stop_reason()

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Offer what still holds, filled up."""
        previous = context.handover.previous_plan
        assert previous is not None  # noqa: S101 - see `skip_reason`
        kept, total = _still_holds(context, previous)
        offer = context.incumbent.offer(context.greedy.fill_up(context.problem, context.budget, kept))
        held = sum(placement is not None for placement in kept) - len(context.problem.running)
        yield StageReport(f"{held} of {total} earlier placements hold", offer=offer)


@dataclass(frozen=True)
class GivenPlan:
    """Takes over a plan of this very round as it is, whatever it is worth; jobs that it leaves waiting wait."""

    name: ClassVar[str] = "given"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only with a plan; the plan says so where there is none."""
        return StatedReason("no plan was given") if context.handover.previous_plan is None else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Offer it."""
        given = context.handover.previous_plan
        assert given is not None  # noqa: S101 - see `skip_reason`
        context.handover.blocks = f"policy {given.policy.name!r} leaves it waiting"
        offer = context.incumbent.offer(allocation_of(given, context.problem), at_any_value=True)
        yield StageReport(figures(offer), offer=offer)


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
