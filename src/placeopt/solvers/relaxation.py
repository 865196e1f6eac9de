"""
Linear relaxations, by HiGHS: solved for a bound, or also rounded to integers.

Rounding is one request: first the relaxation with an objective that leaves room where integers need it, from whose
optimum the simplex method needs next to nothing to the optimum of the model itself, which proves a bound. Both are
reported at once: a caller that has no time left goes on with them. Then the first is rounded by diving. One process
does it all, beside what its caller does meanwhile.

Relaxations that are rounded have tens of thousands of columns, of which a solution uses some hundred. So they are
sifted (Bixby et al. 1992): most columns are left out until prices ask for them, which takes a third of the time.
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
from placeopt.solvers.reading import EXACT, LOOSE, Reading
from placeopt.solvers.result import Basis, Rounding, Solution, Status

LARGEST_COST = 10**6
"""Beyond such coefficients HiGHS warns of excessive costs."""
DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4
"""HiGHS's numbers: dual to begin with and where bounds changed, primal where columns came or the objective changed."""


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
    sifted = _Sifted(replace(model, objective=rounding.objective), rounding)
    with Session(sifted.part(), stop, reading) as session:
        if session.refused:
            return reading.conclude("error", message=REFUSED)
        session.solver.setOptionValue("presolve", "off")
        sifted.session = session
        found = sifted.optimum()
        if found.values is None:
            return replace(_solution(reading, session, found), duals=None, bound=reading.bound)
        sifted.change(model.objective)
        proof = sifted.optimum()
        duals = proof.duals if proof.values is not None else None
        if duals is not None:
            reading.offer_exact_bound(dual_bound(model, duals))
        sifted.change(rounding.objective)
        reading.report(duals=duals, relaxed_values=found.values)
        integers = dive(model.lower, model.upper, found.values, rounding.groups, sifted.within)
        return Solution(
            "optimal",
            session.limit,
            bound=reading.bound,
            seconds=reading.seconds,
            duals=duals,
            relaxed_values=found.values,
            rounded=integers,
        )


class _Sifted:
    """A relaxation that HiGHS holds with those of its columns that were needed so far, solved again after changes."""

    session: Session

    def __init__(self, model: LinearModel, rounding: Rounding) -> None:
        self._model, self._row = model, model.row_of_nonzero
        self._objective, self._lower, self._upper = model.objective, model.lower, model.upper
        self._takes_part = np.ones(model.num_variables, dtype=bool)
        self._takes_part[rounding.optional] = False
        self._takes_part[rounding.first] = True
        self._columns: IntArray = np.flatnonzero(self._takes_part)

    def part(self) -> LinearModel:
        """Return the model with the columns that take part."""
        model, stays = self._model, self._takes_part[self._model.columns]
        count = np.bincount(self._row[stays], minlength=model.num_rows)
        return replace(
            model,
            lower=model.lower[self._columns],
            upper=model.upper[self._columns],
            objective=model.objective[self._columns],
            row_start=np.concatenate(([0], np.cumsum(count))),
            columns=(np.cumsum(self._takes_part) - 1)[model.columns[stays]],
            coefficients=model.coefficients[stays],
        )

    def optimum(self) -> Relaxed:
        """Return the optimum over all columns, with duals for which none that is left out would gain."""
        model, sign = self._model, 1 if self._model.sense == "max" else -1
        while True:
            found = self._run()
            if found.values is None or found.duals is None:
                return found
            priced = np.bincount(model.columns, model.coefficients * found.duals[self._row], model.num_variables)
            gain = sign * (self._objective - priced)
            least = max(LOOSE, EXACT * float(np.abs(self._objective).max(initial=0)))
            entering = np.flatnonzero(~self._takes_part & (gain > least) & (self._upper > 0))
            if not len(entering):
                return found
            self._add(entering[np.argsort(-gain[entering], kind="stable")[: model.num_rows]])
            self._prefer(PRIMAL_SIMPLEX)

    def within(self, lower: IntArray, upper: IntArray) -> Relaxed:
        """Return the optimum within other bounds, over the columns that take part: no other enters."""
        self._bound(lower, upper)
        self._prefer(DUAL_SIMPLEX)
        return self._run()

    def change(self, objective: IntArray) -> None:
        """Go on with another objective, within the bounds of the model."""
        numbers = np.arange(len(self._columns), dtype=np.int32)
        self._objective = objective
        self.session.solver.changeColsCost(len(numbers), numbers, objective[self._columns].astype(np.float64))
        self._bound(self._model.lower, self._model.upper)
        self._prefer(PRIMAL_SIMPLEX)

    def _run(self) -> Relaxed:
        found = _run(self.session)
        if found.values is None:
            return found
        values = np.zeros(self._model.num_variables)
        values[self._columns] = found.values
        return found._replace(values=values)

    def _prefer(self, strategy: int) -> None:
        self.session.solver.setOptionValue("simplex_strategy", strategy)

    def _bound(self, lower: IntArray, upper: IntArray) -> None:
        numbers = np.arange(len(self._columns), dtype=np.int32)
        self._lower, self._upper = lower, upper
        low, high = (bounds[self._columns].astype(np.float64) for bounds in (lower, upper))
        self.session.solver.changeColsBounds(len(numbers), numbers, low, high)

    def _add(self, entering: IntArray) -> None:
        """Let more columns take part."""
        model, place = self._model, np.full(self._model.num_variables, -1)
        place[entering] = np.arange(len(entering))
        entries = np.flatnonzero(place[model.columns] >= 0)
        entries = entries[np.argsort(place[model.columns[entries]], kind="stable")]
        count = np.bincount(place[model.columns[entries]], minlength=len(entering))
        costs, low, high = (a[entering].astype(np.float64) for a in (self._objective, self._lower, self._upper))
        self.session.solver.addCols(
            len(entering),
            costs,
            low,
            high,
            len(entries),
            (np.cumsum(count) - count).astype(np.int32),
            self._row[entries].astype(np.int32),
            model.coefficients[entries].astype(np.float64),
        )
        self._takes_part[entering] = True
        self._columns = np.concatenate((self._columns, entering))


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
