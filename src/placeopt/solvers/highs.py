"""
HiGHS (highspy): mixed-integer models; linear relaxations in `placeopt.solvers.relaxation`.

Models are passed as arrays, in 0.05 s per million non-zeros.

Work is counted, for integer models, in the points at which HiGHS asks whether to go on: they fall in the same order
whenever it runs on one thread, in the root node too, which a limit on nodes would leave unbounded. For relaxations
it is counted in simplex iterations. A unit is of the order of a second of a small model for either.
"""

import threading
import time
from collections.abc import Sequence
from typing import Any

import highspy
import numpy as np
from highspy import HighsModelStatus, HighsStatus
from highspy._core import cb as callbacks
from numpy.typing import NDArray

from placeopt.errors import BadArgument, BadInput
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel
from placeopt.solvers.reading import EXACT, LOOSE, Reading, integer_tolerance
from placeopt.solvers.result import Limit, Solution, SolveOptions

POINTS_PER_WORK = 400
ITERATIONS_PER_WORK = 1 << 13
"""Of an integer model and of an LP, in a unit of ``SolveOptions.work_limit``, which is roughly a second."""

LIMITS: dict[Any, Limit] = {
    HighsModelStatus.kTimeLimit: "time",
    HighsModelStatus.kIterationLimit: "work",
    HighsModelStatus.kSolutionLimit: "work",
    HighsModelStatus.kMemoryLimit: "memory",
    HighsModelStatus.kInterrupt: "user",
}
INFEASIBLE = (HighsModelStatus.kInfeasible, HighsModelStatus.kUnboundedOrInfeasible)  # all variables are bounded


def solve(reading: Reading, stop: threading.Event) -> Solution:
    """Solve with HiGHS; see `registry.Wrapper`."""
    model, options = reading.model, reading.options
    if options.relax:
        from placeopt.solvers.relaxation import solve_relaxation  # only here: it stands on this module

        return solve_relaxation(reading, stop)
    with Session(model, stop, reading) as session:
        if session.refused:
            return reading.conclude("error", message=REFUSED)
        if options.hint is not None:
            hint = highspy.HighsSolution()
            hint.col_value = options.hint.astype(np.float64).tolist()
            session.solver.setSolution(hint)
        status = session.run()
        if status in INFEASIBLE and ("presolve", "off") not in options.extra:
            # what presolve calls infeasible has had a solution (tests/data/highs_presolve.npz)
            session.solver.clearSolver()
            session.solver.setOptionValue("presolve", "off")
            status = session.run()
        return _conclusion(reading, session, status)


REFUSED = "HiGHS refuses the model; are coefficients beyond 1e15?"


def _conclusion(reading: Reading, session: "Session", status: HighsModelStatus) -> Solution:
    """Status first; values only if HiGHS calls them feasible, and then they are verified."""
    if status in INFEASIBLE:
        return reading.conclude("infeasible")
    if status != HighsModelStatus.kOptimal and status not in LIMITS:
        return reading.conclude("error", message=f"HiGHS ended with {status.name}")
    info, solution = session.solver.getInfo(), session.solver.getSolution()
    valid = bool(solution.value_valid) and info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    if valid and not reading.offer(solution.col_value):
        return reading.conclude("error", message="HiGHS returned values that break the model; thrown away")
    if status == HighsModelStatus.kOptimal:
        return reading.conclude("optimal", bound=reading.proven(info.mip_dual_bound, EXACT))
    reading.offer_bound(info.mip_dual_bound)
    return reading.conclude("feasible" if valid else "no_solution", session.limit)


class Session:
    """
    A model inside HiGHS: run once or, after changes, again, all within the time and the work of the reading's options.

    A context manager, which frees what HiGHS holds. Solutions and bounds that come while HiGHS runs go to ``reading``.

    - ``limit``: What ended the latest run, if anything did.
    - ``refused``: Whether HiGHS did not take the model.
    """

    def __init__(self, model: LinearModel, stop: threading.Event, reading: Reading) -> None:
        options = reading.options
        self.limit: Limit = "none"
        self._stop, self._reading, self._relax = stop, reading, options.relax
        self._ends = time.monotonic() + reading.seconds_left
        self._interrupted_by: Limit = "user"
        rate = ITERATIONS_PER_WORK if options.relax else POINTS_PER_WORK
        self._work = None if options.work_limit is None else int(options.work_limit * rate)
        highspy.Highs.resetGlobalScheduler(True)  # one that was made for another number of threads fails silently
        self.solver = highspy.Highs()
        _set_options(self.solver, model, options)
        self.refused = not pass_model(self.solver, model, np.full(model.num_variables, not options.relax))
        self._listen()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.solver.clear()
        del self.solver  # it holds `_called`, in a circle that the collector does not see

    def run(self) -> HighsModelStatus:
        """Run until something ends it, and return HiGHS's status of the model."""
        solver, left_s = self.solver, self._ends - time.monotonic()
        solver.setOptionValue("time_limit", solver.getRunTime() + max(left_s, 0.0))  # it counts all runs
        if self._relax and self._work is not None:
            solver.setOptionValue("simplex_iteration_limit", self._work)
        failed = solver.run() == HighsStatus.kError
        if self._relax and self._work is not None:
            self._work = max(self._work - solver.getInfo().simplex_iteration_count, 0)
        status = HighsModelStatus.kSolveError if failed else solver.getModelStatus()
        self.limit = self._interrupted_by if status == HighsModelStatus.kInterrupt else LIMITS.get(status, "none")
        return status

    def _listen(self) -> None:
        """Ask HiGHS to be called."""
        kinds = callbacks.HighsCallbackType
        self._improving, self._mip = int(kinds.kCallbackMipImprovingSolution), int(kinds.kCallbackMipInterrupt)
        self.solver.setCallback(self._called, None)
        for kind in (
            kinds.kCallbackMipImprovingSolution,
            kinds.kCallbackMipInterrupt,
            kinds.kCallbackSimplexInterrupt,
            kinds.kCallbackIpmInterrupt,
        ):
            self.solver.startCallback(kind)

    def _called(self, kind: int, _message: str, out: Any, back: Any, _data: object) -> None:
        if kind == self._improving:
            self._reading.offer(out.mip_solution)
            return
        if kind == self._mip:
            self._reading.offer_bound(out.mip_dual_bound)
            if self._work is not None:
                self._work -= 1
        if self._stop.is_set():
            self._interrupted_by, back.user_interrupt = "user", True
        elif kind == self._mip and self._work is not None and self._work <= 0:
            self._interrupted_by, back.user_interrupt = "work", True


def pass_model(solver: Any, model: Any, integer: NDArray[np.bool_]) -> bool:
    """
    Hand the arrays over; whether HiGHS took them.

    - ``model``: A `LinearModel`, or one with the same fields in floating point, where infinite bounds are missing ones.
    - ``integer``: Shape ``(n,)``: whether a variable is integer.
    """
    infinity = highspy.kHighsInf
    status = solver.passModel(
        len(model.lower),
        len(model.row_lower),
        len(model.columns),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMaximize if model.sense == "max" else highspy.ObjSense.kMinimize),
        float(model.offset),
        model.objective.astype(np.float64),
        model.lower.astype(np.float64),
        model.upper.astype(np.float64),
        np.where(model.row_lower == NO_LOWER, -infinity, model.row_lower),
        np.where(model.row_upper == NO_UPPER, infinity, model.row_upper),
        model.row_start.astype(np.int32),
        model.columns.astype(np.int32),
        model.coefficients.astype(np.float64),
        integer.astype(np.int32),
    )
    return bool(status != HighsStatus.kError)


def _set_options(solver: Any, model: LinearModel, options: SolveOptions) -> None:
    """Set what a solve asks for, but for its time."""
    own: dict[str, Any] = {
        "output_flag": False,
        "threads": 1 if options.deterministic else options.threads,
        "parallel": "off" if options.deterministic or options.threads == 1 else "choose",
        "random_seed": options.seed,
        "mip_rel_gap": options.gap,
        "mip_abs_gap": 1 - LOOSE,  # objectives are integers: less than a unit apart is proven
        "mip_feasibility_tolerance": integer_tolerance(model),
    }
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
