"""
A relaxation of many columns, its bound, and integers from it, in one request to HiGHS.

First the relaxation with an objective that leaves room where integers need it, from whose optimum the simplex method
needs next to nothing to the optimum of the model itself, which proves a bound. Both are reported at once: a caller that
has no time left goes on with them. Then the first is rounded by diving. One process does it all, beside what its caller
does meanwhile.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np

from placeopt.linear import LinearModel
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.diving import WHOLE, Relaxed, dive
from placeopt.solvers.reading import OnProgress, Reading
from placeopt.solvers.result import Progress, Rounding, Solution, SolveOptions
from placeopt.solvers.sifting import SiftedRelaxation


def solve_and_round(
    model: LinearModel,
    options: SolveOptions,
    rounding: Rounding,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
) -> Solution:
    """
    Solve the relaxation and round it, as ``rounding`` says; the rest as in `registry.Solve`.

    Returns ``optimal`` if the relaxation with the other objective was solved, with its ``relaxed_values``; ``duals``
    and what they prove, and ``rounded``, are there if time was enough for them.
    """
    reading = Reading(model, options, None)
    settled = reading.settled()
    if settled is not None:
        return settled
    relaxation = SiftedRelaxation(model, rounding, options, stop)
    try:
        return _solved(model, rounding, relaxation, reading, on_progress)
    finally:
        relaxation.close()


def _solved(
    model: LinearModel,
    rounding: Rounding,
    relaxation: SiftedRelaxation,
    reading: Reading,
    on_progress: OnProgress | None,
) -> Solution:
    found, duals = relaxation.optimum()
    if found.values is None:
        return _cut(found, relaxation, reading)
    solved = Solution("optimal", bound=reading.bound, relaxed_values=found.values)
    if rounding.prove:
        relaxation.change(model.objective, model.upper)
        _, duals = relaxation.optimum()
        if duals is not None:
            solved = replace(solved, bound=dual_bound(model, duals), duals=duals)
        relaxation.change(rounding.objective, rounding.upper)
    if on_progress is not None:
        on_progress(Progress(None, solved.bound, reading.seconds, duals=duals, relaxed_values=found.values))
    rounded = dive(
        model.lower,
        rounding.upper,
        found.values,
        rounding.groups,
        relaxation.within,
        lambda values: _is_hopeless(model, values, rounding.least),
    )
    return replace(solved, limit=relaxation.limit, seconds=reading.seconds, rounded=rounded)


def _is_hopeless(model: LinearModel, values: np.ndarray, least: int | None) -> bool:
    """Tell whether a relaxation is worth no more than ``least``, by the objective of the model."""
    if least is None:
        return False
    worth = float(model.objective @ values) + model.offset
    return worth < least + 1 - WHOLE * max(1.0, abs(worth))


def _cut(found: Relaxed, relaxation: SiftedRelaxation, reading: Reading) -> Solution:
    """Return the solution of a relaxation that was not solved."""
    failed = found.status == "error"
    message = "HiGHS failed" if failed else ""
    bound = None if found.status == "infeasible" else reading.bound
    return Solution(
        found.status, relaxation.limit, bound=bound, seconds=reading.seconds, message=message, failed=failed
    )
