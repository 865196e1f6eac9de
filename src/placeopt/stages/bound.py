"""Stage 2a: the class relaxation, which bounds rounds of any size."""

from __future__ import annotations

import time

from placeopt.errors import PlaceoptError
from placeopt.formulations.fillings import Fillings, build_fillings, gpu_milli_objective
from placeopt.model.plan import StageOutcome
from placeopt.problem import open_state
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.result import Limit, SolveOptions
from placeopt.stages.round import Round
from placeopt.stages.solving import Solve

SIMPLEX_WORK = 60.0
NO_PRESOLVE = (("presolve", "off"),)
"""Presolve takes longer than the simplex method does without it: 0.2 to 0.3 s against 0.1 on the openb trace."""


def run_bound(round_: Round, solve: Solve, part: float = 1.0) -> Fillings | None:
    """
    Solve the relaxation, if it is built in time, and take the bounds on value and GPU share that its duals prove.

    It is one of the whole round, also where look-ahead has narrowed it: what holds for all plans holds for some. It may
    take ``part`` of the time that is left. Returns the relaxation, unsolved, for stages that make plans of it; None if
    they should not: the value is proven, time was short, or the round is narrowed.
    """
    started = time.monotonic()
    if round_.best is not None and round_.best.value == round_.whole_bound:
        round_.record("bound", "skipped", started, "the value is proven already")
        return None
    try:
        fillings = build_fillings(open_state(round_.whole), round_.limits.deadline)
    except PlaceoptError as error:
        round_.stopped()
        round_.record("bound", "skipped", started, str(error))
        return None
    failed = _attempt(round_, solve, fillings, "bound", started, part)
    if failed is not None and not round_.stopped():
        failed = _attempt(round_, solve, fillings, "bound-again", time.monotonic(), part)
    round_.cut(failed or "none")
    return fillings if round_.problem is round_.whole else None


def _attempt(round_: Round, solve: Solve, fillings: Fillings, name: str, started: float, part: float) -> Limit | None:
    """Solve once and take in what is proven. Returns what ended the solver if it failed, else None."""
    options = SolveOptions(
        time_limit_s=part * round_.limits.left_s,
        seed=round_.limits.seed,
        deterministic=round_.limits.deterministic,
        work_limit=SIMPLEX_WORK if round_.limits.deterministic else None,
        memory_limit_mib=round_.limits.memory_limit_mib,
        relax=True,
        extra=NO_PRESOLVE,
    )
    solution = solve("highs", fillings.model, options)
    if not solution.failed:
        round_.cut(solution.limit)
    before = round_.whole_bound
    round_.prove_value(solution.bound, fillings.relaxes, of_whole=True)
    if solution.duals is not None:
        milli = dual_bound(gpu_milli_objective(fillings), solution.duals)
        round_.gpu_milli_bound = min(milli, round_.gpu_milli_bound)
    detail = f"relaxation of {fillings.model.num_variables} columns"
    if solution.status == "optimal":
        round_.record(name, "proved", started, detail)
        return None
    # cut short: whatever was proven by then holds, be it only what the bounds of the variables say
    ended = f", stopped by {solution.limit}" if solution.limit != "none" else ""
    cause = f" ({solution.message})" if solution.message else ""
    outcome: StageOutcome = "proved" if round_.whole_bound < before else "failed"
    round_.record(name, outcome, started, f"{detail}: {solution.status}{ended}{cause}")
    return solution.limit if solution.failed else None
