"""
The process in which PuLP calls a solver; `placeopt.solvers.pulp_gateway` starts it.

Reads a pickled `Task` from the descriptor in its first argument, writes a pickled `ChildOutcome` to standard output.
Values are neither verified nor rounded here: that is for the gateway, on the other side. The offset of the objective
stays there too, for PuLP hands it to some solvers and not to others.
"""

import contextlib
import itertools
import os
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel
from placeopt.solvers.result import SolveOptions

SMALLEST_GAP = 1e-12
"""PuLP takes a gap of 0 for none given, and the solver's default, 1e-4 for some, for the one that was meant."""
MAX_SEED = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be solved, by which of `INTERFACES`."""

    name: str
    model: LinearModel
    options: SolveOptions


@dataclass(frozen=True, eq=False)
class ChildOutcome:
    """What PuLP and the solver said."""

    claim: Literal["optimal", "infeasible", "other", "missing", "refused", "error"]
    """``missing`` if PuLP does not find the solver, ``refused`` if there were options and it did not start."""
    message: str = ""  # PuLP's words, or the exception's
    values: NDArray[np.float64] | None = None  # shape ``(n,)``, as the solver returned them; ``None`` if any is missing
    bound: float | None = None
    """Of the objective without its offset, by the solver's own interface; ``None`` if that does not tell."""
    seconds: float = 0.0  # handing over and solving


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


def main() -> None:
    """Solve the one task and leave."""
    outgoing = os.dup(1)
    os.dup2(2, 1)  # what solvers print goes elsewhere
    with os.fdopen(int(sys.argv[1]), "rb") as given:
        task: Task = pickle.load(given)  # noqa: S301 - from our own parent
    with os.fdopen(outgoing, "wb") as stream:
        pickle.dump(_outcome(task), stream, protocol=5)


def _outcome(task: Task) -> ChildOutcome:
    warnings.simplefilter("ignore")  # PuLP announces its next version
    import pulp

    began = time.monotonic()
    interface = INTERFACES[task.name]
    try:
        solver = pulp_solver(interface, task.options)
        if not solver.available():
            return ChildOutcome("missing", f"{interface.name} is not available; is there a licence?")
        problem, variables = _problem(pulp, task)
        problem.solve(solver)
    except Exception as error:  # noqa: BLE001 - the other side has to hear of it, whatever it is
        what = f"{type(error).__name__}: {error}"
        if task.options.extra:
            return ChildOutcome("refused", f"{', '.join(map('='.join, task.options.extra))}: {what}")
        return ChildOutcome("error", what)
    seconds = time.monotonic() - began
    numbers = [variable.varValue for variable in variables]
    values = None if None in numbers else np.array(numbers, dtype=np.float64)
    bound = None
    if interface.bound is not None:
        with contextlib.suppress(Exception):  # there is none after some ends
            bound = _sign(task.model) * interface.bound(problem.solverModel)
    words = f"{pulp.LpStatus.get(problem.status)!r}, {pulp.LpSolution.get(problem.sol_status)!r}"
    if problem.status == pulp.LpStatusInfeasible:
        return ChildOutcome("infeasible", words, values, bound, seconds)
    optimal = problem.status == pulp.LpStatusOptimal and problem.sol_status == pulp.LpSolutionOptimal
    return ChildOutcome("optimal" if optimal else "other", words, values, bound, seconds)


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


def _problem(pulp: Any, task: Task) -> tuple[Any, list[Any]]:
    """
    The model in PuLP's objects, without its operators; and its variables, in order.

    It always minimises: for a maximum some of PuLP's interfaces turn the sign of costs and bounds, and some do not.
    """
    model, sign = task.model, _sign(task.model)
    problem = pulp.LpProblem("placeopt", pulp.LpMinimize)
    # PuLP sorts variables by name: with leading zeros, that is our order.
    variables = [
        pulp.LpVariable(f"x{j:09}", low, high, pulp.LpInteger)
        for j, (low, high) in enumerate(zip(model.lower.tolist(), model.upper.tolist(), strict=True))
    ]
    if task.options.hint is not None:
        for variable, value in zip(variables, task.options.hint.tolist(), strict=True):
            variable.varValue = value
    priced = np.flatnonzero(model.objective).tolist()
    problem.setObjective(pulp.LpAffineExpression([(variables[j], sign * int(model.objective[j])) for j in priced]))
    columns, coefficients = model.columns.tolist(), model.coefficients.tolist()
    bounds = zip(model.row_lower.tolist(), model.row_upper.tolist(), strict=True)
    for (start, end), (low, high) in zip(itertools.pairwise(model.row_start.tolist()), bounds, strict=True):
        if start == end:
            continue
        entries = [(variables[j], value) for j, value in zip(columns[start:end], coefficients[start:end], strict=True)]
        if low == high:
            sides = [(pulp.LpConstraintEQ, low)]
        else:
            sides = [(pulp.LpConstraintGE, low)] if low != NO_LOWER else []
            sides += [(pulp.LpConstraintLE, high)] if high != NO_UPPER else []
        for sense, side in sides:
            problem.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(entries), sense, rhs=side))
    return problem, variables


def _sign(model: LinearModel) -> int:
    return -1 if model.sense == "max" else 1
