"""
Stages ``greedy`` and ``strict-priority``: one job after the other.

One of both runs nearly always, so that there is a plan to fall back on before it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placeopt.heuristics import greedy
from placeopt.heuristics.preemption import make_room
from placeopt.model.plan import StageOutcome
from placeopt.problem import State
from placeopt.readable import plural
from placeopt.solving.context import SolveContext
from placeopt.solving.incumbent import NotBetter, figures
from placeopt.solving.stage import StageReport, exchange
from placeopt.terms.objective import value

LEAST_S = 0.05
"""
Seconds that the first plan gets in any case, half of what a round may be late: reading and compiling may have taken all
the time there was, and its most valuable jobs are reached first.
"""


@dataclass(frozen=True)
class Greedy:
    """Offers greedy's allocation, by the rule of the method."""

    name: ClassVar[str] = "greedy"
    uses_solver: ClassVar[bool] = False
    only_if_far: bool = False
    """Whether it runs only where a plan from elsewhere is worth much less than the bound."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where a plan is there, and its value is the greatest or time is over: a plan comes first in any case."""
        if self.only_if_far and not context.is_far:
            return "the plan is close to the bound"
        if context.handover.start is not None and not self.only_if_far:
            return "there is a plan of parts of the round"
        if context.incumbent.number and context.value_proven:
            return "the value is proven"
        return context.budget.stop_reason() if self.only_if_far or context.incumbent.number else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """
        Place the waiting jobs, and note which were not reached.

        What the search has found meanwhile is offered first where it is worth much more: reading both takes too long.
        """
        rule, budget, handover = context.greedy, context.budget, context.handover
        with budget.heuristic(least_s=LEAST_S) as deadline:
            result = rule.place(context.problem, budget, deadline)
        searching = handover.searching
        is_behind = searching is not None and searching.is_far_ahead(value(context.problem, result.allocation))
        if searching is not None and is_behind:
            searching.alone()
            exchange(context, searching)
        offer = context.incumbent.offer(result.allocation)
        if rule.strict:
            handover.blocks = "the queue is strict and an earlier job does not fit"
        elif rule.shape == "swaf":
            handover.blocks = "not in the option that SWAF settled on"
        if result.not_reached:
            handover.not_reached = frozenset(result.not_reached)
        else:
            handover.first_pass = result.allocation
        cut = f", {plural(result.by_class, 'job')} placed by class" if result.by_class else ""
        cut += f", {plural(len(result.not_reached), 'job')} not reached" if result.not_reached else ""
        name = "swaf" if rule.shape == "swaf" else rule.chooser or rule.score
        outcome: StageOutcome = "kept" if is_behind and isinstance(offer, NotBetter) else "improved"
        yield StageReport(f"{name} in order {rule.order}: {figures(offer)}{cut}", outcome, offer=offer)


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
