"""
Through PuLP: whatever other solvers are installed, by their Python packages.

Some do not let go of the interpreter while they work, so they are ended with their process: `registry.Entry.apart`.
Handing over to SCIP takes 7 s per million non-zeros.

What PuLP says about the end of a solve is not always so: after a time limit its status may be "Optimal" or
"Infeasible" (CPLEX) for what is neither. So a claim counts only if the solver was not cut short, an optimum only if
the solver's own bound agrees. Some solvers return no solution when they are cut short (COPT), and none reports
anything before its end.
"""

import contextlib
import itertools
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import BadInput, Unsupported
from placeopt.linear import NO_UPPER, IntArray, LinearModel
from placeopt.solvers.reading import LOOSE, OnProgress, Reading
from placeopt.solvers.registry import Solve, available
from placeopt.solvers.result import Solution, SolveOptions, Status

SMALLEST_GAP = 1e-12
"""PuLP takes a gap of 0 for none given, and the solver's default, 1e-4 for some, for the one that was meant."""
MAX_SEED = 2**31 - 1
CUT_SHORT = 0.9
"""Share of its time from which on a solver counts as cut short by it."""
EPSILON = 1e-9
"""Relative difference below which two numbers are the same to a solver; SCIP's."""
HANDOVER_S_PER_NONZERO = 1e-5
"""What the time limit of the solver is shortened by, at most to half: PuLP's handing over; measured."""


@dataclass(frozen=True)
class Interface:
    """How PuLP calls a solver."""

    name: str  # PuLP's name of it
    arguments: Callable[[SolveOptions], dict[str, Any]]  # threads, seed and extra options, as PuLP's class wants them
    bound: Callable[[Any], float] | None
    """The bound, from the solver's own model after the solve; ``None`` if PuLP does not keep that."""
    hint: bool = True  # whether PuLP passes a start on


def _scip(options: SolveOptions) -> dict[str, Any]:
    seed = f"randomization/randomseedshift={options.seed % MAX_SEED}"
    return {"options": [seed, *(f"{name}={value}" for name, value in options.extra)]}


def _gurobi(options: SolveOptions) -> dict[str, Any]:
    return {"Threads": options.threads, "Seed": options.seed % MAX_SEED, **_numbers(options)}


def _cplex(options: SolveOptions) -> dict[str, Any]:
    return {"threads": options.threads, "randomseed": options.seed % MAX_SEED, **_numbers(options)}


def _xpress(options: SolveOptions) -> dict[str, Any]:
    own = [("THREADS", options.threads), ("RANDOMSEED", options.seed % MAX_SEED)]
    return {"options": [*own, *options.extra]}


def _copt(options: SolveOptions) -> dict[str, Any]:
    return {"Threads": options.threads, **_numbers(options)}


def _cuopt(options: SolveOptions) -> dict[str, Any]:
    if options.extra:
        raise ValueError("PuLP passes none on to cuOpt")
    return {}


def _numbers(options: SolveOptions) -> dict[str, int | float | str]:
    """The extra options, as numbers where they are."""
    numbers: dict[str, int | float | str] = dict(options.extra)
    for name, text in options.extra:
        for kind in (float, int):
            with contextlib.suppress(ValueError):
                numbers[name] = kind(text)
    return numbers


INTERFACES: Mapping[str, Interface] = MappingProxyType(
    {
        "scip": Interface("SCIP_PY", _scip, lambda model: float(model.getDualbound())),
        "gurobi": Interface("GUROBI", _gurobi, lambda model: float(model.ObjBound)),
        "cplex": Interface("CPLEX_PY", _cplex, lambda model: float(model.solution.MIP.get_best_objective())),
        "xpress": Interface("XPRESS_PY", _xpress, lambda model: float(model.getAttrib("bestbound"))),
        "copt": Interface("COPT", _copt, lambda model: float(model.BestBnd)),
        "cuopt": Interface("CUOPT", _cuopt, None, hint=False),
    }
)
"""Solvers that PuLP calls through their Python packages."""


def solver(name: str) -> Solve:
    """The ``solve`` function for one of `INTERFACES`."""
    return partial(_solve, name)


def _solve(
    name: str,
    model: LinearModel,
    options: SolveOptions,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
) -> Solution:
    """
    Solve with one of `INTERFACES`; see `registry.Solve`.

    No relaxations, no deterministic runs, no progress; a stop is not heard. Seeds, threads and hints reach the solvers
    that PuLP lets them reach.
    """
    del stop
    if options.relax:
        raise Unsupported(f"pulp-{name} solves no relaxations here; use solver 'highs'")
    if options.deterministic or options.work_limit is not None:
        raise Unsupported(f"pulp-{name} cannot be cut by work; use solver 'cpsat', 'highs' or 'pulp-cbc'")
    reading = Reading(model, options, on_progress)
    settled = reading.settled()
    if settled is not None:
        return settled
    with warnings.catch_warnings(action="ignore"):  # PuLP announces its next version
        problem, variables = pulp_problem(model, [True] * model.num_variables, options.hint)
        seconds = max(options.time_limit_s - reading.seconds, 1e-3)
        seconds -= min(HANDOVER_S_PER_NONZERO * model.num_nonzeros, seconds / 2)
        began = time.monotonic()
        try:
            solver = pulp_solver(INTERFACES[name], replace(options, time_limit_s=seconds))
            is_available = solver.available()
            if is_available:
                problem.solve(solver)
        except Exception as error:
            if not options.extra:
                raise
            what = f"{', '.join(map('='.join, options.extra))}: {type(error).__name__}: {error}"
            raise BadInput(f"pulp-{name} refuses an option: {what}") from error
    if not is_available:
        raise Unsupported(f"PuLP does not find {name}; is there a licence? Installed are {', '.join(available())}")
    is_cut_short = time.monotonic() - began >= CUT_SHORT * seconds
    return _conclusion(reading, name, problem, [variable.varValue for variable in variables], options, is_cut_short)


def _conclusion(
    reading: Reading, name: str, problem: Any, values: list[float | None], options: SolveOptions, is_cut_short: bool
) -> Solution:
    """Claims count only from a solver that was not cut short; values whatever it claims, if they keep the model."""
    import pulp

    kept = None in values or reading.offer(np.array(values, dtype=np.float64))
    bound = _bound(INTERFACES[name], problem, reading.model)
    if bound is not None:
        reading.offer_bound(bound)
    is_optimal = problem.status == pulp.LpStatusOptimal and problem.sol_status == pulp.LpSolutionOptimal
    if is_optimal and (proven := _proven(reading, bound, options)) is not None:
        return reading.conclude("optimal", bound=proven)
    if is_cut_short:
        return reading.conclude("feasible" if reading.values is not None else "no_solution", "time")
    if problem.status == pulp.LpStatusInfeasible:
        return reading.conclude("infeasible")
    if not kept:
        return reading.conclude("error", message=f"pulp-{name} returned values that break the model; thrown away")
    if is_optimal:
        return reading.conclude("optimal")
    words = f"{pulp.LpStatus.get(problem.status)!r}, {pulp.LpSolution.get(problem.sol_status)!r}"
    claim: Status = "error" if reading.values is None else "feasible"  # at the gap, for instance
    return reading.conclude(claim, message=f"pulp-{name} ended with {words}")


def _bound(interface: Interface, problem: Any, model: LinearModel) -> float | None:
    """The bound of the solved problem, of the model's objective; None if the solver has none."""
    if interface.bound is not None:
        with contextlib.suppress(Exception):  # there is none after some ends
            return _sign(model) * interface.bound(problem.solverModel) + model.offset
    return None


def _proven(reading: Reading, bound: float | None, options: SolveOptions) -> int | None:
    """
    The bound behind a claim of optimality: the objective, if the solver's own bound leaves nothing a unit better.

    Nothing is proven where a unit is less than the solver can tell: SCIP calls 2e12 + 1 optimal where 2e12 + 3 is.
    """
    objective = reading.objective
    if objective is None or bound is None or options.gap > 0 or abs(objective) * EPSILON >= 1:
        return None
    distance = bound - objective if reading.model.sense == "max" else objective - bound
    return objective if -max(LOOSE, LOOSE * abs(objective)) <= distance < 1 - LOOSE else None


def pulp_solver(interface: Interface, options: SolveOptions) -> Any:
    """Return PuLP's object of a solver with its options."""
    import pulp

    return pulp.getSolver(
        interface.name,
        msg=False,
        timeLimit=options.time_limit_s,
        gapRel=max(options.gap, SMALLEST_GAP),
        warmStart=interface.hint and options.hint is not None,
        **interface.arguments(options),
    )


def pulp_problem(model: Any, integer: Sequence[bool], hint: IntArray | None = None) -> tuple[Any, list[Any]]:
    """
    Return a model in PuLP's objects, without its operators; and its variables, in order.

    The constant of the objective is left out, for PuLP hands it to some solvers and not to others. It always minimises:
    for a maximum some of PuLP's interfaces turn the sign of costs and bounds, and some do not.

    - ``model``: A `LinearModel`, or one with the same fields in floating point, where infinite bounds are missing ones.
    - ``integer``: ``n`` of them: whether a variable is integer.
    - ``hint``: Shape ``(n,)``: values to start from.
    """
    import pulp

    sign = _sign(model)
    problem = pulp.LpProblem("placeopt", pulp.LpMinimize)
    # PuLP sorts variables by name: with leading zeros, that is our order.
    variables = [
        pulp.LpVariable(f"x{j:09}", low, high, pulp.LpInteger if whole else pulp.LpContinuous)
        for j, (low, high, whole) in enumerate(zip(_bounds(model.lower), _bounds(model.upper), integer, strict=True))
    ]
    if hint is not None:
        for variable, value in zip(variables, hint.tolist(), strict=True):
            variable.varValue = value
    priced = np.flatnonzero(model.objective)
    costs = zip(priced.tolist(), (sign * model.objective[priced]).tolist(), strict=True)
    problem.setObjective(pulp.LpAffineExpression([(variables[j], cost) for j, cost in costs]))
    columns, coefficients = model.columns.tolist(), model.coefficients.tolist()
    spans = itertools.pairwise(model.row_start.tolist())
    for (start, end), low, high in zip(spans, _bounds(model.row_lower), _bounds(model.row_upper), strict=True):
        entries = [(variables[j], value) for j, value in zip(columns[start:end], coefficients[start:end], strict=True)]
        if low is not None and low == high:
            sides = [(pulp.LpConstraintEQ, low)]
        else:
            sides = [(pulp.LpConstraintGE, low), (pulp.LpConstraintLE, high)]
        for sense, side in sides if entries else []:
            if side is not None:
                problem.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(entries), sense, rhs=side))
    return problem, variables


def _bounds(bounds: NDArray[Any]) -> list[Any]:
    """The bounds, None where there is none."""
    return [None if abs(bound) >= NO_UPPER else bound for bound in bounds.tolist()]


def _sign(model: Any) -> int:
    return -1 if model.sense == "max" else 1
