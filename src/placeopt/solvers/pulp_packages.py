"""
Through PuLP: CBC, and whatever other solvers are installed, by their Python packages.

Some do not let go of the interpreter while they work, so they are ended with their process: `registry.Entry.apart`.
Handing over takes 5 s per million non-zeros to CBC, and 7 to SCIP.

What PuLP says about the end of a solve is not always so: after a time limit its status may be "Optimal" or
"Infeasible" (CPLEX) for what is neither. So a claim counts only if the solver was not cut short, an optimum only if
the solver's own bound agrees. Some solvers return no solution when they are cut short (COPT), and none reports
anything before its end.
"""

import contextlib
import itertools
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from placeopt.arguments import MAX_SEED
from placeopt.errors import BadInput, Unsupported
from placeopt.linear import NO_UPPER, IntArray
from placeopt.solvers import cbc
from placeopt.solvers.reading import Reading
from placeopt.solvers.registry import DISTINCT, Wrapper, available
from placeopt.solvers.result import Limit, Outcome, Solution, SolveOptions, Status
from placeopt.solvers.stopper import Stopper

with warnings.catch_warnings(action="ignore"):  # PuLP announces its next version
    import pulp

ALMOST_ZERO = 1e-15
"""PuLP takes a gap of 0 for none given, and the solver's default, 1e-4 for some, for the one that was meant."""
CUT_SHORT = 0.9
"""Share of its time, by our clock, from which on a solver counts as cut short by it: its own clock is another."""
HANDOVER_S_PER_NONZERO = 1e-5
"""What the time limit of the solver is shortened by, at most to half: PuLP's handing over; measured."""


Own = Callable[[Any, SolveOptions], Mapping[str, object]]
"""The solver's own options for a model, by the solver's names."""


def _named(threads: str | None = None, seed: str | None = None) -> Own:
    """Threads and seed, where PuLP lets them reach the solver."""

    def own(_: Any, options: SolveOptions) -> Mapping[str, object]:
        named = ((threads, options.threads), (seed, options.seed % MAX_SEED))
        return {name: value for name, value in named if name is not None}

    return own


@dataclass(frozen=True)
class Interface:
    """How PuLP calls a solver."""

    solver: Callable[..., Any]  # PuLP's solver, made of PuLP's arguments
    bound: Callable[[Any], float] | None
    """The bound, from the solver's own model after the solve; ``None`` if PuLP does not keep that."""
    own: Own
    form: Literal["keywords", "pairs", "texts", "none"] = "keywords"
    """How PuLP's class takes options of the solver: as arguments, as pairs or texts in a list, or not at all."""
    limit: Callable[[Any], Limit] | None = None
    """What has cut the solve short, from the solver's own model; ``None``: the time, by our clock."""
    hint: bool = True  # whether PuLP passes a start on
    digits: float = math.inf  # of values
    proves: int = DISTINCT  # largest objective up to which a unit more or less is seen

    def arguments(self, model: Any, options: SolveOptions) -> dict[str, Any]:
        """Return the solver's own and extra options, as PuLP's class wants them."""
        own = self.own(model, options)
        if self.form == "none":
            if options.extra:
                raise ValueError("PuLP passes none on")
            return {}
        if self.form == "keywords":
            return {**own, **{name: _number(text) for name, text in options.extra}}
        pairs = [*own.items(), *options.extra]
        return {"options": pairs if self.form == "pairs" else [f"{name}={value}" for name, value in pairs]}


def _number(text: str) -> int | float | str:
    """An option as a number, where it is one."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


INTERFACES: Mapping[str, Interface] = MappingProxyType(
    {
        "cbc": Interface(
            cbc.Cbc,
            cbc.cbc_bound,
            cbc.cbc_options,
            "texts",
            cbc.cbc_limit,
            digits=cbc.DIGITS,
            proves=cbc.MAX_COST,
        ),
        "scip": Interface(
            partial(pulp.getSolver, "SCIP_PY"),
            lambda model: float(model.getDualbound()),
            _named(seed="randomization/randomseedshift"),
            "texts",
        ),
        "gurobi": Interface(
            partial(pulp.getSolver, "GUROBI"), lambda model: float(model.ObjBound), _named("Threads", "Seed")
        ),
        "cplex": Interface(
            partial(pulp.getSolver, "CPLEX_PY"),
            lambda model: float(model.solution.MIP.get_best_objective()),
            _named("threads", "randomseed"),
        ),
        "xpress": Interface(
            partial(pulp.getSolver, "XPRESS_PY"),
            lambda model: float(model.getAttrib("bestbound")),
            _named("THREADS", "RANDOMSEED"),
            "pairs",
        ),
        "copt": Interface(partial(pulp.getSolver, "COPT"), lambda model: float(model.BestBnd), _named("Threads")),
        "cuopt": Interface(partial(pulp.getSolver, "CUOPT"), None, _named(), "none", hint=False),
    }
)
"""Solvers that PuLP calls, by name."""


CLAIMS: Mapping[int, Status | Literal["unbounded"]] = {
    pulp.LpSolutionOptimal: "optimal",
    pulp.LpSolutionIntegerFeasible: "feasible",
    pulp.LpSolutionNoSolutionFound: "no_solution",
    pulp.LpSolutionInfeasible: "infeasible",
    pulp.LpSolutionUnbounded: "unbounded",
}
"""What PuLP's own statuses of a solution mean."""


def solver(name: str) -> Wrapper:
    """The ``solve`` function for one of `INTERFACES`."""
    return partial(_solve, name)


def _solve(name: str, reading: Reading, stop: threading.Event) -> Solution:
    """
    Solve with one of `INTERFACES`; see `registry.Wrapper`.

    No relaxations, no progress; only programs hear a stop. Seeds, threads, hints and work limits reach the solvers that
    PuLP lets them reach. Claims count only from a solver that was not cut short; values whatever it claims, if they
    keep the model.
    """
    model, interface = reading.model, INTERFACES[name]
    if max(abs(model.lower).max(), abs(model.upper).max()) >= 10.0**interface.digits:
        what = f"pulp-{name} returns values of {interface.digits} digits, a variable may be larger"
        raise Unsupported(f"{what}; use solver 'highs' or 'cpsat'")
    ends = time.monotonic() + reading.seconds_left
    thread = threading.get_native_id()
    with Stopper(stop, partial(_interrupt, thread, frozenset(_children(thread)))):
        found = run(name, model, [True] * model.num_variables, reading.options, ends)
    kept = found.values is None or reading.offer(found.values)
    # beyond `DISTINCT` SCIP calls 2e12 + 1 optimal where 2e12 + 3 is
    proven = None if found.bound is None else reading.proven(found.bound, most=interface.proves)
    if found.claim == "optimal" and proven is not None:
        return reading.conclude("optimal", bound=proven)
    if stop.is_set():
        return reading.conclude("feasible", "user")
    if found.claim == "error":
        return reading.conclude("error", message=found.message)
    if found.limit != "none":
        return reading.conclude("feasible", found.limit)
    if found.claim == "infeasible":
        return reading.conclude("infeasible")
    if not kept:
        return reading.conclude("error", message=f"pulp-{name} returned values that break the model; thrown away")
    if found.claim == "optimal":
        return reading.conclude("optimal")
    claim: Status = "error" if reading.values is None else "feasible"  # at the gap, for instance
    return reading.conclude(claim, message=found.message)


def _interrupt(thread: int, others: Collection[int]) -> None:
    """Send SIGINT to the programs that a thread has started, but for ``others``; they end with what they have."""
    for program in _children(thread):
        if program not in others:
            with contextlib.suppress(OSError):  # it has just ended
                os.kill(program, signal.SIGINT)


def _children(thread: int) -> list[int]:
    """Return the processes that a thread of this process has started; none where the system does not tell."""
    try:
        return [int(child) for child in Path(f"/proc/self/task/{thread}/children").read_text("ascii").split()]
    except OSError:
        return []


def run(name: str, model: Any, integer: Sequence[bool], options: SolveOptions, ends: float) -> Outcome:
    """
    Run one of `INTERFACES` until the monotonic clock shows ``ends``; ``model``, ``integer``: as in `_problem`.

    Variables in no row, of which PuLP has no values, are as near to 0 as they may be.

    Raises ``Unsupported`` if PuLP does not find the solver, ``BadInput`` if it refuses an option in ``extra``.
    """
    with warnings.catch_warnings(action="ignore"):  # PuLP announces its next version
        interface = INTERFACES[name]
        problem, variables = _problem(model, integer, options.hint)
        seconds = max(ends - time.monotonic(), ALMOST_ZERO)
        seconds -= min(HANDOVER_S_PER_NONZERO * len(model.columns), seconds / 2)
        began = time.monotonic()
        try:
            solver = interface.solver(
                msg=False,
                timeLimit=seconds,
                gapRel=max(options.gap, ALMOST_ZERO),
                warmStart=interface.hint and options.hint is not None,
                **interface.arguments(model, options),
            )
            is_available = solver.available()
            if is_available:
                problem.solve(solver)
        except (Unsupported, MemoryError):
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            if options.extra:
                named = ", ".join(map("=".join, options.extra))
                raise BadInput(f"pulp-{name} refuses an option: {named}: {what}") from error
            return Outcome("error", message=f"pulp-{name} failed: {what}")
    if not is_available:
        raise Unsupported(f"PuLP does not find {name}; is there a licence? Installed are {', '.join(available())}")
    bound = None
    if interface.bound is not None:
        with contextlib.suppress(Exception):  # there is none after some ends
            bound = _sign(model) * interface.bound(problem.solverModel) + model.offset
    elapsed = time.monotonic() - began
    limit: Limit = "time" if elapsed >= CUT_SHORT * seconds else "none"
    if interface.limit is not None:
        limit = interface.limit(problem.solverModel)
    words = f"pulp-{name} ended with {pulp.LpStatus.get(problem.status)!r}, {pulp.LpSolution.get(problem.sol_status)!r}"
    claim = CLAIMS.get(problem.sol_status, "error")
    if problem.status == pulp.LpStatusInfeasible:  # its status of the solution may be that there is none (CBC)
        claim = "infeasible"
    if limit == "time" and elapsed < seconds / 2:
        claim, words = "error", f"pulp-{name} was stopped by a clock that jumped"
    values = np.array([variable.varValue for variable in variables], dtype=np.float64)  # no number where PuLP has none
    if claim in ("optimal", "feasible"):
        values = np.where(np.isnan(values), np.clip(0.0, model.lower, model.upper), values)
    return Outcome(claim, limit, None if np.isnan(values).any() else values, bound, words)


def _problem(model: Any, integer: Sequence[bool], hint: IntArray | None) -> tuple[Any, list[Any]]:
    """
    Return a model in PuLP's objects, without its operators; and its variables, in order.

    The constant of the objective is left out, for PuLP hands it to some solvers and not to others. It always minimises:
    for a maximum some of PuLP's interfaces turn the sign of costs and bounds, and some do not.

    - ``model``: A `LinearModel`, or one with the same fields in floating point, where infinite bounds are missing ones.
    - ``integer``: ``n`` of them: whether a variable is integer.
    - ``hint``: Shape ``(n,)``: values to start from.
    """
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
