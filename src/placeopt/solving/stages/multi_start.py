"""Stage ``multi-start``: greedy again, by other scores and in other orders, in small rounds far from their bound."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import ClassVar

import numpy as np

from placeopt.formulations.fillings import shares_nest
from placeopt.heuristics import greedy
from placeopt.problem import Allocation, IntArray
from placeopt.problem.free_capacity import room_decides
from placeopt.solving import sizes
from placeopt.solving.context import SolveContext
from placeopt.solving.stage import StageReport
from placeopt.solving.stages.before_exact import SMALL_PRODUCT
from placeopt.terms.objective import value

SCORES = ("stranding", "best_fit", "first_fit")
"""Scores that are tried, in turns."""
SPREADS = (0.05, 0.1, 0.2)
"""Standard deviations by which jobs leave their place in the order, in parts of its length, in turns."""
PASSES = 12
"""Passes of greedy at most."""
MOST_PRODUCT = 150_000
"""Waiting jobs x GPUs up to which it runs: larger rounds lose more time by a pass than they gain."""


@dataclass(frozen=True)
class MultiStart:
    """
    Offers the most valuable of some more passes of greedy (multi-start; Feo and Resende 1995).

    The first passes keep the order and change the score. In later ones jobs leave their place by normal deviates, so
    that valuable jobs still come early. Where CPU, memory or many fractions bind, single orders of greedy differ by
    several per cent of the value, and no relaxation tells which is good.
    """

    name: ClassVar[str] = "multi-start"
    uses_solver: ClassVar[bool] = False
    share: float = 0.35
    """Part of the time left that it may take."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only in small rounds whose plan is far from the bound, after a whole pass of greedy by value."""
        if reason := context.budget.stop_reason():
            return reason
        if context.is_closed:
            return "the round is proven, or within the gap"
        if not context.is_far:
            return "the plan is close to the bound"
        if context.handover.first_pass is None or context.greedy.shape != "value" or context.greedy.strict:
            return "there is not a whole pass of greedy that other orders could improve on"
        if context.problem.changeable:
            return "running jobs may be changed"
        if room_decides(context.problem) and not shares_nest(context.problem):
            return "nodes are refilled instead"
        product = sizes.product(context)
        if product <= SMALL_PRODUCT:
            return "the round is small enough for an exact stage"
        return "the round is large" if product > MOST_PRODUCT else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Place all jobs again and again, and offer the best allocation."""
        budget, problem, rule = context.budget, context.problem, context.greedy
        jobs, random = rule.jobs(problem), np.random.default_rng(context.draw_seed())
        scores = [score for score in SCORES if score != rule.score]
        orders = zip(cycle((*scores, rule.score)), (*(0.0 for _ in scores), *islice(cycle(SPREADS), PASSES)))
        best: Allocation | None = None
        most, passes, longest_s = context.incumbent.value, 0, 0.0
        with budget.heuristic(self.share) as deadline:
            for score, spread in islice(orders, PASSES):
                began = time.monotonic()
                if budget.is_past(deadline - longest_s) or budget.stopped():
                    break
                order = _disturbed(jobs, spread, random)
                result = greedy(problem, order, score, deadline=deadline, cancelled=budget.cancelled)
                worth = value(problem, result.allocation)
                if worth > most:
                    best, most = result.allocation, worth
                passes, longest_s = passes + 1, max(longest_s, time.monotonic() - began)
        offer = None if best is None else context.incumbent.offer(best)
        yield StageReport(f"{passes} {'pass' if passes == 1 else 'passes'} of greedy", offer=offer)


def _disturbed(jobs: IntArray, spread: float, random: np.random.Generator) -> IntArray:
    """Return the jobs in an order in which each is off its place by ``spread`` x their number or so."""
    if not spread:
        return jobs
    places = np.arange(len(jobs)) + spread * len(jobs) * random.standard_normal(len(jobs))
    return jobs[np.argsort(places, kind="stable")]
