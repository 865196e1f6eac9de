"""Stage 1: greedy, then room made by running jobs. Always first, so that the fall-back exists before it is needed."""

from __future__ import annotations

import time

from placeopt.heuristics import CHOOSERS, greedy, make_room, swaf, window
from placeopt.heuristics.job_orders import order_jobs
from placeopt.model.plan import StageOutcome
from placeopt.problem import Allocation, IntArray
from placeopt.solving.context import SolveContext

LEAST_S = 0.05
"""
What the first plan gets in any case, half of what a round may be late: reading and compiling may have taken all the
time there was, and its most valuable jobs are reached first.
"""


def run_heuristic(
    context: SolveContext,
    score: str,
    order: str,
    *,
    strict: bool = False,
    chooser: str | None = None,
    shape: str = "value",
) -> None:
    """Offer greedy's allocation, then what takes the place of running jobs; with another ``shape`` its own alone."""
    started = time.monotonic()
    untimed = context.budget.deterministic and chooser is None  # the clock guards what a bipartition may take
    deadline = float("inf") if untimed else max(context.budget.deadline, started + LEAST_S)
    jobs = order_jobs(context.problem, order)
    if shape == "swaf":
        result = swaf(context.problem, jobs, score, deadline=deadline, cancelled=context.cancelled)
    elif shape == "window":
        seed = context.budget.seed
        result = window(context.problem, jobs, score, deadline=deadline, cancelled=context.cancelled, seed=seed)
    else:
        result = greedy(
            context.problem,
            jobs,
            score,
            deadline=deadline,
            cancelled=context.cancelled,
            stop_at_first_failure=strict,
            seed=context.budget.seed,
            chooser=None if chooser is None else CHOOSERS[chooser],
        )
    refused = context.offer(result.allocation)
    if strict:
        context.blocks = "the queue is strict and an earlier job does not fit"
    elif shape == "swaf":
        context.blocks = "not in the option that SWAF settled on"
    if result.not_reached:
        context.not_reached = frozenset(result.not_reached)
        context.stopped()
        context.note_limit("time")
    if refused:
        context.record("heuristic", "failed", started, f"refused by the referee: {refused}")
    else:
        cut = f", {len(result.not_reached)} jobs not reached" if result.not_reached else ""
        name = {"swaf": "swaf", "window": f"{score} over a window"}.get(shape, chooser or score)
        context.record("heuristic", "improved", started, f"{name} in order {order}{cut}")
    if (context.problem.may_shrink or context.problem.may_preempt) and not result.not_reached and shape == "value":
        _run_make_room(context, result.allocation, jobs, score, strict=strict)


MAKE_ROOM_SHARE = 0.3
"""Part of the time that is left in which room is made for waiting jobs; what comes after finds more."""


def _run_make_room(context: SolveContext, allocation: Allocation, jobs: IntArray, score: str, *, strict: bool) -> None:
    """Offer greedy's allocation with waiting jobs in the place of running ones that are worth less."""
    started, limits = time.monotonic(), context.budget
    deadline = float("inf") if limits.deterministic else started + MAKE_ROOM_SHARE * limits.left_s
    before, cancelled = context.incumbent, context.cancelled
    found = make_room(
        context.problem, allocation, jobs, score, deadline=deadline, cancelled=cancelled, stop_at_first_failure=strict
    )
    refused = context.offer(found)
    if refused:
        context.record("make-room", "failed", started, f"refused by the referee: {refused}")
    else:
        outcome: StageOutcome = "kept" if context.incumbent is before else "improved"
        context.record("make-room", outcome, started, "preempting and shrinking running jobs")
