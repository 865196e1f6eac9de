"""Stage 1b: which worker sits on which of its job's GPUs, for jobs that state who talks to whom."""

from __future__ import annotations

import time

from placeopt.rank_mapping import improve_ranks
from placeopt.solving.context import SolveContext
from placeopt.terms.costs.communication import Communication

SHARE_OF_TIME = 0.25
"""Part of what is left of the round that permuting ranks may take; the rest is for choosing GPUs."""


def run_rank_mapping(context: SolveContext) -> None:
    """Permute the ranks of placed jobs with a traffic graph on the GPUs that the best plan gives them."""
    problem, best = context.problem, context.incumbent
    if best is None or all(w.cost.name != Communication.name for w in context.weighted):
        return
    jobs = [
        job
        for job, placement in enumerate(best.allocation)
        if placement is not None
        and job not in problem.running
        and problem.class_communication[problem.job_class[job]].edges
    ]
    if not jobs:
        return
    started = time.monotonic()
    limits = context.budget
    deadline = float("inf") if limits.deterministic else started + SHARE_OF_TIME * limits.left_s
    allocation = list(best.allocation)
    gained = 0
    for job in jobs:
        placement = allocation[job]
        if placement is None or time.monotonic() >= deadline:
            continue
        allocation[job], _ = improve_ranks(problem, job, placement, deadline, seed=limits.seed)
        gained += allocation[job] is not placement
    refused = context.offer(tuple(allocation)) if gained else None
    if refused:
        context.record("ranks", "failed", started, f"refused by the referee: {refused}", "cost")
    else:
        detail = f"{gained} of {len(jobs)} jobs with a traffic graph gained"
        context.record("ranks", "improved" if gained else "kept", started, detail, "cost")
