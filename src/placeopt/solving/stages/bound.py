"""Stage 2a: the class relaxation, which bounds rounds of any size."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from placeopt.errors import PlaceoptError
from placeopt.formulations.cuts import with_cuts
from placeopt.formulations.gpu_patterns import GpuPatterns, build_gpu_patterns, gpu_milli_objective
from placeopt.model.plan import StageOutcome
from placeopt.problem import State, open_state
from placeopt.solvers.beside import Beside
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.result import Limit, Solution, SolveOptions
from placeopt.solving.context import SolveContext
from placeopt.solving.sizes import product
from placeopt.solving.solver_call import Begin, Solve
from placeopt.terms.standing import relaxed_state

SIMPLEX_WORK = 60.0
"""Of a relaxation in deterministic rounds, in units of roughly a second: a guard, they take 0.1 s on openb."""
BESIDE_PRODUCT = 1_000_000
"""Waiting jobs x GPUs from which the relaxation is solved beside greedy and the referee."""
BESIDE_RESERVES, BUILD_RESERVES, BUILD_SHARE = 1.5, 0.75, 0.1
"""
Times what is kept back for the end: so much must be left to begin the relaxation before greedy, which takes one and may
not be cut short for a bound; so much may go into building it, which takes less than half, or such a part of what is
left. Otherwise it comes later.
"""
MOST_CUTS, CUT_SHARE, CUT_GRACE_S = 10, 0.05, 0.05
"""Times that rows of single nodes are added, part of the time left that they may take, what the last may be late."""
NO_PRESOLVE = (("presolve", "off"),)
"""Presolve takes longer than the simplex method does without it: 0.2 to 0.3 s against 0.1 on the openb trace."""


@dataclass(frozen=True)
class Asked:
    """A relaxation that is being solved while other stages work."""

    state: State
    gpu_patterns: GpuPatterns
    beside: Beside


def ask_bound(context: SolveContext, begin: Begin) -> Asked | None:
    """
    Let the relaxation of a large round be solved beside what needs no solver.

    None where that is of no use: a small round, one thread only, too little time, or a model not built in time.
    """
    limits = context.budget
    if limits.threads == 1 or limits.deterministic or product(context) < BESIDE_PRODUCT:
        return None
    if limits.left_s < BESIDE_RESERVES * limits.reserve_s:
        return None
    try:
        state = relaxed_state(open_state(context.whole)) if context.narrowed else context.relaxed
        seconds = max(BUILD_RESERVES * limits.reserve_s, BUILD_SHARE * limits.left_s)
        gpu_patterns = build_gpu_patterns(state, time.monotonic() + seconds)
    except PlaceoptError:
        return None
    # it goes on until the plan is due, which is later than other stages may take
    options = replace(_options(context, limits.left_s), time_limit_s=limits.time_limit_s)
    return Asked(state, gpu_patterns, begin("highs", gpu_patterns.model, options))


def run_bound(context: SolveContext, solve: Solve, asked: Asked | None = None) -> GpuPatterns | None:
    """
    Solve the relaxation, if it is built in time, and take the bounds on value and GPU share that its duals prove.

    It is one of the whole round, also where look-ahead has narrowed it: what holds for all plans holds for some.
    ``asked`` is one that is being solved already; what is not there in time is dropped. Returns the relaxation,
    unsolved, for stages that make plans of it; None if they should not: the value is proven, time was short, or the
    round is narrowed.
    """
    started = time.monotonic()
    solution = None
    if asked is not None:
        solution = asked.beside.wait(context.budget.left_s)
        asked.beside.drop()
    if context.incumbent is not None and context.incumbent.value == context.whole_bound:
        context.record("bound", "skipped", started, "the value is proven already")
        return None
    try:
        state = (
            asked.state
            if asked is not None
            else relaxed_state(open_state(context.whole))
            if context.narrowed
            else context.relaxed
        )
        gpu_patterns = build_gpu_patterns(state, context.budget.deadline) if asked is None else asked.gpu_patterns
    except PlaceoptError as error:
        context.stopped()
        context.record("bound", "skipped", started, str(error))
        return None
    until = started + CUT_SHARE * context.budget.left_s
    if solution is None:
        if context.stopped():
            context.record("bound", "skipped", started, "no time left to wait for the relaxation")
            return None
        solution = _solve(context, solve, gpu_patterns, context.budget.left_s)
    values, failed = _take(context, gpu_patterns, solution, "bound", started)
    if failed is not None and not context.stopped():
        started = time.monotonic()
        solution = _solve(context, solve, gpu_patterns, context.budget.left_s)
        values, failed = _take(context, gpu_patterns, solution, "bound-again", started)
    context.note_limit(failed or "none")
    if values is not None:
        gpu_patterns = _tighten(context, solve, gpu_patterns, state, values, until)
    return gpu_patterns if context.problem is context.whole else None


def _take(
    context: SolveContext, gpu_patterns: GpuPatterns, solution: Solution, name: str, started: float
) -> tuple[np.ndarray | None, Limit | None]:
    """Take in what is proven. Returns the values, and what ended the solver if it failed."""
    if not solution.failed:
        context.note_limit(solution.limit)
    before = context.whole_bound
    _prove(context, gpu_patterns, solution)
    detail = f"relaxation of {gpu_patterns.model.num_variables} columns"
    if solution.status == "optimal":
        context.record(name, "proved", started, detail)
        return solution.relaxed_values, None
    # cut short: whatever was proven by then holds, be it only what the bounds of the variables say
    ended = f", stopped by {solution.limit}" if solution.limit != "none" else ""
    cause = f" ({solution.message})" if solution.message else ""
    outcome: StageOutcome = "proved" if context.whole_bound < before else "failed"
    context.record(name, outcome, started, f"{detail}: {solution.status}{ended}{cause}")
    return None, solution.limit if solution.failed else None


def _tighten(
    context: SolveContext, solve: Solve, gpu_patterns: GpuPatterns, state: State, values: np.ndarray, until: float
) -> GpuPatterns:
    """Add rows that the solution breaks and solve again, as long as there are any and it is not yet ``until``."""
    started, before, rows = time.monotonic(), context.whole_bound, gpu_patterns.model.num_rows
    for _ in range(MOST_CUTS):
        tighter = with_cuts(gpu_patterns, state, values)
        if tighter is None or context.stopped() or (not context.budget.deterministic and time.monotonic() > until):
            break
        gpu_patterns = tighter
        solution = _solve(context, solve, gpu_patterns, max(until - time.monotonic(), 0.0) + CUT_GRACE_S)
        _prove(context, gpu_patterns, solution)
        if solution.relaxed_values is None:
            break
        values = solution.relaxed_values
    if context.whole_bound < before:
        context.record("cuts", "proved", started, f"{gpu_patterns.model.num_rows - rows} rows of single nodes")
    return gpu_patterns


def _solve(context: SolveContext, solve: Solve, gpu_patterns: GpuPatterns, seconds: float) -> Solution:
    return solve("highs", gpu_patterns.model, _options(context, seconds))


def _options(context: SolveContext, seconds: float) -> SolveOptions:
    return replace(context.budget.options(SIMPLEX_WORK, seconds), relax=True, extra=NO_PRESOLVE)


def _prove(context: SolveContext, gpu_patterns: GpuPatterns, solution: Solution) -> None:
    context.prove_value(solution.bound, gpu_patterns.relaxes, of_whole=True)
    if solution.duals is not None:
        milli = dual_bound(gpu_milli_objective(gpu_patterns), solution.duals)
        context.gpu_milli_bound = min(milli, context.gpu_milli_bound)
