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


def run_bound(round_: Round, solve: Solve) -> None:
    """
    Solve the relaxation, if it is built in time, and take the bounds on value and GPU share that its duals prove.

    It is one of the whole round, also where look-ahead has narrowed it: what holds for all plans holds for some.
    """
    started = time.monotonic()
    if round_.best is not None and round_.best.value == round_.whole_bound:
        round_.record("bound", "skipped", started, "the value is proven already")
        return
    try:
        fillings = build_fillings(open_state(round_.whole), round_.limits.deadline)
    except PlaceoptError as error:
        round_.stopped()
        round_.record("bound", "skipped", started, str(error))
        return
    failed = _attempt(round_, solve, fillings, "bound", started)
    if failed is not None and not round_.stopped():
        failed = _attempt(round_, solve, fillings, "bound-again", time.monotonic())
    round_.cut(failed or "none")


def _attempt(round_: Round, solve: Solve, fillings: Fillings, name: str, started: float) -> Limit | None:
    """Solve once and take in what is proven. Returns what ended the solver if it failed, else None."""
    options = SolveOptions(
        time_limit_s=round_.limits.left_s,
        seed=round_.limits.seed,
        deterministic=round_.limits.deterministic,
        work_limit=SIMPLEX_WORK if round_.limits.deterministic else None,
        memory_limit_mib=round_.limits.memory_limit_mib,
        relax=True,
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
