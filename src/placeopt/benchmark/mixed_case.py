"""
The solve of a mixed-integer model in floating point, by HiGHS or through PuLP, in the process of the case.

Integer variables are rounded, the objective is recomputed, and a claim of optimality counts only where the objective
meets the solver's bound within the tolerance. Bounds are the solver's own: floating point proves none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.benchmark.journal import Case
from placeopt.benchmark.mixed_model import TOLERANCE, MixedModel
from placeopt.benchmark.solu import is_equal
from placeopt.errors import Unsupported
from placeopt.solvers.memory import memory_limit
from placeopt.solvers.result import Outcome, SolveOptions

if TYPE_CHECKING:
    from placeopt.benchmark.child import CaseReport

PULP = "pulp-"
NEARLY = 0.4
"""Share of a tolerance that rounding integer variables may use up in the heaviest row."""


def solve_mixed(model: MixedModel, case: Case, report: CaseReport) -> Outcome:
    """Solve and report the times; raises `Unsupported` for solvers that take bounded integers only."""
    options = SolveOptions(
        case.time_limit_s, threads=case.threads, seed=case.seed, memory_limit_mib=case.memory_limit_mib
    )
    if case.solver == "highs":
        import highspy  # noqa: F401 - loading the solver is not solving

        solve: Callable[[], Outcome] = lambda: _highs(model, options, report)  # noqa: E731
    elif case.solver.startswith(PULP):
        from placeopt.solvers import pulp_packages  # noqa: F401 - loading PuLP is not solving

        name = case.solver.removeprefix(PULP)
        solve = lambda: _pulp(model, name, options)  # noqa: E731
    else:
        raise Unsupported(f"{case.solver} takes bounded integers with integral coefficients only: {model.reason}")
    report.solving()
    with memory_limit(case.memory_limit_mib, case.threads):
        outcome = Outcome("infeasible") if model.is_void else solve()
    report.solved()
    if outcome.values is None:
        return outcome
    values, bound = model.rounded(outcome.values), outcome.bound
    outcome = outcome._replace(values=values)
    if outcome.claim == "optimal":
        objective = model.objective_value(values)
        if bound is not None and not is_equal(objective, bound):
            return outcome._replace(claim="feasible", message="claimed optimal, but the bound is apart")
        return outcome._replace(bound=objective)
    return outcome


def _highs(model: MixedModel, options: SolveOptions, report: CaseReport) -> Outcome:
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
        return Outcome("error", message="HiGHS refuses the model")

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
        return Outcome("infeasible" if status == states.kInfeasible else "unbounded")
    if status != states.kOptimal and status not in LIMITS:
        return Outcome("error", message=f"HiGHS ended with {status.name}")
    has = solution.value_valid and info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.array(solution.col_value) if has else None
    if status == states.kOptimal:
        bound = info.mip_dual_bound if is_mixed else info.objective_function_value
        return Outcome("optimal", values=values, bound=_finite(bound))
    bound = _finite(info.mip_dual_bound) if is_mixed else None
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
    return number if number is not None and abs(number) < 1e20 else None
