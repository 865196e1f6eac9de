"""
Linear relaxations, by HiGHS: solved for a bound, or also rounded to integers.

Rounding is one request: first the relaxation with an objective that leaves room where integers need it, from whose
optimum the simplex method needs next to nothing to the optimum of the model itself, which proves a bound. Both are
reported at once: a caller that has no time left goes on with them. Then the first is rounded by diving. One process
does it all, beside what its caller does meanwhile.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
from highspy import HighsModelStatus, HighsStatus

from placeopt.linear import IntArray, LinearModel
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.diving import Relaxed, dive
from placeopt.solvers.highs import INFEASIBLE, REFUSED, Session
from placeopt.solvers.reading import Reading
from placeopt.solvers.result import Basis, Rounding, Solution, Status

LARGEST_COST = 1 << 19
"""Coefficients to which costs are scaled down: HiGHS warns of excessive ones, beyond 10^6."""
DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4
"""HiGHS's numbers: dual to begin with and where bounds changed, primal where the objective changed."""


def solve_relaxation(reading: Reading, stop: threading.Event) -> Solution:
    """
    Solve the relaxation, and round it as ``options.rounding`` says, if it does; the rest as in `registry.Wrapper`.

    Returns ``optimal`` if the relaxation was solved, with its ``relaxed_values``, its ``duals`` and the bound that they
    prove in exact arithmetic. Where it is rounded, the values are those of the rounding's objective, and duals, bound
    and ``rounded`` are there if time was enough for them.
    """
    model, options = reading.model, reading.options
    if options.rounding is not None:
        return _rounded(reading, options.rounding, stop)
    with Session(model, stop, reading) as session:
        if session.refused:
            return reading.conclude("error", message=REFUSED)
        # With coefficients of 6e9 the dual simplex method ended with an error, ``kNotset``: its ratio test fails at
        # large dual values. HiGHS multiplies by this power of two, and divides duals by it again; both are exact.
        scale = LARGEST_COST.bit_length() - int(np.abs(model.objective).max(initial=0)).bit_length()
        session.solver.setOptionValue("user_objective_scale", min(scale, 0))
        if options.start is not None:
            _begin_at(session.solver, model, options.start)
        found = _run(session)
        basis = _basis(session.solver) if options.keep_basis and found.values is not None else None
        return replace(_solution(reading, session, found), relaxed_values=found.values, basis=basis)


def _run(session: Session) -> Relaxed:
    """Run, and return what is known then."""
    status, solution = session.run(), session.solver.getSolution()
    duals = np.array(solution.row_dual) if solution.dual_valid else None
    if status == HighsModelStatus.kOptimal and solution.value_valid and duals is not None:
        return Relaxed("optimal", np.array(solution.col_value), duals)
    cut: Status = "no_solution" if session.limit != "none" else "error"
    return Relaxed("infeasible" if status in INFEASIBLE else cut, None, duals, f"HiGHS ended with {status.name}")


def _solution(reading: Reading, session: Session, found: Relaxed) -> Solution:
    """The solution of a relaxation, with what its duals prove."""
    if found.status == "infeasible":
        return Solution("infeasible", seconds=reading.seconds)
    bound = reading.bound if found.duals is None else dual_bound(reading.model, found.duals)
    return Solution(
        found.status,
        session.limit,
        bound=bound,
        seconds=reading.seconds,
        message=found.message,
        duals=found.duals,
        failed=found.status == "error",
    )


def _rounded(reading: Reading, rounding: Rounding, stop: threading.Event) -> Solution:
    """Solve with the rounding's objective, prove, and dive; where that is cut, return what there is."""
    model = reading.model
    numbers = np.arange(model.num_variables, dtype=np.int32)
    with Session(replace(model, objective=rounding.objective), stop, reading) as session:
        solver = session.solver
        if session.refused:
            return reading.conclude("error", message=REFUSED)

        def priced(objective: IntArray, strategy: int) -> None:
            solver.setOptionValue("simplex_strategy", strategy)
            solver.changeColsCost(len(numbers), numbers, objective.astype(np.float64))

        def within(lower: IntArray, upper: IntArray) -> Relaxed:
            solver.changeColsBounds(len(numbers), numbers, lower.astype(np.float64), upper.astype(np.float64))
            return _run(session)

        solver.setOptionValue("presolve", "off")
        found = _run(session)
        if found.values is None:
            return replace(_solution(reading, session, found), duals=None, bound=reading.bound)
        priced(model.objective, PRIMAL_SIMPLEX)
        proof = _run(session)
        duals = proof.duals if proof.values is not None else None
        if duals is not None:
            reading.offer_exact_bound(dual_bound(model, duals))
        reading.report(duals=duals, relaxed_values=found.values)
        priced(rounding.objective, DUAL_SIMPLEX)
        integers = dive(model.lower, model.upper, found.values, rounding.groups, within)
        return Solution(
            "optimal",
            session.limit,
            bound=reading.bound,
            seconds=reading.seconds,
            duals=duals,
            relaxed_values=found.values,
            rounded=integers,
        )


_STATES = highspy.HighsBasisStatus.__members__.values()
_STATE_OF = {int(state): state for state in _STATES}
_AT_LOWER = int(highspy.HighsBasisStatus.kLower)


def _begin_at(solver: Any, model: LinearModel, start: Basis) -> None:
    """Hand over a basis; one that does not fit the model is left aside. Presolve would throw it away."""
    if len(start.rows) != model.num_rows or len(start.columns) > model.num_variables:
        return
    added = model.num_variables - len(start.columns)
    basis = highspy.HighsBasis()
    basis.col_status = [_STATE_OF[state] for state in start.columns.tolist()] + [_STATE_OF[_AT_LOWER]] * added
    basis.row_status = [_STATE_OF[state] for state in start.rows.tolist()]
    if solver.setBasis(basis) == HighsStatus.kOk:
        solver.setOptionValue("presolve", "off")


def _basis(solver: Any) -> Basis | None:
    basis = solver.getBasis()
    if not basis.valid:
        return None
    return Basis(
        np.fromiter(map(int, basis.col_status), dtype=np.int8), np.fromiter(map(int, basis.row_status), dtype=np.int8)
    )
