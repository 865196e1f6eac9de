"""Stage ``strict-priority``: jobs of the highest priority first; running ones of lower priority make room for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placeopt.heuristics import greedy
from placeopt.heuristics.preemption import make_room
from placeopt.problem import State
from placeopt.readable import plural
from placeopt.solving.context import SolveContext
from placeopt.solving.stage import StageReport
from placeopt.solving.stages.greedy import LEAST_S


@dataclass(frozen=True)
class StrictPriority:
    """
    Places the waiting jobs of one priority after those of all higher ones, where ``policy.priorities`` is strict.

    Within a priority jobs go by the policy's order. Those that do not fit, and may preempt, then take the room of
    running jobs of lower priority. What a job is worth decides between places and between victims only.
    """

    name: ClassVar[str] = "strict-priority"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where a plan is there: it comes first in any case."""
        return "there is a plan" if context.incumbent.number else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Place one priority after the other, and note which jobs were not reached."""
        problem, rule, budget = context.problem, context.greedy, context.budget
        jobs, allocation = rule.jobs(problem), State(problem).allocation()
        now_ms, wait_min_ms = problem.instance.now_ms, problem.policy.changes.wait_min_ms
        preempts = np.array([job.may_preempt(now_ms, wait_min_ms) for job in problem.instance.jobs], dtype=bool)
        levels = np.unique(problem.job_priority[jobs])[::-1].tolist()
        not_reached: list[int] = []
        with budget.heuristic(least_s=LEAST_S) as deadline:
            for level in levels:
                mine = jobs[problem.job_priority[jobs] == level]
                placed = greedy(
                    problem, mine, rule.score, deadline=deadline, cancelled=budget.cancelled, start=allocation
                )
                not_reached += placed.not_reached
                allocation = make_room(
                    problem,
                    placed.allocation,
                    mine[preempts[mine]],
                    rule.score,
                    deadline=deadline,
                    cancelled=budget.cancelled,
                    spared=[job for job in problem.changeable if problem.job_priority[job] >= level],
                    at_any_price=True,
                )
        if not_reached:
            budget.note_limit("time")
            context.handover.not_reached = frozenset(not_reached)
        offer = context.incumbent.offer(allocation)
        yield StageReport(f"jobs of {plural(len(levels), 'level')} of priority", "improved", offer=offer)
