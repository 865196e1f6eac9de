"""
Sifting (Bixby et al. 1992): a linear program of many columns, most of which are left out until prices ask for them.

Relaxations over GPU patterns have tens of thousands of columns, of which a solution uses some hundred. With a tenth of
them the simplex method takes a third of the time, and the columns that its duals ask for then are few.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import highspy
import numpy as np
from highspy import HighsModelStatus, HighsStatus
from highspy._core import cb as callbacks

from placeopt.linear import NO_LOWER, NO_UPPER, IntArray, LinearModel
from placeopt.solvers.diving import Relaxed
from placeopt.solvers.highs import INFEASIBLE, ITERATIONS_PER_WORK, LIMITS, new_solver, set_options
from placeopt.solvers.result import Limit, Rounding, SolveOptions

DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4
"""HiGHS's numbers: dual to begin with and where bounds changed, primal where columns came or the objective changed."""
LEAST_GAIN, LEAST_SHARE = 1e-6, 1e-9
"""Gain for a unit of a column from which it enters; the second in shares of the largest coefficient."""
MOST_PER_ROW = 1
"""Columns that enter at once, for each row of the model: those that gain most."""


class SiftedRelaxation:
    """
    The linear relaxation of a model, over those of its columns that were needed so far; first as it is rounded.

    - ``limit``: What ended the latest solve, if anything did.
    - ``columns``: The columns that take part.
    """

    def __init__(
        self, model: LinearModel, rounding: Rounding, options: SolveOptions, stop: threading.Event | None
    ) -> None:
        self.limit: Limit = "none"
        self._model, self._stop = model, stop
        self._ends = time.monotonic() + options.time_limit_s
        self._iterations = None if options.work_limit is None else int(options.work_limit * ITERATIONS_PER_WORK)
        self._sign = 1 if model.sense == "max" else -1
        self._row = model.row_of_nonzero
        self._objective, self._lower, self._upper = rounding.objective, model.lower, rounding.upper
        self._takes_part = np.ones(model.num_variables, dtype=bool)
        self._takes_part[rounding.optional] = False
        self._takes_part[rounding.first] = True
        self.columns: IntArray = np.flatnonzero(self._takes_part)
        self._solver = new_solver()
        set_options(self._solver, model, options)
        self._solver.setOptionValue("presolve", "off")
        self._attach()
        self._strategy = DUAL_SIMPLEX
        self._was_refused = not self._pass()

    def close(self) -> None:
        """Free what HiGHS holds."""
        self._solver.clear()

    def optimum(self) -> tuple[Relaxed, np.ndarray | None]:
        """Return the optimum over all columns, and its duals, (m,), for which none that is left out would gain."""
        while True:
            found = self._run()
            if found.values is None:
                return found, None
            duals = np.array(self._solver.getSolution().row_dual)
            gain = self._sign * (self._objective - self._priced(duals))
            least = max(LEAST_GAIN, LEAST_SHARE * float(np.abs(self._objective).max(initial=0)))
            entering = np.flatnonzero(~self._takes_part & (gain > least) & (self._upper > 0))
            if not len(entering):
                return found, duals
            most = MOST_PER_ROW * self._model.num_rows
            self._add(entering[np.argsort(-gain[entering], kind="stable")[:most]])
            self._strategy = PRIMAL_SIMPLEX

    def change(self, objective: IntArray, upper: IntArray) -> None:
        """Go on with another objective, and other upper bounds."""
        numbers = np.arange(len(self.columns), dtype=np.int32)
        self._objective = objective
        self._solver.changeColsCost(len(numbers), numbers, objective[self.columns].astype(np.float64))
        self._bound(self._model.lower, upper)
        self._strategy = PRIMAL_SIMPLEX

    def within(self, lower: IntArray, upper: IntArray) -> Relaxed:
        """Return the optimum within other bounds, over the columns that take part: no other enters."""
        self._bound(lower, upper)
        self._strategy = DUAL_SIMPLEX
        return self._run()

    def _bound(self, lower: IntArray, upper: IntArray) -> None:
        numbers = np.arange(len(self.columns), dtype=np.int32)
        self._lower, self._upper = lower, upper
        low, high = (bounds[self.columns].astype(np.float64) for bounds in (lower, upper))
        self._solver.changeColsBounds(len(numbers), numbers, low, high)

    def _run(self) -> Relaxed:
        left_s = self._ends - time.monotonic()
        if self._was_refused:
            return Relaxed("error")
        if left_s <= 0 or (self._stop is not None and self._stop.is_set()):
            self.limit = "time" if left_s <= 0 else "user"
            return Relaxed("no_solution")
        solver = self._solver
        solver.setOptionValue("time_limit", solver.getRunTime() + left_s)  # it counts all runs
        solver.setOptionValue("simplex_strategy", self._strategy)
        if self._iterations is not None:
            solver.setOptionValue("simplex_iteration_limit", max(self._iterations, 0))
        if solver.run() == HighsStatus.kError:
            return Relaxed("error")
        if self._iterations is not None:
            self._iterations -= max(int(solver.getInfo().simplex_iteration_count), 0)
        status = solver.getModelStatus()
        if status == HighsModelStatus.kOptimal:
            values = np.zeros(self._model.num_variables)
            values[self.columns] = solver.getSolution().col_value
            return Relaxed("optimal", values)
        if status in INFEASIBLE:
            return Relaxed("infeasible")
        if status == HighsModelStatus.kInterrupt:
            self.limit = "user"
        elif status in LIMITS:
            self.limit = LIMITS[status]
        return Relaxed("no_solution" if self.limit != "none" else "error")

    def _priced(self, duals: np.ndarray) -> np.ndarray:
        """Return ``duals @ A``, (n,)."""
        model = self._model
        weights = model.coefficients * duals[self._row]
        return np.bincount(model.columns, weights, minlength=model.num_variables)

    def _pass(self) -> bool:
        """Hand over the columns that take part; whether HiGHS took them."""
        model, infinity = self._model, highspy.kHighsInf
        stays = self._takes_part[model.columns]
        number = np.cumsum(self._takes_part) - 1
        start = np.concatenate(([0], np.cumsum(np.bincount(self._row[stays], minlength=model.num_rows))))
        status = self._solver.passModel(
            len(self.columns),
            model.num_rows,
            int(start[-1]),
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMaximize if model.sense == "max" else highspy.ObjSense.kMinimize),
            0.0,
            self._objective[self.columns].astype(np.float64),
            self._lower[self.columns].astype(np.float64),
            self._upper[self.columns].astype(np.float64),
            np.where(model.row_lower == NO_LOWER, -infinity, model.row_lower),
            np.where(model.row_upper == NO_UPPER, infinity, model.row_upper),
            start.astype(np.int32),
            number[model.columns[stays]].astype(np.int32),
            model.coefficients[stays].astype(np.float64),
            np.zeros(len(self.columns), dtype=np.int32),
        )
        return bool(status != HighsStatus.kError)

    def _add(self, entering: IntArray) -> None:
        """Let more columns take part."""
        model = self._model
        place = np.full(model.num_variables, -1, dtype=np.int64)
        place[entering] = np.arange(len(entering))
        entries = np.flatnonzero(place[model.columns] >= 0)
        entries = entries[np.argsort(place[model.columns[entries]], kind="stable")]
        count = np.bincount(place[model.columns[entries]], minlength=len(entering))
        self._solver.addCols(
            len(entering),
            self._objective[entering].astype(np.float64),
            self._lower[entering].astype(np.float64),
            self._upper[entering].astype(np.float64),
            len(entries),
            (np.cumsum(count) - count).astype(np.int32),
            self._row[entries].astype(np.int32),
            model.coefficients[entries].astype(np.float64),
        )
        self._takes_part[entering] = True
        self.columns = np.concatenate((self.columns, entering))

    def _attach(self) -> None:
        """Ask HiGHS to be called, so that a stop ends it."""
        stop, kind = self._stop, callbacks.HighsCallbackType.kCallbackSimplexInterrupt
        if stop is None:
            return

        def called(_kind: int, _message: str, _out: Any, back: Any, _data: object) -> None:
            if stop.is_set():
                back.user_interrupt = True

        self._solver.setCallback(called, None)
        self._solver.startCallback(kind)
