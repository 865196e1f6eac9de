"""
Stage ``gpu-patterns``: a plan from the relaxation over patterns of single GPUs, first by class of nodes, then by node.

The relaxation with a price for full nodes is solved, rounded by diving, and made into bundles on nodes; greedy places
what is left. Then again, with less of the classes of nodes whose bundles found no room, until the deadline.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from placeopt.formulations.gpu_patterns import GpuPatterns
from placeopt.formulations.node_rows import LOADS, fullness
from placeopt.heuristics.bundles import realise
from placeopt.linear import IntArray
from placeopt.problem import Allocation, Move, Problem, State
from placeopt.readable import plural
from placeopt.solvers.diving import WHOLE, rounded_down
from placeopt.solvers.result import Progress, Solution
from placeopt.solving import sizes
from placeopt.solving.context import SolveContext
from placeopt.solving.greedy_rule import has_many_fractions
from placeopt.solving.incumbent import Refused
from placeopt.solving.pattern_rounding import quotas, rounding_of
from placeopt.solving.stage import StageReport
from placeopt.solving.stages.greedy import LEAST_S
from placeopt.terms.objective import value
from placeopt.terms.rules import fits

SIMPLEX_WORK = 60.0
"""Of a relaxation in deterministic rounds, in units of roughly a second: a guard, they take 0.1 s on openb."""
PLANS_PER_SECOND = 0.2
"""Plans in deterministic mode, per second of the time limit: few enough for work, not the clock, to end the stage."""
CHEAPER, LOSS = 0.5, 1e-4
"""Multiply the price of full nodes by 0.5 if it costs more than 0.01 % of the value."""
SPREAD = 1.0
"""Prices of classes are drawn from e^-1 to e times that, so that plans differ."""
STEP, UNTRIED = 20, 1030
"""Thousandths of a class of nodes between what could be used and what could not; at first, more than all could not."""
RESERVES = 1.5
"""Time from a solution to a checked plan before it is measured, in multiples of the time reserved for the end."""
MOST_FRUITLESS = 20
"""Attempts in a row that may find nothing, because a solver failed or no plan is better."""
FIRST_PLANS = 2
"""Plans made in any case in deterministic mode."""
FEW_PLANS = 3
"""Plans made where an exact stage follows."""


@dataclass(frozen=True)
class GpuPatternPlans:
    """Offers plans made from the relaxation that `Bound` hands on: better ones as long as there is time."""

    name: ClassVar[str] = "gpu-patterns"
    uses_solver: ClassVar[bool] = True
    before_exact: str | None = None
    """Formulation of an exact stage that follows; where its model is built, a few plans are enough."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only with a relaxation, in rounds of many fractions, while the value is open."""
        if reason := context.budget.stop_reason():
            return reason
        if context.handover.gpu_patterns is None or not has_many_fractions(context.problem):
            return "the round has no relaxation over many fractions"
        if not len(context.handover.gpu_patterns.gpu_pattern):
            return "the relaxation only sums shares up"
        return "the value is proven, or within the gap" if context.value_proven or context.is_closed else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Make one plan after the other."""
        patterns, offer = context.handover.gpu_patterns, None
        assert patterns is not None  # noqa: S101 - see `skip_reason`
        maker = context.handover.plan_maker
        if not isinstance(maker, _PlanMaker):
            maker = context.handover.plan_maker = _PlanMaker(context, patterns)
        few = self.before_exact is not None and sizes.may_be_built(context, self.before_exact)
        made, fruitless, most = 0, 0, _most_plans(context, maker.made, few=few)
        while made < most and fruitless < MOST_FRUITLESS and maker.in_time() and not context.budget.stopped():
            allocation = maker.make()
            maker.made += 1
            made, fruitless = made + 1, fruitless + 1
            if allocation is not None and context.budget.has_left(context.budget.offer_s):
                latest = context.incumbent.offer(allocation)
                offer = latest if isinstance(latest, Refused) else offer
                maker.note_time()
                fruitless = 0
            if context.value_proven or context.is_closed:
                break
        if made >= most and not few:
            context.budget.note_limit("work")
        yield StageReport(
            f"{plural(made, 'plan')} from {plural(len(patterns.gpu_pattern), 'GPU pattern')}", offer=offer
        )


def _most_plans(context: SolveContext, made: int, *, few: bool) -> int:
    if few:
        return max(FEW_PLANS - made, 0)
    return (0 if context.budget.slice else FIRST_PLANS) + context.budget.steps(PLANS_PER_SECOND)


class _PlanMaker:
    """Makes one allocation after the other, with less of the classes of nodes that were too full."""

    def __init__(self, context: SolveContext, patterns: GpuPatterns) -> None:
        self._context, self._patterns = context, patterns
        self.made = 0
        self._has_begun = False  # whether what was begun with the bound has been taken
        classes = int(context.problem.node_class.max()) + 1
        self._rate, self._most = 1.0, np.full(classes, LOADS[-1], dtype=np.int64)
        self._able, self._unable = np.full(classes, float(LOADS[-3])), np.full(classes, float(UNTRIED))
        self._random = np.random.default_rng(context.budget.params.seed)
        self._began, self._longest, self._measured = 0.0, RESERVES * context.budget.reserve_s, False

    def in_time(self, seconds: float = 0.0) -> bool:
        """Tell whether all but the solves, which cannot be cut short, is expected to end before the deadline."""
        return self._context.budget.has_left(self._longest + seconds)

    def make(self) -> Allocation | None:
        """Solve, round, place; None if time ended it, or the result cannot be better."""
        relaxed, values = self._rounded()
        return self._placed(relaxed, values) if relaxed is not None and self.in_time() else None

    def _placed(self, relaxed: np.ndarray, values: IntArray | None) -> Allocation | None:
        """
        Place what rounded values count; None if the result cannot be better.

        Where bundles find no node, the relaxation rounded down, which leaves more room, may be worth more.
        """
        if self._hopeless(relaxed):
            self._rate *= CHEAPER
            self._most[:] = LOADS[-1]
            return None
        if values is None:
            return None
        self._began = time.monotonic()
        allocation, short = self._realised(values)
        self._adjust(relaxed, short)
        if self._worth(relaxed) < self._context.bounds.value * (1 - LOSS):
            self._rate *= CHEAPER
        took_s = time.monotonic() - self._began
        down = rounded_down(relaxed)
        if short and not self.made and not np.array_equal(values, down) and self.in_time(took_s):
            other, _ = self._realised(down)
            problem = self._context.problem
            allocation = max(allocation, other, key=lambda found: value(problem, found))
        return allocation

    def _realised(self, values: IntArray) -> tuple[Allocation, set[int]]:
        """Return an allocation, filled up by greedy, and the classes of nodes where bundles found no node."""
        context, problem = self._context, self._context.problem
        state = State(problem)
        placed, short = realise(state, quotas(self._patterns, values), lambda: not self.in_time())
        allocation = list(state.placements)
        for job, placement in placed:
            allocation[job] = placement
        start = _allowed(problem, tuple(allocation))
        with context.budget.heuristic(least_s=LEAST_S) as deadline:
            filled = context.greedy.fill_up(problem, context.budget, start, deadline)
        return filled, {c for c, _ in short}

    def _rounded(self) -> tuple[np.ndarray | None, IntArray | None]:
        """
        Return values of the relaxation with a price for full nodes, and these rounded, down where time ended a dive.

        The first are those that were begun with the bound, if any.
        """
        begun, budget = self._context.handover.begun_bound, self._context.budget
        seconds = max(budget.left_s - self._longest, 0.0)
        if begun is not None and begun.rounds and not self._has_begun:
            news = begun.beside.wait(seconds) or begun.beside.latest
            begun.beside.drop()
            if news is not None and news.relaxed_values is not None:
                return self._taken(news)
        spread = SPREAD if self.made else 0.0
        rates = self._rate * np.exp(self._random.uniform(-spread, spread, len(self._most)))
        least = self._context.incumbent.value
        rounding = rounding_of(self._context.problem, self._patterns, rates, self._most, least=least, prove=False)
        options = replace(budget.options(SIMPLEX_WORK, seconds), relax=True, rounding=rounding)
        solution = self._context.solvers.solve("highs", self._patterns.model, options)
        if solution.rounded is None and solution.limit == "time" and solution.relaxed_values is not None:
            return solution.relaxed_values, rounded_down(solution.relaxed_values)
        return solution.relaxed_values, solution.rounded

    def _taken(self, news: Progress | Solution) -> tuple[np.ndarray, IntArray]:
        """Return the values of a relaxation, and these rounded, down where it was not dived into."""
        assert news.relaxed_values is not None  # noqa: S101 - see the callers
        self._has_begun = True
        rounded = news.rounded if isinstance(news, Solution) else None
        return news.relaxed_values, rounded_down(news.relaxed_values) if rounded is None else rounded

    def note_time(self) -> None:
        """Measure the time from a solution to a checked plan; before the first one it is only guessed."""
        took = time.monotonic() - self._began
        self._longest = max(self._longest, took) if self._measured else took
        self._measured = True

    def _hopeless(self, values: np.ndarray) -> bool:
        """Tell whether the value of a relaxation is no better than that of the incumbent."""
        worth = self._worth(values)
        return worth < self._context.incumbent.value + 1 - WHOLE * max(1.0, abs(worth))

    def _worth(self, values: np.ndarray) -> float:
        """Return the net value of a relaxation without prices."""
        model = self._patterns.model
        return float(model.objective @ values) + model.offset

    def _adjust(self, relaxed: np.ndarray, full: set[int]) -> None:
        """Set the fullness to try next: half-way between what a class could hold and what it could not."""
        used = fullness(self._patterns.loads, relaxed, len(self._most))
        short = np.isin(np.arange(len(used)), list(full))
        self._able = np.where(short, np.minimum(self._able, used - STEP), np.maximum(self._able, used))
        self._unable = np.where(short, np.minimum(self._unable, used), np.maximum(self._unable, self._able + STEP))
        self._able, self._unable = self._able.clip(LOADS[0], LOADS[-1]), self._unable.clip(LOADS[0], UNTRIED)
        drawn = self._random.uniform(-STEP / 2, STEP / 2, len(used))
        most = (self._able + self._unable) / 2 + drawn
        self._most = np.rint(most).astype(np.int64).clip(LOADS[0], LOADS[-1])


def _allowed(problem: Problem, allocation: Allocation) -> Allocation:
    """Return the allocation without the placements that break rules which bundles leave out."""
    options = problem.options
    plain = not options.gpu_memory_mib.any() and problem.jobs_per_gpu is None and not problem.has_shared_limits
    if plain and _one_type_a_node(problem):
        return allocation
    state = State(problem)
    kept = list(state.placements)
    for job, placement in enumerate(allocation):
        if placement is not None and kept[job] is None and fits(state, job, placement):
            state.apply(Move(job, placement))
            kept[job] = placement
    return tuple(kept)


def _one_type_a_node(problem: Problem) -> bool:
    first_of_node = problem.node_gpu_start[problem.gpu_node]
    return bool((problem.gpu_type[first_of_node] == problem.gpu_type).all())
