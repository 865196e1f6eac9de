"""
Mixed-integer models in floating point, solved by HiGHS or through PuLP, and the check of their solutions.

Integer variables are rounded, the objective is recomputed, and a claim of optimality counts only where the objective
meets the solver's bound within the tolerance. Bounds are the solver's own: floating point proves none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from placeopt.errors import Unsupported
from placeopt.linear import IntArray, Sense
from placeopt.solvers.memory import memory_limit
from placeopt.solvers.result import Outcome, SolveOptions

FloatArray = NDArray[np.float64]
OnPoint = Callable[[float, float | None, float | None], None]
"""Called with seconds since the solve began, objective and bound; None: unknown."""

TOLERANCE = 1e-6
"""
What a solution may break: a row by this times the largest of 1, its side and its largest term, a bound of a continuous
variable by this times the largest of 1 and the bound. Integers have no tolerance.
"""
ROUNDING_PART = 0.4
"""Share of a tolerance that rounding integer variables may use up in the heaviest row."""
INFINITE = 1e20
FAULTS = 20
"""Most faults of a kind that are listed."""
PULP = "pulp-"


@dataclass(frozen=True, eq=False)
class MixedModel:
    """
    Maximise or minimise ``objective @ x + offset`` over ``x``, ``row_lower <= A x <= row_upper``.

    With ``n`` variables, ``m`` rows and ``z`` non-zeros. Numbers are the doubles nearest to those of the file, as in
    every solver; a bound that is missing is infinite.
    """

    lower: FloatArray
    upper: FloatArray
    integer: NDArray[np.bool_]
    """``lower``, ``upper``, ``integer``: Shape ``(n,)``, bounds, and which variables are integer."""
    row_start: IntArray
    columns: IntArray
    coefficients: FloatArray
    """``row_start``, ``columns``, ``coefficients``: Shapes ``(m + 1,)``, ``(z,)``, ``(z,)``: the rows of ``A``."""
    row_lower: FloatArray
    row_upper: FloatArray
    """``row_lower``, ``row_upper``: Shape ``(m,)``."""
    objective: FloatArray  # shape ``(n,)``
    offset: float
    sense: Sense
    reason: str
    """Why `placeopt.linear.LinearModel`, of bounded integers and integral coefficients, cannot state it."""

    @property
    def row_of_nonzero(self) -> IntArray:
        """Shape ``(z,)``: the row of every coefficient."""
        return np.repeat(np.arange(len(self.row_lower), dtype=np.int64), np.diff(self.row_start))

    @property
    def is_void(self) -> bool:
        """Whether crossed bounds, or a row without entries that excludes 0, leave no solution."""
        empty = self.row_start[1:] == self.row_start[:-1]
        excluded = empty & ((self.row_lower > 0) | (self.row_upper < 0))
        crossed = (self.lower > self.upper).any() or (self.row_lower > self.row_upper).any()
        return bool(crossed or excluded.any())

    def objective_value(self, values: FloatArray) -> float:
        """Return the objective with its offset at ``values``, shape ``(n,)``."""
        return float(np.dot(self.objective.astype(np.longdouble), values) + self.offset)

    def matrix(self, values: NDArray[Any]) -> csr_array:
        """Return a matrix with ``values``, shape ``(z,)``, in place of the coefficients."""
        return csr_array((values, self.columns, self.row_start), shape=(len(self.row_lower), len(self.lower)))

    def permuted(self, seed: int) -> tuple[MixedModel, IntArray]:
        """Return the model with rows and columns shuffled, and the former place of each column, shape ``(n,)``."""
        random = np.random.default_rng(seed)
        before, row_before = random.permutation(len(self.lower)), random.permutation(len(self.row_lower))
        rows = self.matrix(self.coefficients)[row_before][:, before]
        model = replace(
            self,
            lower=self.lower[before],
            upper=self.upper[before],
            integer=self.integer[before],
            row_start=rows.indptr.astype(np.int64),
            columns=rows.indices.astype(np.int64),
            coefficients=rows.data,
            row_lower=self.row_lower[row_before],
            row_upper=self.row_upper[row_before],
            objective=self.objective[before],
        )
        return model, before

    def misfits(self, values: FloatArray, objective: float | None) -> list[str]:
        """
        Return the faults of values, shape ``(n,)``, and of the objective stated for them; empty if there are none.

        Integer variables must be integers within their bounds, exactly; all else holds within `TOLERANCE`.
        """
        if len(values) != len(self.lower):
            return [f"{len(values)} values for {len(self.lower)} variables"]
        if not np.isfinite(values).all():
            return ["a value is not finite"]
        broken = self.integer & (values != np.rint(values))
        faults = [f"variable {j} is {values[j]:.12g}, not an integer" for j in np.flatnonzero(broken)[:FAULTS]]
        low, high = (np.where(self.integer, 0.0, TOLERANCE) * _size(bound) for bound in (self.lower, self.upper))
        outside = (values < self.lower - low) | (values > self.upper + high)
        faults += [f"variable {j} is {values[j]:g}, outside its bounds" for j in np.flatnonzero(outside)[:FAULTS]]
        terms = self.matrix(self.coefficients * values[self.columns])
        activity, largest = terms.sum(axis=1), np.maximum(abs(terms).max(axis=1).toarray().ravel(), 1.0)
        low, high = (TOLERANCE * np.maximum(largest, _size(side)) for side in (self.row_lower, self.row_upper))
        wrong = (activity < self.row_lower - low) | (activity > self.row_upper + high)
        faults += [f"row {i} does not hold" for i in np.flatnonzero(wrong)[:FAULTS]]
        actual = self.objective_value(values)
        if objective is None or not _meet(actual, objective):
            faults.append(f"objective is stated as {objective}, but it is {actual:g}")
        return faults


def solve_mixed(model: MixedModel, solver: str, options: SolveOptions, on_point: OnPoint) -> Outcome:
    """
    Solve in this process, and return values with exact integers.

    Raises
    ------
    Unsupported
        By solvers that take bounded integers only.
    """
    if solver != "highs" and not solver.startswith(PULP):
        raise Unsupported(f"{solver} takes bounded integers with integral coefficients only: {model.reason}")
    with memory_limit(options.memory_limit_mib, options.threads):
        outcome = _outcome(model, solver, options, on_point)
    if outcome.values is None:
        return outcome
    values = np.where(model.integer, np.rint(outcome.values), outcome.values)
    if outcome.claim != "optimal":
        return outcome._replace(values=values)
    objective = model.objective_value(values)
    if outcome.bound is not None and not _meet(objective, outcome.bound):
        return outcome._replace(claim="feasible", values=values, message="claimed optimal, but the bound is apart")
    return outcome._replace(values=values, bound=objective)


def _outcome(model: MixedModel, solver: str, options: SolveOptions, on_point: OnPoint) -> Outcome:
    if model.is_void:
        return Outcome("infeasible")
    if not len(model.row_lower):
        return _by_bounds(model)
    if solver == "highs":
        return _highs(model, options, on_point)
    return _pulp(model, solver.removeprefix(PULP), options)


def _by_bounds(model: MixedModel) -> Outcome:
    """Return the outcome of a model without rows, over which CBC dies."""
    low = np.where(model.integer, np.ceil(model.lower), model.lower)
    high = np.where(model.integer, np.floor(model.upper), model.upper)
    if (low > high).any():
        return Outcome("infeasible")
    costs = model.objective if model.sense == "min" else -model.objective
    values = np.where(costs > 0, low, np.where(costs < 0, high, np.clip(0.0, low, high)))
    if not np.isfinite(values).all():
        return Outcome("unbounded")
    return Outcome("optimal", values=values, bound=model.objective_value(values))


def _highs(model: MixedModel, options: SolveOptions, on_point: OnPoint) -> Outcome:
    import highspy

    from placeopt.solvers.highs import LIMITS, pass_model

    states = highspy.HighsModelStatus
    integers = np.abs(model.matrix(model.coefficients)) @ model.integer
    solver = highspy.Highs()
    settings = {
        "output_flag": False,
        "threads": options.threads,
        "parallel": "off" if options.threads == 1 else "choose",
        "random_seed": options.seed,
        "mip_rel_gap": 0.0,
        "mip_feasibility_tolerance": float(
            np.clip(ROUNDING_PART * TOLERANCE / max(integers.max(initial=0.0), 1.0), 1e-9, 1e-6)
        ),
        "time_limit": options.time_limit_s,
    }
    for name, value in settings.items():
        solver.setOptionValue(name, value)
    if not pass_model(solver, model, model.integer):
        return Outcome("error", message="HiGHS refuses the model")

    def called(_kind: int, _message: str, out: Any, _back: Any, _data: object) -> None:
        on_point(out.running_time, _finite(out.mip_primal_bound), _finite(out.mip_dual_bound))

    is_mixed = bool(model.integer.any())
    if is_mixed and not model.integer.all():  # presolve of 1.14.0 calls wrong solutions of such models optimal
        solver.setOptionValue("presolve", "off")
    if is_mixed:
        solver.setCallback(called, None)
        solver.startCallback(highspy.cb.HighsCallbackType.kCallbackMipInterrupt)
    solver.run()
    if solver.getModelStatus() in (states.kInfeasible, states.kUnboundedOrInfeasible):  # presolve has been wrong
        solver.clearSolver()
        solver.setOptionValue("presolve", "off")
        solver.run()
    status, info, solution = solver.getModelStatus(), solver.getInfo(), solver.getSolution()
    if status in (states.kInfeasible, states.kUnbounded):
        return Outcome("infeasible" if status == states.kInfeasible else "unbounded")
    if status != states.kOptimal and status not in LIMITS:
        return Outcome("error", message=f"HiGHS ended with {status.name}")
    has = solution.value_valid and info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.array(solution.col_value) if has else None
    bound = _finite(info.mip_dual_bound if is_mixed else info.objective_function_value)
    if status == states.kOptimal:
        return Outcome("optimal", "none", values, bound)
    bound = bound if is_mixed else None  # of a linear program that was cut short, the objective is none
    return Outcome("no_solution" if values is None else "feasible", LIMITS[status], values, bound)


def _pulp(model: MixedModel, name: str, options: SolveOptions) -> Outcome:
    from placeopt.solvers import pulp_packages

    ends = time.monotonic() + options.time_limit_s
    found = pulp_packages.run(name, model, model.integer.tolist(), options, ends)
    return found._replace(
        values=found.values if found.claim in ("optimal", "feasible") else None,
        bound=_finite(found.bound),
        message=found.message if found.claim == "error" else "",
    )


def _finite(number: float | None) -> float | None:
    """Return a number; None where it stands for infinity."""
    return number if number is not None and abs(number) < INFINITE else None


def _meet(one: float, other: float) -> bool:
    return abs(one - other) <= TOLERANCE * max(1.0, abs(one), abs(other))


def _size(limit: FloatArray) -> FloatArray:
    """Return the size that a tolerance is relative to: at least 1, 1 where there is no limit."""
    return np.where(np.isfinite(limit), np.maximum(np.abs(limit), 1.0), 1.0)
