"""
HiGHS (highspy): linear relaxations, mixed-integer models, column generation.

Models are passed as arrays, in 0.05 s per million non-zeros.

Work is counted, for integer models, in the points at which HiGHS asks whether to go on: they fall in the same order
whenever it runs on one thread, in the root node too, which a limit on nodes would leave unbounded. For relaxations
it is counted in simplex iterations. A unit is of the order of a second of a small model for either.
"""

import threading
from collections.abc import Sequence
from typing import Any

import highspy
import numpy as np
from highspy import HighsModelStatus, HighsStatus
from highspy._core import cb as callbacks

from placeopt.errors import BadArgument, BadInput
from placeopt.linear import NO_LOWER, NO_UPPER, IntArray, LinearModel
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.reading import LOOSE, OnProgress, Reading
from placeopt.solvers.result import Basis, Limit, Solution, SolveOptions, Status

NOISE = 1e-9
"""Relative error granted to two floats that HiGHS calls equal."""
POINTS_PER_WORK = 400
ITERATIONS_PER_WORK = 10_000
"""Of an integer model and of an LP, in a unit of ``SolveOptions.work_limit``, which is roughly a second."""

LIMITS: dict[Any, Limit] = {
    HighsModelStatus.kTimeLimit: "time",
    HighsModelStatus.kIterationLimit: "work",
    HighsModelStatus.kSolutionLimit: "work",
    HighsModelStatus.kMemoryLimit: "memory",
    HighsModelStatus.kInterrupt: "user",
}
INFEASIBLE = (HighsModelStatus.kInfeasible, HighsModelStatus.kUnboundedOrInfeasible)  # all variables are bounded

LARGEST_COST = 10**6
"""Beyond such coefficients HiGHS warns of excessive costs."""

MAX_PROVEN = 10**14
"""Objectives beyond are never called optimal: 1 of 60 random models with objectives near 1e15 was not."""


def solve(
    model: LinearModel,
    options: SolveOptions,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
) -> Solution:
    """
    Solve with HiGHS; see `registry.Solve`.

    With ``relax``, returns ``optimal`` if the LP was solved, ``relaxed_values``, ``duals`` and the bound that these
    duals prove in exact arithmetic.
    """
    if options.relax and options.rounding is not None:
        from placeopt.solvers.rounding import solve_and_round  # only here: it stands on this module

        return solve_and_round(model, options, options.rounding, on_progress, stop)
    reading = Reading(model, options, None if options.relax else on_progress)
    settled = reading.settled()
    if settled is not None:
        return settled
    solver = new_solver()
    scale = objective_scale(model.objective) if options.relax else 1.0
    watch = _Watch(reading, stop, options)
    try:
        set_options(solver, model, options)
        if not _pass(solver, model, scale, relax=options.relax):
            return reading.conclude("error", message="HiGHS refuses the model; are coefficients beyond 1e15?")
        if options.hint is not None and not options.relax:
            hint = highspy.HighsSolution()
            hint.col_value = options.hint.astype(np.float64).tolist()
            solver.setSolution(hint)
        if options.start is not None and options.relax:
            _begin_at(solver, model, options.start)
        watch.attach(solver)
        solver.setOptionValue("time_limit", max(options.time_limit_s - reading.seconds, 1e-3))
        status = solver.run()
        if not options.relax and solver.getModelStatus() in INFEASIBLE and not _presolve_is_off(options):
            status = _run_without_presolve(solver, max(options.time_limit_s - reading.seconds, 1e-3))
        if status == HighsStatus.kError:
            return reading.conclude("error", message=f"HiGHS failed: {solver.getModelStatus().name}")
        if options.relax:
            return _relaxed(reading, solver, watch.limit, options, scale)
        return _integer(reading, solver, watch.limit, options)
    finally:
        solver.clear()


def new_solver() -> Any:
    """Return an empty HiGHS; every solve begins with one."""
    highspy.Highs.resetGlobalScheduler(True)  # one that was made for another number of threads fails silently
    return highspy.Highs()


def objective_scale(objective: IntArray) -> float:
    """
    Return the power of two, at most 1, by which the objective of a relaxation is multiplied before HiGHS has it.

    With coefficients of 6e9 the dual simplex method ended with an error, ``kNotset``: its ratio test fails at large
    dual values. Duals are divided by the scale again, and both are exact.
    """
    largest = int(np.abs(objective).max(initial=0))
    return 2.0 ** -max(0, largest.bit_length() - LARGEST_COST.bit_length())


def _presolve_is_off(options: SolveOptions) -> bool:
    return ("presolve", "off") in options.extra


def _run_without_presolve(solver: Any, time_limit_s: float) -> Any:
    """Try once more what presolve calls infeasible: it has been wrong (tests/data/highs_presolve.npz)."""
    solver.clearSolver()
    solver.setOptionValue("presolve", "off")
    solver.setOptionValue("time_limit", time_limit_s)
    return solver.run()


def _integer(reading: Reading, solver: Any, interrupted_by: Limit, options: SolveOptions) -> Solution:
    """Status first; values only if HiGHS calls them feasible, and then they are verified."""
    status, info = solver.getModelStatus(), solver.getInfo()
    if status in INFEASIBLE:
        return reading.conclude("infeasible")
    if status != HighsModelStatus.kOptimal and status not in LIMITS:
        return reading.conclude("error", message=f"HiGHS ended with {status.name}")
    solution = solver.getSolution()
    valid = bool(solution.value_valid) and info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    if valid and not reading.offer(solution.col_value):
        return reading.conclude("error", message="HiGHS returned values that break the model; thrown away")
    if status == HighsModelStatus.kOptimal:
        return reading.conclude("optimal", bound=_proven(reading, info.mip_dual_bound, options))
    reading.offer_bound(info.mip_dual_bound)
    limit = interrupted_by if status == HighsModelStatus.kInterrupt else LIMITS[status]
    return reading.conclude("feasible" if valid else "no_solution", limit)


def _proven(reading: Reading, dual: float, options: SolveOptions) -> int | None:
    """The bound behind a claim of optimality: the objective itself, if nothing a whole unit better is left."""
    objective = reading.objective
    if objective is not None and options.gap == 0 and abs(objective) <= MAX_PROVEN:
        distance = dual - objective if reading.model.sense == "max" else objective - dual
        if -max(LOOSE, NOISE * abs(objective)) <= distance < 1:
            return objective
    reading.offer_bound(dual)
    return None


def _relaxed(reading: Reading, solver: Any, interrupted_by: Limit, options: SolveOptions, scale: float) -> Solution:
    """The relaxation: values and duals as they are, and the bound that the duals prove."""
    status, solution = solver.getModelStatus(), solver.getSolution()
    if status in INFEASIBLE:
        return Solution("infeasible", seconds=reading.seconds)
    duals = np.array(solution.row_dual) / scale if solution.dual_valid else None
    values = np.array(solution.col_value) if solution.value_valid else None
    bound = reading.bound if duals is None else dual_bound(reading.model, duals)
    if status == HighsModelStatus.kOptimal and duals is not None and values is not None:
        basis = _basis(solver) if options.keep_basis else None
        return Solution(
            "optimal", bound=bound, seconds=reading.seconds, duals=duals, relaxed_values=values, basis=basis
        )
    limit = interrupted_by if status == HighsModelStatus.kInterrupt else LIMITS.get(status, "none")
    claim: Status = "no_solution" if status in LIMITS else "error"
    return Solution(
        claim,
        limit,
        bound=bound,
        seconds=reading.seconds,
        message=f"HiGHS ended with {status.name}",
        duals=duals,
        failed=claim == "error",
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


def _pass(solver: Any, model: LinearModel, scale: float, *, relax: bool) -> bool:
    """Hand the arrays over, the objective times ``scale``; whether HiGHS took them."""
    infinity = highspy.kHighsInf
    status = solver.passModel(
        model.num_variables,
        model.num_rows,
        model.num_nonzeros,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMaximize if model.sense == "max" else highspy.ObjSense.kMinimize),
        float(model.offset) * scale,
        model.objective * scale,
        model.lower.astype(np.float64),
        model.upper.astype(np.float64),
        np.where(model.row_lower == NO_LOWER, -infinity, model.row_lower),
        np.where(model.row_upper == NO_UPPER, infinity, model.row_upper),
        model.row_start.astype(np.int32),
        model.columns.astype(np.int32),
        model.coefficients.astype(np.float64),
        np.full(model.num_variables, int(not relax), dtype=np.int32),
    )
    return bool(status != HighsStatus.kError)


def set_options(solver: Any, model: LinearModel, options: SolveOptions) -> None:
    """Set what a solve asks for, but for its time."""
    heaviest = np.bincount(model.row_of_nonzero, weights=np.abs(model.coefficients)).max(initial=1.0)
    own = {
        "output_flag": False,
        "threads": 1 if options.deterministic else options.threads,
        "parallel": "off" if options.deterministic or options.threads == 1 else "choose",
        "random_seed": options.seed,
        "mip_rel_gap": options.gap,
        "mip_abs_gap": 1 - LOOSE,  # objectives are integers: less than a unit apart is proven
        # Rounding an almost integer value must not break a row: the heavier the row, the nearer it has to be.
        "mip_feasibility_tolerance": float(np.clip(0.4 / heaviest, 1e-9, 1e-6)),
    }
    if options.relax and options.work_limit is not None:
        own["simplex_iteration_limit"] = int(options.work_limit * ITERATIONS_PER_WORK)
    for name, value in own.items():
        if solver.setOptionValue(name, value) != HighsStatus.kOk:
            raise BadInput(f"HiGHS refuses {name} = {value!r}")
    _set_extra(solver, options.extra)


def check_extra(extra: Sequence[tuple[str, str]]) -> None:
    """Raise ``BadArgument`` for options that HiGHS does not have, without solving anything."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    _set_extra(solver, extra)


def _set_extra(solver: Any, extra: Sequence[tuple[str, str]]) -> None:
    for name, text in extra:
        if solver.setOptionValue(name, text) != HighsStatus.kOk:
            raise BadArgument(f"HiGHS refuses option {name!r} = {text!r}; see its list of options")


class _Watch:
    """Listens to a running solve: solutions and bounds go to the reading, a stop or spent work to HiGHS."""

    def __init__(self, reading: Reading, stop: threading.Event | None, options: SolveOptions) -> None:
        self.limit: Limit = "none"
        self._reading = reading
        self._stop = stop
        self._points = 0
        self._most_points = (
            None if options.relax or options.work_limit is None else int(options.work_limit * POINTS_PER_WORK)
        )

    def attach(self, solver: Any) -> None:
        """Ask HiGHS to be called."""
        kinds = callbacks.HighsCallbackType
        self._improving = int(kinds.kCallbackMipImprovingSolution)
        self._mip = int(kinds.kCallbackMipInterrupt)
        solver.setCallback(self._called, None)
        for kind in (
            kinds.kCallbackMipImprovingSolution,
            kinds.kCallbackMipInterrupt,
            kinds.kCallbackSimplexInterrupt,
            kinds.kCallbackIpmInterrupt,
        ):
            solver.startCallback(kind)

    def _called(self, kind: int, _message: str, out: Any, back: Any, _data: object) -> None:
        if kind == self._improving:
            self._reading.offer(out.mip_solution)
            return
        if kind == self._mip:
            self._points += 1
            self._reading.offer_bound(out.mip_dual_bound)
        if self._stop is not None and self._stop.is_set():
            self.limit = "user"
            back.user_interrupt = True
        elif self._most_points is not None and self._points >= self._most_points:
            self.limit = "work"
            back.user_interrupt = True
