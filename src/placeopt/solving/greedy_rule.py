"""How greedy places the jobs of a round: by which score, in which order; later stages fill up plans the same way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from placeopt.formulations.fillings import shares_nest
from placeopt.heuristics import CHOOSERS, greedy
from placeopt.heuristics.greedy_pass import IN_TURN, GreedyResult
from placeopt.heuristics.job_orders import order_jobs, waiting_allowances
from placeopt.problem import Allocation, IntArray, Problem
from placeopt.solving.budget import Budget

MIN_SIZES = 3
"""Different shares of a GPU from which patterns are worth choosing: with fewer, greedy leaves nothing to find."""


JOBS_PER_KIND = 2
"""Jobs of a kind, in the mean, from which they repeat."""


def jobs_repeat(problem: Problem) -> bool:
    """Tell whether waiting jobs are of few kinds: then greedy knows the score of most places before it asks."""
    waiting = [job for job in range(problem.num_jobs) if job not in problem.running]
    return len(waiting) >= JOBS_PER_KIND * len(np.unique(problem.job_class[waiting]))


def has_many_fractions(problem: Problem) -> bool:
    """
    Tell whether jobs of few kinds ask for many fractions of GPUs, and running jobs stay where they are.

    Fractions that divide one another do not count: fillings of whole nodes handle them. Nor do they where most jobs are
    of a kind of their own: patterns count how many jobs of a kind there are, and say nothing where that is one.
    """
    options = problem.options
    sizes = np.unique(options.milli[options.gpus > 0])
    return (
        problem.shares_bind
        and problem.jobs_per_gpu != 1
        and len(sizes) >= MIN_SIZES
        and jobs_repeat(problem)
        and not problem.changeable
        and not shares_nest(problem)
    )


GRACE = 0.25
"""
Part of the time reserved for the end in which jobs may still be placed by class: the reserve is generous, and where
compiling was slow by chance it leaves nothing for a plan.
"""


@dataclass(frozen=True)
class GreedyRule:
    """
    How greedy places jobs.

    Attributes
    ----------
    score
        Name of the score that chooses places; ``auto`` is ``share_prices`` where the round `has_many_fractions`, else
        ``stranding``.
    order
        Name of the order of jobs; None for the policy's.
    strict
        Whether the queue blocks behind the first job that does not fit.
    shape
        How greedy chooses among a job's options: ``value``, the most valuable one that fits, or ``swaf``, the one that
        SWAF chooses beforehand.
    chooser
        Name of what chooses places in the first pass instead of ``score``, which later stages use.
    """

    score: str = "stranding"
    order: str | None = None
    strict: bool = False
    shape: Literal["value", "swaf"] = "value"
    chooser: str | None = None

    def for_problem(self, problem: Problem) -> GreedyRule:
        """Return the rule with the score and order that ``auto`` and None stand for; trees know no other rule."""
        score = self.score
        if score == "auto":
            score = "share_prices" if has_many_fractions(problem) else "stranding"
        rule = replace(self, score=score, order=self.order or problem.policy.order)
        return rule if problem.is_plain else replace(rule, shape="value", chooser=None)

    def jobs(self, problem: Problem) -> IntArray:
        """Return the waiting jobs in order."""
        return order_jobs(problem, self.order or problem.policy.order)

    def place(self, problem: Problem, budget: Budget, deadline: float) -> GreedyResult:
        """Place the waiting jobs beside what runs."""
        jobs, cancelled, seed = self.jobs(problem), budget.cancelled, budget.params.seed
        made = greedy(
            problem,
            jobs,
            self.score,
            deadline=deadline,
            cancelled=cancelled,
            stop_at_first_failure=self.strict,
            seed=seed,
            chooser=None if self.chooser is None else CHOOSERS[self.chooser],
            only=waiting_allowances(problem).option if self.shape == "swaf" else None,
            fill=self.chooser is None and self.shape == "value" and not self.strict,
            in_turn=_in_turn(budget),
            grace_s=GRACE * budget.reserve_s,
        )
        return _noted(budget, made)

    def fill_up(self, problem: Problem, budget: Budget, start: Allocation, deadline: float | None = None) -> Allocation:
        """Return ``start`` with waiting jobs added by score, until ``deadline``; None for that of heuristics."""
        if deadline is None:
            with budget.heuristic() as ends:
                return self.fill_up(problem, budget, start, ends)
        filled = greedy(
            problem, self.jobs(problem), self.score, deadline=deadline, cancelled=budget.cancelled, start=start
        )
        return filled.allocation

    def complete(
        self,
        problem: Problem,
        budget: Budget,
        start: Allocation,
        *,
        grace_s: float,
    ) -> GreedyResult:
        """
        Return ``start`` with jobs added by score, then by class.

        For plans that no other plan stands beside: placing by class may take ``grace_s`` more.
        """
        with budget.heuristic() as deadline:
            result = greedy(
                problem,
                self.jobs(problem),
                self.score,
                deadline=deadline,
                cancelled=budget.cancelled,
                start=start,
                fill=True,
                in_turn=_in_turn(budget),
                grace_s=grace_s,
            )
        return _noted(budget, result)


def _noted(budget: Budget, result: GreedyResult) -> GreedyResult:
    """Note that the clock has cut a pass short, unless the user cancelled it."""
    if (result.not_reached or result.by_class) and not budget.stopped():
        budget.note_limit("time")
    return result


def _in_turn(budget: Budget) -> float:
    """Return the part of the time that belongs to job by job; in deterministic mode all of it, as work ends it."""
    return 1.0 if budget.params.deterministic else IN_TURN
