"""
The solve of a mixed-integer model in floating point, by HiGHS or through PuLP, in the process of the case.

Integer variables are rounded, the objective is recomputed, and a claim of optimality counts only where the objective
meets the solver's bound within the tolerance. Bounds are the solver's own: floating point proves none.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from placeopt.arguments import MAX_SEED
from placeopt.benchmark.journal import Case, Status
from placeopt.benchmark.mixed_model import TOLERANCE, FloatArray, MixedModel
from placeopt.benchmark.solu import is_equal
from placeopt.errors import Unsupported
from placeopt.solvers.memory import memory_limit
from placeopt.solvers.result import SolveOptions

if TYPE_CHECKING:
    from placeopt.benchmark.child import CaseReport

PULP = "pulp-"
NEARLY = 0.4
"""Share of a tolerance that rounding integer variables may use up in the heaviest row."""


class MixedOutcome(NamedTuple):
    """Status and limit as of a case; values, shape ``(n,)``, and bound in the model's own sense, None if unknown."""

    status: Status
    limit: str = "none"
    values: FloatArray | None = None
    bound: float | None = None
    message: str = ""


def solve_mixed(model: MixedModel, case: Case, report: CaseReport) -> MixedOutcome:
    """Solve and report the times; raises `Unsupported` for solvers that take bounded integers only."""
    options = SolveOptions(
        case.time_limit_s, threads=case.threads, seed=case.seed, memory_limit_mib=case.memory_limit_mib
    )
    if case.solver == "highs":
        import highspy  # noqa: F401 - loading the solver is not solving

        solve: Callable[[], MixedOutcome] = lambda: _highs(model, options, report)  # noqa: E731
    elif case.solver.startswith(PULP):
        with warnings.catch_warnings(action="ignore"):  # PuLP announces its next version
            import pulp

        solve = lambda: _pulp(pulp, case.solver.removeprefix(PULP), model, options, report)  # noqa: E731
    else:
        raise Unsupported(f"{case.solver} takes bounded integers with integral coefficients only: {model.reason}")
    report.solving()
    with memory_limit(case.memory_limit_mib, case.threads):
        outcome = MixedOutcome("infeasible") if model.is_void else solve()
    report.solved()
    if outcome.values is None:
        return outcome
    values, bound = model.rounded(outcome.values), outcome.bound
    outcome = outcome._replace(values=values)
    if outcome.status == "optimal":
        objective = model.objective_value(values)
        if bound is not None and not is_equal(objective, bound):
            return outcome._replace(status="feasible", message="claimed optimal, but the bound is apart")
        return outcome._replace(bound=objective)
    return outcome


def _highs(model: MixedModel, options: SolveOptions, report: CaseReport) -> MixedOutcome:
    import highspy

    from placeopt.solvers.highs import LIMITS, pass_model

    states, kinds = highspy.HighsModelStatus, highspy.cb.HighsCallbackType
    solver = highspy.Highs()
    integers = np.bincount(
        model.row_of_nonzero, weights=np.abs(model.coefficients) * model.integer[model.columns], minlength=1
    )
    settings = {
        "output_flag": False,
        "threads": options.threads,
        "parallel": "off" if options.threads == 1 else "choose",
        "random_seed": options.seed,
        "mip_rel_gap": 0.0,
        "mip_feasibility_tolerance": float(np.clip(NEARLY * TOLERANCE / max(integers.max(), 1.0), 1e-9, 1e-6)),
        "time_limit": options.time_limit_s,
    }
    for name, value in settings.items():
        solver.setOptionValue(name, value)
    if not pass_model(solver, model, model.integer):
        return MixedOutcome("error", message="HiGHS refuses the model")

    def called(_kind: int, _message: str, out: Any, _back: Any, _data: object) -> None:
        report.point((out.running_time, _finite(out.mip_primal_bound), _finite(out.mip_dual_bound), None, None))

    is_mixed = bool(model.integer.any())
    if is_mixed and not model.integer.all():  # presolve of 1.14.0 calls wrong solutions of such models optimal
        solver.setOptionValue("presolve", "off")
    if is_mixed:
        solver.setCallback(called, None)
        solver.startCallback(kinds.kCallbackMipInterrupt)
    solver.run()
    if solver.getModelStatus() in (states.kInfeasible, states.kUnboundedOrInfeasible):  # presolve has been wrong
        solver.clearSolver()
        solver.setOptionValue("presolve", "off")
        solver.run()
    status, info, solution = solver.getModelStatus(), solver.getInfo(), solver.getSolution()
    if status in (states.kInfeasible, states.kUnbounded):
        return MixedOutcome("infeasible" if status == states.kInfeasible else "unbounded")
    if status != states.kOptimal and status not in LIMITS:
        return MixedOutcome("error", message=f"HiGHS ended with {status.name}")
    has = solution.value_valid and info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.array(solution.col_value) if has else None
    if status == states.kOptimal:
        bound = info.mip_dual_bound if is_mixed else info.objective_function_value
        return MixedOutcome("optimal", values=values, bound=_finite(bound))
    bound = _finite(info.mip_dual_bound) if is_mixed else None
    return MixedOutcome("no_solution" if values is None else "feasible", LIMITS[status], values, bound)


def _pulp(pulp: Any, name: str, model: MixedModel, options: SolveOptions, report: CaseReport) -> MixedOutcome:
    from placeopt.solvers import cbc, pulp_packages

    sign = -1.0 if model.sense == "max" else 1.0
    problem, variables = pulp_packages.pulp_problem(model, model.integer.tolist())
    with tempfile.TemporaryDirectory(prefix="placeopt-") as folder:
        log = Path(folder, "log")
        solver, bound_of = _solver(pulp, name, options, log)
        if not solver.available():
            raise Unsupported(f"PuLP does not find {name}")
        began = time.monotonic()
        try:
            problem.solve(solver)
        except pulp.PulpSolverError:
            if name != "cbc":
                raise
            solver.options = solver.options[1:]  # without preprocessing CBC dies of some infeasible models
            problem.solve(solver)
        said = log.read_bytes() if log.exists() else b""
    for seconds, *figures in cbc.trajectory(said, time.monotonic() - began):
        value, bound = (None if figure is None else sign * figure + model.offset for figure in figures)
        report.point((seconds, value, bound, None, None))
    values = np.array([_value(variable) for variable in variables])
    bound = _finite(bound_of(problem, said))
    bound = None if bound is None else sign * bound + model.offset
    words = f"{name} ended with {pulp.LpStatus.get(problem.status)!r}"
    if problem.sol_status == pulp.LpSolutionOptimal and problem.status == pulp.LpStatusOptimal:
        return MixedOutcome("optimal", values=values, bound=bound)
    if problem.sol_status == pulp.LpSolutionIntegerFeasible:
        return MixedOutcome("feasible", "time", values, bound)
    if problem.status == pulp.LpStatusInfeasible:
        return MixedOutcome("infeasible")
    if problem.status == pulp.LpStatusUnbounded:
        return MixedOutcome("unbounded")
    if problem.status == pulp.LpStatusNotSolved:
        return MixedOutcome("no_solution", "time", bound=bound)
    return MixedOutcome("error", message=words)


def _solver(pulp: Any, name: str, options: SolveOptions, log: Path) -> tuple[Any, Callable[[Any, bytes], float | None]]:
    """Return PuLP's solver, and what finds its bound in the solved problem or in its log."""
    from placeopt.solvers import cbc, pulp_packages

    if name == "cbc":
        seed = options.seed % MAX_SEED + 1
        solver = pulp.PULP_CBC_CMD(
            msg=False,
            timeLimit=options.time_limit_s,
            threads=options.threads if options.threads > 1 else None,
            logPath=str(log),
            options=["preprocess off", f"randomSeed {seed}", f"randomCbcSeed {seed}"],  # as in `cbc`, for its reason
        )
        return solver, lambda _problem, said: cbc.last_bound(said)
    interface = pulp_packages.INTERFACES[name]
    bound = interface.bound
    return pulp_packages.pulp_solver(
        interface, options
    ), lambda problem, _said: None if bound is None else bound(problem.solverModel)


def _value(variable: Any) -> float:
    """Return the value of a variable; PuLP has none for those in no row, which may take their bound nearest to 0."""
    if variable.varValue is not None:
        return float(variable.varValue)
    return max(variable.lowBound or 0.0, 0.0) or min(variable.upBound or 0.0, 0.0)


def _finite(number: float | None) -> float | None:
    """Return a number; None where it stands for infinity."""
    return number if number is not None and abs(number) < 1e20 else None
