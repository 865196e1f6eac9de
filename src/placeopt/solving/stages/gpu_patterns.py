"""
Stage 2c: a plan from the relaxation over fillings: classes first, nodes after.

The relaxation with a price for full nodes is solved, rounded, and made into bundles on nodes; what is left goes by
greedy. First rounded down, for speed, then by diving; then again, with less of the classes of nodes whose bundles found
no room, until the deadline.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from placeopt.formulations.class_loads import LOADS, fullness, with_class_limits
from placeopt.formulations.cuts import with_cuts
from placeopt.formulations.gpu_patterns import GpuPatterns
from placeopt.formulations.node_patterns import shares_nest
from placeopt.heuristics import greedy
from placeopt.heuristics.bundles import BundleQuota, realise
from placeopt.heuristics.job_orders import order_jobs
from placeopt.linear import IntArray, LinearModel
from placeopt.problem import Allocation, Move, Problem, State
from placeopt.solvers.result import Solution
from placeopt.solving.context import SolveContext
from placeopt.solving.sizes import SIZES, product
from placeopt.solving.solver_call import Solve
from placeopt.solving.stages.bound import NO_PRESOLVE, SIMPLEX_WORK
from placeopt.solving.stages.diving import WHOLE, dive
from placeopt.terms.rules.registry import fits

PLANS_PER_SECOND = 0.2
"""Plans in deterministic mode, per second of the time limit: few enough for work, not the clock, to end the stage."""
CHEAPER, LOSS = 0.125, 1e-4
"""The price of full nodes gets so much lower where it costs more than this part of the value."""
SPREAD = 1.0
"""Prices of classes are drawn from e^-1 to e times that, so that every plan is another one."""
STEP, UNTRIED = 20, 1030
"""Thousandths of a class of nodes between what could be used and what could not; at first, more than all could not."""
MIN_SIZES = 3
"""Different shares of a GPU from which fillings are worth choosing: with fewer, greedy leaves nothing to find."""
RESERVES = 1.5
"""Time from a solution to a plan that is checked, before it is known, in times of what is kept back for the end."""
MOST_FRUITLESS = 20
"""Attempts in a row that may come to nothing, for want of a solver or of better plans."""
MOST_CUTS = 6
"""Times that rows of single nodes are added for one plan; they stay."""
FEW_PLANS = 3
"""Plans made where an exact stage follows."""


def suits(problem: Problem) -> bool:
    """
    Tell whether the round has many fractions of GPUs, and running jobs stay where they are.

    Fractions that divide one another are for ``patterns``, which knows whole nodes.
    """
    options = problem.options
    sizes = np.unique(options.milli[options.gpus > 0])
    return (
        problem.shares_bind
        and problem.jobs_per_gpu != 1
        and len(sizes) >= MIN_SIZES
        and not problem.changeable
        and not shares_nest(problem)
    )


def run_gpu_patterns(
    context: SolveContext,
    solve: Solve,
    gpu_patterns: GpuPatterns | None,
    score: str,
    order: str,
    *,
    followed: bool = False,
) -> None:
    """
    Offer plans made from the relaxation, if there is one: better ones as long as there is time.

    A few only where the round is small and ``followed`` by an exact stage.
    """
    if gpu_patterns is None or context.value_proven or context.within_gap:
        return
    started, before, refused = time.monotonic(), context.incumbent, None
    maker = _Maker(context, solve, gpu_patterns, score, order)
    made, fruitless, most = 0, 0, _most_plans(context, followed=followed)
    while made < most and fruitless < MOST_FRUITLESS and maker.in_time() and not context.stopped():
        allocation = maker.make(deep=made > 0)
        made, fruitless = made + 1, fruitless + 1
        if allocation is not None:
            refused = context.offer(allocation) or refused
            maker.note_time()
            fruitless = 0
        if context.value_proven or context.within_gap:
            break
    if not maker.in_time():
        context.note_limit("time")
    detail = f"{made} plans from {len(gpu_patterns.gpu_pattern)} fillings"
    if refused:
        context.record("fillings", "failed", started, f"{detail}; refused by the referee: {refused}")
    else:
        context.record("fillings", "improved" if context.incumbent is not before else "kept", started, detail)


def _most_plans(context: SolveContext, *, followed: bool) -> int:
    if followed and product(context) <= SIZES.exact_product["counts"]:
        return FEW_PLANS
    return 2 + int(PLANS_PER_SECOND * context.budget.time_limit_s) if context.budget.deterministic else 10**9


class _Maker:
    """Makes one allocation after the other, and learns which classes of nodes were too full."""

    def __init__(self, context: SolveContext, solve: Solve, gpu_patterns: GpuPatterns, score: str, order: str) -> None:
        self._context, self._solve, self._fillings = context, solve, gpu_patterns
        self._score, self._order = score, order_jobs(context.problem, order)
        classes = int(context.problem.node_class.max()) + 1
        self._rate, self._most = 1.0, np.full(classes, LOADS[-1], dtype=np.int64)
        self._able, self._unable = np.full(classes, float(LOADS[-3])), np.full(classes, float(UNTRIED))
        options = context.problem.options
        several = (options.gpus * options.bundle_workers)[gpu_patterns.start_option[gpu_patterns.bundle_start]] > 1
        self._groups = (gpu_patterns.bundle[several], gpu_patterns.gpu_pattern, gpu_patterns.bundle[~several])
        self._random = np.random.default_rng(context.budget.seed)
        self._began, self._longest, self._measured = 0.0, RESERVES * context.budget.reserve_s, False

    def in_time(self, seconds: float = 0.0) -> bool:
        """Whether what cannot be cut short, all but the solves, may well end before the deadline, ``seconds`` later."""
        limits = self._context.budget
        return limits.deterministic or limits.left_s > self._longest + seconds

    def make(self, *, deep: bool) -> Allocation | None:
        """Solve, round, realise; None if time ended it, or nothing better can come of it."""
        spread = SPREAD if deep else 0.0
        rates = self._rate * np.exp(self._random.uniform(-spread, spread, len(self._most)))
        model, relaxed = self._solve_with_cuts(rates)
        if relaxed is None:
            return None
        gpu_patterns, problem = self._fillings, self._context.problem
        values: IntArray | None = np.floor(relaxed + WHOLE).astype(np.int64)
        if deep and self._hopeless(relaxed):
            self._rate *= CHEAPER
            self._most[:] = LOADS[-1]
            return None
        if deep:
            values = dive(model, relaxed, self._groups, self._relax, self._hopeless)
        if values is None or not self.in_time():
            return None
        self._began = time.monotonic()
        state = State(problem)
        bundle_columns, short = realise(state, quotas(gpu_patterns, values))
        self._learn(relaxed, {c for c, _ in short})
        if self._worth(relaxed) < self._context.value_bound * (1 - LOSS):
            self._rate *= CHEAPER
        allocation = list(state.placements)
        for job, placement in bundle_columns:
            allocation[job] = placement
        return greedy(problem, self._order, self._score, start=_lawful(problem, tuple(allocation))).allocation

    def _solve_with_cuts(self, rates: np.ndarray) -> tuple[LinearModel, np.ndarray | None]:
        """Solve the relaxation with prices, and again with rows of single nodes that its solution breaks."""
        problem = self._context.problem
        for tries in range(MOST_CUTS + 1):
            gpu_patterns = self._fillings
            model = with_class_limits(gpu_patterns.model, gpu_patterns.loads, problem, rates, self._most)
            began = time.monotonic()
            relaxed = self._relax(model).relaxed_values
            took = time.monotonic() - began
            if relaxed is None or tries == MOST_CUTS or not self.in_time(2 * took):
                break
            tighter = with_cuts(gpu_patterns, self._context.relaxed, relaxed)
            if tighter is None:
                break
            self._fillings = tighter
        return model, relaxed

    def note_time(self) -> None:
        """Learn how long it takes from a solution to a plan that is checked; the first time is only guessed."""
        took = time.monotonic() - self._began
        self._longest = max(self._longest, took) if self._measured else took
        self._measured = True

    def _hopeless(self, values: np.ndarray) -> bool:
        """Whether the value of a relaxation is no better than what is held."""
        best, worth = self._context.incumbent, self._worth(values)
        return best is not None and worth < best.value + 1 - WHOLE * max(1.0, abs(worth))

    def _worth(self, values: np.ndarray) -> float:
        """Net value of a relaxation, all prices aside."""
        model = self._fillings.model
        return float(model.objective @ values) + model.offset

    def _learn(self, relaxed: np.ndarray, full: set[int]) -> None:
        """Between how full a class could be made and how full it could not, half-way is next."""
        used = fullness(self._fillings.loads, relaxed, len(self._most))
        short = np.isin(np.arange(len(used)), list(full))
        self._able = np.where(short, np.minimum(self._able, used - STEP), np.maximum(self._able, used))
        self._unable = np.where(short, np.minimum(self._unable, used), np.maximum(self._unable, self._able + STEP))
        self._able, self._unable = self._able.clip(LOADS[0], LOADS[-1]), self._unable.clip(LOADS[0], UNTRIED)
        drawn = self._random.uniform(-STEP / 2, STEP / 2, len(used))
        most = (self._able + self._unable) / 2 + drawn
        self._most = np.rint(most).astype(np.int64).clip(LOADS[0], LOADS[-1])

    def _relax(self, model: LinearModel) -> Solution:
        limits = self._context.budget
        seconds = max(limits.left_s - self._longest, 0.0)
        options = replace(limits.options(SIMPLEX_WORK, seconds), relax=True, extra=NO_PRESOLVE)
        return self._solve("highs", model, options)


def quotas(gpu_patterns: GpuPatterns, values: IntArray) -> list[BundleQuota]:
    """What each class of nodes takes by ``values``: jobs in the order of the file, and fillings."""
    jobs: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    pattern_columns: dict[int, list[tuple[int, int, tuple[int, ...]]]] = {}
    used: dict[int, int] = {}
    for i in np.flatnonzero(values[gpu_patterns.bundle]).tolist():
        s, count = int(gpu_patterns.bundle_start[i]), int(values[gpu_patterns.bundle[i]])
        job_group = gpu_patterns.start_jobs[s]
        first = used.get(job_group[0], 0)
        used[job_group[0]] = first + count
        entry = (int(gpu_patterns.start_option[s]), job_group[first : first + count])
        jobs.setdefault(int(gpu_patterns.bundle_class[i]), []).append(entry)
    sizes = gpu_patterns.sizes.tolist()
    for i in np.flatnonzero(values[gpu_patterns.gpu_pattern]).tolist():
        slots = tuple(size for size, n in zip(sizes, gpu_patterns.slots[i].tolist(), strict=True) for _ in range(n))
        gpu_pattern = (int(values[gpu_patterns.gpu_pattern[i]]), int(gpu_patterns.pattern_share[i]), slots)
        pattern_columns.setdefault(int(gpu_patterns.pattern_class[i]), []).append(gpu_pattern)
    return [BundleQuota(c, tuple(jobs[c]), tuple(pattern_columns.get(c, ()))) for c in sorted(jobs)]


def _lawful(problem: Problem, allocation: Allocation) -> Allocation:
    """Leave out what rules forbid that bundles do not ask."""
    options = problem.options
    plain = not options.gpu_memory_mib.any() and problem.jobs_per_gpu is None and not problem.policy.queues
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
