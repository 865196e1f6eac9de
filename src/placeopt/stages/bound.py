"""Stage 2a: the class relaxation, which bounds rounds of any size."""

from __future__ import annotations

import time

from placeopt.formulations.fillings import build_fillings, gpu_milli_objective
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.result import SolveOptions
from placeopt.stages.round import Round
from placeopt.stages.solving import Solve

SIMPLEX_WORK = 60.0


def run_bound(round_: Round, solve: Solve) -> None:
    """Solve the relaxation and take its certified bound on value, and the same duals' bound on GPU share."""
    started = time.monotonic()
    if round_.value_proven:
        round_.record("bound", "skipped", started, "the value is proven already")
        return
    fillings = build_fillings(round_.base)
    options = SolveOptions(
        time_limit_s=round_.limits.left_s,
        seed=round_.limits.seed,
        deterministic=round_.limits.deterministic,
        work_limit=SIMPLEX_WORK if round_.limits.deterministic else None,
        memory_limit_mib=round_.limits.memory_limit_mib,
        relax=True,
    )
    solution = solve("highs", fillings.model, options)
    if solution.limit != "none":
        round_.cut(solution.limit)
    if solution.bound is None:
        detail = f"no bound: {solution.status}, limit {solution.limit}. {solution.message}".strip()
        round_.record("bound", "failed", started, detail)
        return
    round_.prove_value(solution.bound, fillings.relaxes)
    if solution.duals is not None:
        milli = dual_bound(gpu_milli_objective(fillings, round_.problem), solution.duals)
        round_.gpu_milli_bound = min(milli, round_.gpu_milli_bound)
    round_.record("bound", "proved", started, f"relaxation of {fillings.model.num_variables} columns")
