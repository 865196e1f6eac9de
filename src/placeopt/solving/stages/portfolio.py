"""
Stages ``drb`` and ``swaf``: what else may be the first plan of a round, beside greedy's.

Greedy by a score is quick and right for most rounds. Where jobs communicate, dual recursive bi-partitioning (SC'17
algorithm 2) keeps their GPUs closer together; where jobs may run in several shapes and far more wait than fit, the
shapes that SWAF chooses (GENIE eq. 12) leave room for more of them. The best by value, then by cost, goes on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from placeopt.heuristics import BipartitionOfCommunicating, communicating_jobs, greedy, waiting_allowances
from placeopt.heuristics.greedy_pass import GreedyResult
from placeopt.readable import plural
from placeopt.solving.context import SolveContext
from placeopt.solving.incumbent import Accepted, figures
from placeopt.solving.stage import StageReport, StatedReason
from placeopt.terms.costs.communication import Communication


@dataclass(frozen=True)
class Alternative(ABC):
    """
    Offers the allocation of one more heuristic, filled up by greedy.

    It gets ``share`` of the time left, and is dropped if it does not reach all jobs by then.
    """

    uses_solver: ClassVar[bool] = False
    share: float = 1 / 8

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that plans state."""

    @abstractmethod
    def _useless(self, context: SolveContext) -> str | None:
        """Return why the heuristic cannot find anything better than greedy in this round, None if it may."""

    @abstractmethod
    def _place(self, context: SolveContext, deadline: float) -> GreedyResult:
        """Place the waiting jobs beside what runs."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only after a whole pass of greedy, where a better plan may be found; the plan states why not."""
        budget, handover = context.budget, context.handover
        if handover.start is not None:
            return "there is a plan of parts of the round"
        if handover.first_pass is None:
            return StatedReason("greedy did not reach all jobs")
        if context.proven:
            return StatedReason("nothing better is possible")
        if reason := self._useless(context):
            return StatedReason(reason)
        reason = budget.stop_reason()
        return None if reason is None else StatedReason(reason)

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Place, fill up and offer."""
        budget, problem = context.budget, context.problem
        with budget.heuristic(self.share) as deadline:
            result = self._place(context, deadline)
        if result.not_reached:
            yield StageReport(f"{plural(len(result.not_reached), 'job')} not reached in its share of the time", "kept")
            return
        allocation = context.greedy.fill_up(problem, budget, result.allocation)
        offer = context.incumbent.offer(allocation)
        if isinstance(offer, Accepted):
            context.handover.first_pass = allocation
        yield StageReport(figures(offer), offer=offer)


def _greedy(context: SolveContext, deadline: float, **chosen: Any) -> GreedyResult:
    """Place the waiting jobs by the greedy rule, but for what is ``chosen``."""
    rule, problem, cancelled = context.greedy, context.problem, context.budget.cancelled
    return greedy(problem, rule.jobs(problem), rule.score, deadline=deadline, cancelled=cancelled, **chosen)


@dataclass(frozen=True)
class DrbPlan(Alternative):
    """Places jobs that communicate by dual recursive bi-partitioning, all others by greedy's score."""

    name: ClassVar[str] = "drb"

    def _useless(self, context: SolveContext) -> str | None:
        if all(weighted.cost.name != Communication.name for weighted in context.weighted):
            return "communication costs nothing"
        waiting = context.greedy.jobs(context.problem)
        return None if communicating_jobs(context.problem)[waiting].any() else "no waiting job communicates"

    def _place(self, context: SolveContext, deadline: float) -> GreedyResult:
        chooser = partial(BipartitionOfCommunicating, score=context.greedy.score)
        return _greedy(context, deadline, chooser=chooser)


@dataclass(frozen=True)
class SwafPlan(Alternative):
    """Places every job in the shape that SWAF chooses, in greedy's order; what is left over goes to any shape."""

    name: ClassVar[str] = "swaf"

    def _useless(self, context: SolveContext) -> str | None:
        if context.value_proven:
            return "the value is proven"
        problem = context.problem
        several = np.bincount(problem.options.job_class, minlength=len(problem.class_communication)) > 1
        waiting = context.greedy.jobs(problem)
        return None if several[problem.job_class[waiting]].any() else "no waiting job has several shapes"

    def _place(self, context: SolveContext, deadline: float) -> GreedyResult:
        return _greedy(context, deadline, only=waiting_allowances(context.problem).option)
