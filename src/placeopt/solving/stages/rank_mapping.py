"""Stage ``ranks``: which worker sits on which of its job's GPUs, for jobs that state their traffic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.rank_mapping import improve_ranks
from placeopt.solving.context import SolveContext
from placeopt.solving.stage import StageReport
from placeopt.terms.costs.communication import Communication


@dataclass(frozen=True)
class RankMapping:
    """Permutes the ranks of placed jobs with a traffic graph on the GPUs that the best plan gives them."""

    name: ClassVar[str] = "ranks"
    uses_solver: ClassVar[bool] = False
    share: float = 0.25
    """Part of the time left that permuting may take; the rest is for choosing GPUs."""
    after_improvement: bool = False
    """Whether it runs only where the stage before found a better plan."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where traffic costs, and jobs that state theirs are placed."""
        if self.after_improvement and not context.handover.improved:
            return "the stage before found no better plan"
        if reason := context.budget.stop_reason():
            return reason
        if all(w.cost.name != Communication.name for w in context.weighted):
            return "communication costs nothing"
        return None if _placed_with_traffic(context) else "no job with a traffic graph is placed"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Improve the ranks of one job after the other, and offer the result."""
        budget, jobs = context.budget, _placed_with_traffic(context)
        deadline = budget.heuristic_deadline(self.share)
        allocation = list(context.incumbent.allocation)
        gained = 0
        for job in jobs:
            placement = allocation[job]
            if placement is None or time.monotonic() >= deadline:
                continue
            allocation[job], _ = improve_ranks(context.problem, job, placement, deadline, seed=budget.params.seed)
            gained += allocation[job] is not placement
        offer = context.incumbent.offer(tuple(allocation)) if gained else None
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
