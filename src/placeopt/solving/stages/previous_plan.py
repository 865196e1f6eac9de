"""Stage 1a: an earlier plan as incumbent, as far as it still holds."""

from __future__ import annotations

import time

from placeopt.errors import BadInput
from placeopt.heuristics import greedy
from placeopt.heuristics.job_orders import order_jobs
from placeopt.model import Plan
from placeopt.problem import Allocation, Move, State
from placeopt.problem.indexing import running_placement
from placeopt.solving.context import SolveContext
from placeopt.terms.rules.registry import fits


def run_previous(context: SolveContext, previous: Plan, score: str, order: str) -> None:
    """
    Offer what the earlier plan decided and still fits, filled up by greedy.

    The earlier plan is a hint and never more: jobs that are gone, run by now or no longer fit are left out one by one,
    in the plan's order, and the referee reads what comes of it like any other allocation.
    """
    started = time.monotonic()
    kept, total = _still_holds(context, previous)
    limits = context.budget
    result = greedy(
        context.problem,
        order_jobs(context.problem, order),
        score,
        deadline=float("inf") if limits.deterministic else limits.deadline,
        cancelled=context.cancelled,
        start=kept,
    )
    before = context.incumbent
    refused = context.offer(result.allocation)
    held = sum(placement is not None for placement in kept) - len(context.problem.running)
    detail = f"{held} of {total} earlier placements hold"
    if refused:
        context.record("previous", "failed", started, f"{detail}; refused by the referee: {refused}")
    else:
        context.record("previous", "improved" if context.incumbent is not before else "kept", started, detail)


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
        except BadInput:  # the job asks for something else by now
            continue
        if fits(state, job, placement):
            state.apply(Move(job, placement))
    return state.allocation(), total
