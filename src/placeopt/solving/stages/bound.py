"""
Stage ``bound``: sums, then a relaxation over patterns of single GPUs, bound rounds of any size; how it is made integer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from placeopt.errors import PlaceoptError
from placeopt.formulations.gpu_patterns import GpuPatterns, build_gpu_patterns, gpu_milli_objective
from placeopt.formulations.node_rows import price_full_nodes
from placeopt.formulations.totals import RELAXES as TOTALS
from placeopt.formulations.totals import bound_by_totals
from placeopt.heuristics.bundles import BundleQuota
from placeopt.linear import IntArray
from placeopt.model.plan import StageOutcome
from placeopt.problem import Problem, State, open_state
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.result import Rounding, Solution, SolveOptions
from placeopt.solving import sizes
from placeopt.solving.context import BegunBound, SolveContext
from placeopt.solving.greedy_rule import has_many_fractions
from placeopt.solving.stage import StageReport, StatedReason, outcome_without_proof
from placeopt.terms.standing import relaxed_state

BUILD_SHARE = 1 / 8
"""Part of the time left in which the relaxation has to be built before greedy; otherwise it comes later."""
NO_PRESOLVE = (("presolve", "off"),)
"""Presolve takes longer than the simplex method does without it: 0.2 to 0.3 s against 0.1 on the openb trace."""

ALREADY_PROVEN = "the value is proven already"


@dataclass(frozen=True)
class BeginBound:
    """Bounds a large round by sums over the cluster, and lets a solver work on its relaxation beside other stages."""

    name: ClassVar[str] = "bound"
    uses_solver: ClassVar[bool] = True

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only for a large round: in a small one a better bound is at hand soon."""
        if _is_proven(context):
            return ALREADY_PROVEN
        if sizes.product(context) < sizes.LARGE_PRODUCT:
            return "the round is small"
        return context.budget.stop_reason()

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Bound, and if a thread is free, build the relaxation and hand the solve on; the plan does not state that."""
        budget, state = context.budget, _state_of_whole(context)
        context.bounds.prove_value(bound_by_totals(state), TOTALS, of_whole=True)
        if _is_proven(context) or not context.solvers.is_apart or budget.threads == 1:
            return
        rounds = context.problem is context.whole and has_many_fractions(context.problem)
        try:
            patterns = build_gpu_patterns(state, time.monotonic() + BUILD_SHARE * budget.left_s)
        except PlaceoptError:
            return
        # it goes on until the plan is due, which is later than other stages may take
        options = replace(_options(context), time_limit_s=budget.params.time_limit_s)
        if rounds:
            options = replace(options, rounding=rounding_of(context.problem, patterns))
        begun = context.solvers.begin("highs", patterns.model, options)
        context.handover.begun_bound = BegunBound(patterns, begun, rounds)
        yield from ()


@dataclass(frozen=True)
class Bound:
    """
    Solves the relaxation, if it is built in time, and takes the bounds on value and GPU share that its duals prove.

    It is one of the whole round, also where look-ahead has narrowed it: what holds for all plans holds for some. Hands
    the relaxation to stages that make plans of it, unless the value is proven, time was short, or the round is
    narrowed.
    """

    name: ClassVar[str] = "bound"
    uses_solver: ClassVar[bool] = True

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only while the value is open; a solve that has begun is waited for even where time is over."""
        if context.handover.begun_bound is not None:
            return None
        if reason := context.budget.stop_reason():
            return reason
        return StatedReason(ALREADY_PROVEN) if _is_proven(context) else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Solve, once more if the solver fails."""
        budget, begun = context.budget, context.handover.begun_bound
        solution = None
        if begun is not None:
            solution = begun.bound(budget.left_s)
            if not begun.rounds or solution is None:
                begun.beside.drop()
            if solution is not None:
                context.solvers.note(solution)
            if _is_proven(context):
                yield StageReport(ALREADY_PROVEN, "skipped")
                return
        try:
            patterns = (
                build_gpu_patterns(_state_of_whole(context), budget.deadline) if begun is None else begun.patterns
            )
        except PlaceoptError as error:
            budget.note_error(error)
            yield StageReport(str(error), "skipped")
            return
        if solution is None:
            if budget.stopped():
                yield StageReport("no time left to wait for the relaxation", "skipped")
                return
            solution = _solve(context, patterns)
        yield _take(context, patterns, solution, None)
        if solution.failed and not budget.stopped():
            solution = _solve(context, patterns)
            yield _take(context, patterns, solution, "bound-again")
        budget.note_limit(solution.limit)
        context.handover.gpu_patterns = patterns if context.problem is context.whole else None


def _is_proven(context: SolveContext) -> bool:
    return context.incumbent.value == context.bounds.whole_value


def _state_of_whole(context: SolveContext) -> State:
    """Return the state of the whole round that bounds are made of."""
    return relaxed_state(open_state(context.whole)) if context.narrowed else context.relaxed


def _take(context: SolveContext, patterns: GpuPatterns, solution: Solution, step: str | None) -> StageReport:
    """Take in what is proven, and report it."""
    before = context.bounds.whole_value
    _prove(context, patterns, solution)
    detail = f"relaxation of {patterns.model.num_variables} columns"
    if solution.status == "optimal":
        return StageReport(detail, "proved", step=step)
    # cut short: whatever was proven by then holds, be it only what the bounds of the variables say
    ended = f", stopped by {solution.limit}" if solution.limit != "none" else ""
    cause = f" ({solution.message})" if solution.message else ""
    outcome: StageOutcome = "proved" if context.bounds.whole_value < before else outcome_without_proof(solution)
    return StageReport(f"{detail}: {solution.status}{ended}{cause}", outcome, step=step)


def _solve(context: SolveContext, patterns: GpuPatterns) -> Solution:
    return context.solvers.solve("highs", patterns.model, _options(context))


def _options(context: SolveContext) -> SolveOptions:
    return replace(context.budget.whole_options(), relax=True, extra=NO_PRESOLVE)


def _prove(context: SolveContext, patterns: GpuPatterns, solution: Solution) -> None:
    context.bounds.prove_value(solution.bound, patterns.relaxes, of_whole=True)
    if solution.duals is not None:
        context.bounds.prove_gpu_milli(dual_bound(gpu_milli_objective(patterns), solution.duals))


def rounding_of(problem: Problem, patterns: GpuPatterns) -> Rounding:
    """Return how the relaxation is rounded: jobs of several GPUs first, then patterns, then the rest."""
    options = problem.options
    several = (options.gpus * options.bundle_workers)[patterns.start_option[patterns.bundle_start]] > 1
    return Rounding(
        objective=price_full_nodes(patterns.model, patterns.loads, problem),
        groups=(patterns.bundle[several], patterns.gpu_pattern, patterns.bundle[~several]),
    )


def quotas(patterns: GpuPatterns, values: IntArray) -> list[BundleQuota]:
    """Return what each class of nodes takes by ``values``: jobs in the order of the file, and patterns of its GPUs."""
    jobs: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    filled: dict[int, list[tuple[int, int, tuple[int, ...]]]] = {}
    used: dict[int, int] = {}
    for i in np.flatnonzero(values[patterns.bundle]).tolist():
        s, count = int(patterns.bundle_start[i]), int(values[patterns.bundle[i]])
        jobs_of_group = patterns.start_jobs[s]
        first = used.get(jobs_of_group[0], 0)
        used[jobs_of_group[0]] = first + count
        entry = (int(patterns.start_option[s]), jobs_of_group[first : first + count])
        jobs.setdefault(int(patterns.bundle_class[i]), []).append(entry)
    shares = patterns.sizes.tolist()
    for i in np.flatnonzero(values[patterns.gpu_pattern]).tolist():
        slots = tuple(size for size, n in zip(shares, patterns.slots[i].tolist(), strict=True) for _ in range(n))
        filling = (int(values[patterns.gpu_pattern[i]]), int(patterns.pattern_share[i]), slots)
        filled.setdefault(int(patterns.pattern_class[i]), []).append(filling)
    return [BundleQuota(c, tuple(jobs[c]), tuple(filled.get(c, ()))) for c in sorted(jobs)]
