"""Stage ``patterns-first``: the first plan from a mix of patterns over few groups of node states, before greedy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placeopt.errors import PlaceoptError
from placeopt.formulations.node_patterns import PatternPricing, TieredPricing, shares_nest
from placeopt.problem import Problem
from placeopt.solving import pattern_search, sizes
from placeopt.solving.context import SolveContext
from placeopt.solving.incumbent import Accepted
from placeopt.solving.pattern_search import SMOOTHING, PatternSearch
from placeopt.solving.stage import StageReport
from placeopt.solving.stages.bound import BESIDE_PRODUCT
from placeopt.solving.stages.node_patterns import offer_mix

GROUPS = 30
"""Groups of node states: programs of a few milliseconds, and no worse a mix of 1,000 nodes than with single states."""
COARSE_CELLS, COARSE_CLOSE = 2000, 1e-3
"""Cells of the grid that patterns are first priced on, until the mix is so close to what its prices bound there."""
MOST_ROUNDS = 300
"""Most linear programs: 40 at 1,000 nodes, 150 at 12,500."""
RESERVES = (6.5, 10.0)
"""
Time left between which the stage runs, in multiples of what is reserved for the end before anything was offered, which
follows compiling: with less, greedy's plan is better; with more, all of greedy, patterns and costs have their time.
"""
CHECK_SHARE, WHOLE, PLACED = 0.5, 8.5, 5.0
"""
What a check takes of one of them, before one is measured; and in multiples of a check the time reserved for proving,
making the mix whole and placing its jobs, and for placing alone.
"""


@dataclass(frozen=True)
class FirstPatterns:
    """Makes the first plan of a large round in which CPU or memory binds; greedy runs where there is no time for it."""

    name: ClassVar[str] = "patterns-first"
    uses_solver: ClassVar[bool] = True

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where greedy takes longer, and jobs have to wait for want of GPUs."""
        problem, budget, handover = context.problem, context.budget, context.handover
        if handover.is_placed or handover.start is not None:
            return "there is a first plan"
        if problem.changeable or not shares_nest(problem):
            return "fillings do not know running jobs that may be changed, or shares that do not divide one another"
        if context.greedy.strict or sizes.product(context) < BESIDE_PRODUCT:
            return "greedy takes less time"
        if budget.params.deterministic:
            return "the clock decides whether greedy comes first"
        if not RESERVES[0] * budget.reserve_s <= budget.left_s < RESERVES[1] * budget.reserve_s:
            return "greedy takes less time, or there is time for all"
        return None if _is_scarce(problem, context) else "GPUs may suffice for all"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Mix, make the mix whole, place, and prove; nothing where that takes too long."""
        handover, began = context.handover, time.monotonic()
        bound, offer = context.bounds.value, None
        try:
            search = _CoarseSearch(context, 0.0)
            if not search.binds:
                return
            search.mix()
            if not search.programs:
                return
            search.prove()
            search.dive()
            offer = offer_mix(context, search, gather=False)
        except PlaceoptError:
            return
        if isinstance(offer, Accepted) and not context.is_far:
            handover.first_pass, handover.first_pass_s = context.incumbent.allocation, time.monotonic() - began
            handover.is_placed = True
        yield StageReport(search.summary(), proved=context.bounds.value < bound, offer=offer)


def _is_scarce(problem: Problem, context: SolveContext) -> bool:
    """Tell whether waiting jobs ask for more GPUs than are free, each in the option that asks for least."""
    options = problem.options
    asked = options.gpus * options.milli * options.workers
    least = np.minimum.reduceat(asked, problem.class_option_start[:-1])
    waiting = np.array([placement is None for placement in context.base.placements])
    return int(least[problem.job_class[waiting]].sum()) > int(np.maximum(context.base.gpu_free_milli, 0).sum())


class _CoarseSearch(PatternSearch):
    """Column generation over few groups of states, first on a coarse grid; made whole by single states."""

    most_groups, whole_checks, placed_checks = GROUPS, WHOLE, PLACED
    simplex = (("simplex_strategy", "4"),)  # HiGHS's number of the primal method: columns come, rows stay

    def __init__(self, context: SolveContext, left: float) -> None:
        super().__init__(context, left)
        self._fine: TieredPricing | PatternPricing = TieredPricing(
            self.bundle_groups, self.states, "up", self._check_time
        )
        if self.binds:
            self._pricing = PatternPricing(self.bundle_groups, self.states, "up", self._check_time, COARSE_CELLS)
        self.check_s = self._check_s(0)

    @property
    def binds(self) -> bool:
        """Whether CPU or memory can run out on a node: where only GPUs can, greedy leaves little."""
        return bool(self.states.binding.any())

    def _check_s(self, _jobs: float) -> float:
        return CHECK_SHARE * self.context.budget.reserve_s

    def _generate(self) -> None:
        self._begin()
        for _ in range(MOST_ROUNDS):
            self._check_time()
            if not self._program():
                return
            is_fine = self._pricing is self._fine
            if self._least - self.objective <= (pattern_search.CLOSE if is_fine else COARSE_CLOSE) * self.objective:
                if is_fine:
                    return
                self._refine()
                continue
            center = self.price if self._center is None else self._center
            smoothed = (SMOOTHING * center + (1 - SMOOTHING) * self.price).astype(np.int64)
            if not self._add_at(smoothed) and not self._add_at(self.price):
                if is_fine:
                    return
                self._refine()

    def _refine(self) -> None:
        """Go on with the finer grid, from the prices of the last program."""
        self._pricing, self._center = self._fine, None
        self.price[self._pricing.free_of_charge] = 0
        self._add_at(self.price)

    def _dive(self) -> None:
        is_close = self._least - self.mixed <= COARSE_CLOSE * self.mixed  # else an integer program seldom ends
        if self.master.fix_gangs(self.values, down=False) and not self._program():
            self.master.fix_gangs(self.values, down=True)
            self._program()
        self.master.take(self.values, large=False)
        self._pricing = self._fine
        self.master, self._basis = self.master.of_single_states(), None
        if self.master.nodes_left and self._again():
            if is_close and self.master.nodes_left <= pattern_search.FEW_NODES:
                self._fill_last_nodes()
            else:
                self._dive_on()
