"""Stage 1: greedy. Always first, so that the fall-back exists before it is needed."""

from __future__ import annotations

import time

from placeopt.heuristics import greedy
from placeopt.queueing import order_jobs
from placeopt.stages.round import Round

RESERVE_PER_JOB_S = 40e-6
"""Time kept back per job for building and checking the plan, so that the deadline holds; measured, generous."""


def run_heuristic(round_: Round, score: str, order: str, *, strict: bool = False) -> None:
    """Offer the running jobs alone, then greedy's allocation."""
    started = time.monotonic()
    refused = round_.offer(round_.base.allocation())
    reserve = RESERVE_PER_JOB_S * round_.problem.num_jobs
    deadline = float("inf") if round_.limits.deterministic else round_.limits.deadline - reserve
    jobs = order_jobs(round_.problem, order)
    result = greedy(
        round_.problem, jobs, score, deadline=deadline, cancelled=round_.cancelled, stop_at_first_failure=strict
    )
    refused = round_.offer(result.allocation) or refused
    round_.blocks = strict
    if result.not_reached:
        round_.not_reached = frozenset(result.not_reached)
        round_.stopped()
        round_.cut("time")
    if refused:
        round_.record("heuristic", "failed", started, f"refused by the referee: {refused}")
    else:
        cut = f", {len(result.not_reached)} jobs not reached" if result.not_reached else ""
        round_.record("heuristic", "improved", started, f"{score} in order {order}{cut}")
