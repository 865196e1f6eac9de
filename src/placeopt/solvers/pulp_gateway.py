"""
Through PuLP: whatever other solvers are installed.

CBC is called by its program, see `cbc`. The others are called by PuLP through their Python packages, in a process of
their own (`pulp_child`), since some do not let go of the interpreter while they work: so a stop is a SIGINT, which
most understand, and after that a kill. Starting it costs half a second, handing over to SCIP 7 s per million
non-zeros.

What PuLP says about the end of a solve is not always so: after a time limit its status may be "Optimal" or
"Infeasible" (CPLEX) for what is neither. So a claim counts only if the solver was not cut short, an optimum only if
the solver's own bound agrees. Some solvers return no solution when they are cut short (COPT), and none reports
anything before its end.
"""

import pickle
import shutil
import sys
import tempfile
import threading
import warnings
from dataclasses import replace
from functools import partial

from placeopt.errors import BadInput, Unsupported
from placeopt.linear import LinearModel
from placeopt.solvers import cbc
from placeopt.solvers.launch import run
from placeopt.solvers.pulp_child import ChildOutcome, Task
from placeopt.solvers.reading import LOOSE, OnProgress, Reading
from placeopt.solvers.registry import Solve, available
from placeopt.solvers.result import Limit, Solution, SolveOptions, Status

START = "from placeopt.solvers.pulp_child import main; main()"
"""Not ``-m``: the classes of a main module are not those of the module when they are unpickled."""
CUT_SHORT = 0.9
"""Share of its time from which on a solver counts as cut short by it."""
EPSILON = 1e-9
"""Relative difference below which two numbers are the same to a solver; SCIP's."""
START_S = 0.7
HANDOVER_S_PER_NONZERO = 1e-5
"""What the time limit of the solver is shortened by, at most to half: starting, and PuLP's handing over; measured."""


def solver(name: str) -> Solve:
    """The ``solve`` function for one solver, by the name that it has behind ``pulp-``."""
    return partial(_solve, name)


def _solve(
    name: str,
    model: LinearModel,
    options: SolveOptions,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
) -> Solution:
    """
    Solve with ``cbc`` or one of `pulp_child.INTERFACES`; see `registry.Solve`.

    No relaxations; deterministic runs by CBC only, which alone reports bounds before its end. Seeds, threads and hints
    reach the solvers that PuLP lets them reach. A stop is a SIGINT, and 0.2 s later a SIGKILL.
    """
    if options.relax:
        raise Unsupported(f"pulp-{name} solves no relaxations here; use solver 'highs'")
    if name != "cbc" and (options.deterministic or options.work_limit is not None):
        raise Unsupported(f"pulp-{name} cannot be cut by work; use solver 'cpsat', 'highs' or 'pulp-cbc'")
    reading = Reading(model, options, on_progress)
    settled = reading.settled() or _empty_row(reading)
    if settled is not None:
        return settled
    if name == "cbc":
        return cbc.solve(cbc_program(), model, options, reading, stop)
    return _solve_by_package(name, model, options, reading, stop)


def _solve_by_package(
    name: str, model: LinearModel, options: SolveOptions, reading: Reading, stop: threading.Event | None
) -> Solution:
    seconds = max(options.time_limit_s - reading.seconds, 1e-3)
    overhead = min(START_S + HANDOVER_S_PER_NONZERO * model.num_nonzeros, seconds / 2)
    limits = replace(options, time_limit_s=seconds - overhead)
    said = bytearray()
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
        pickle.dump(Task(name, model, limits), given, protocol=5)
        given.seek(0)  # writes out, too; the child shares the position
        ended = run(
            [sys.executable, "-P", "-c", START, str(given.fileno())],
            said.extend,
            seconds=seconds,
            stop=stop,
            pass_fds=[given.fileno()],
            errors=errors,
        )
        errors.seek(0)
        complaints = errors.read().decode(errors="replace").strip()
    try:
        outcome: ChildOutcome = pickle.loads(bytes(said))  # noqa: S301 - from our own child
    except Exception:  # noqa: BLE001 - whatever is wrong with a message that is not all there
        if ended.limit != "none":
            return reading.conclude("feasible" if reading.values is not None else "no_solution", ended.limit)
        memory: Limit = "memory" if "MemoryError" in complaints or "bad_alloc" in complaints else "none"
        last = complaints.splitlines()[-1] if complaints else "nothing said"
        return reading.conclude("error", memory, f"pulp-{name} ended with exit code {ended.code}: {last}")
    return _conclusion(reading, name, outcome, ended.limit, limits)


def _conclusion(reading: Reading, name: str, outcome: ChildOutcome, limit: Limit, options: SolveOptions) -> Solution:
    """Claims count only from a solver that was not cut short; values whatever it claims, if they keep the model."""
    if outcome.claim == "missing":
        raise Unsupported(f"PuLP does not find {name} ({outcome.message}); installed are {', '.join(available())}")
    if outcome.claim == "refused":
        raise BadInput(f"pulp-{name} refuses an option: {outcome.message}")
    if outcome.claim == "error":
        return reading.conclude("error", message=f"pulp-{name}: {outcome.message}")
    kept = outcome.values is None or reading.offer(outcome.values)
    if outcome.bound is not None:
        reading.offer_bound(outcome.bound + reading.model.offset)
    if outcome.claim == "optimal" and (bound := _proven(reading, outcome, options)) is not None:
        return reading.conclude("optimal", bound=bound)
    if limit == "none" and outcome.seconds >= CUT_SHORT * options.time_limit_s:
        limit = "time"
    if limit != "none":
        return reading.conclude("feasible" if reading.values is not None else "no_solution", limit)
    if outcome.claim == "infeasible":
        return reading.conclude("infeasible")
    if not kept:
        return reading.conclude("error", message=f"pulp-{name} returned values that break the model; thrown away")
    if outcome.claim == "optimal":
        return reading.conclude("optimal")
    claim: Status = "error" if reading.values is None else "feasible"  # at the gap, for instance
    return reading.conclude(claim, message=f"pulp-{name} ended with {outcome.message}")


def _proven(reading: Reading, outcome: ChildOutcome, options: SolveOptions) -> int | None:
    """
    The bound behind a claim of optimality: the objective, if the solver's own bound leaves nothing a unit better.

    Nothing is proven where a unit is less than the solver can tell: SCIP calls 2e12 + 1 optimal where 2e12 + 3 is.
    """
    objective = reading.objective
    if objective is None or outcome.bound is None or options.gap > 0 or abs(objective) * EPSILON >= 1:
        return None
    bound = outcome.bound + reading.model.offset
    distance = bound - objective if reading.model.sense == "max" else objective - bound
    return objective if -max(LOOSE, LOOSE * abs(objective)) <= distance < 1 - LOOSE else None


def _empty_row(reading: Reading) -> Solution | None:
    """Infeasible, if a row without entries excludes 0: PuLP drops such rows, and readers of files differ."""
    model = reading.model
    empty = model.row_start[1:] == model.row_start[:-1]
    if (empty & ((model.row_lower > 0) | (model.row_upper < 0))).any():
        return Solution("infeasible", seconds=reading.seconds, message="a row without entries excludes 0")
    return None


def cbc_program() -> str:
    """Path of CBC's program: PuLP's own, or the one on the path."""
    with warnings.catch_warnings(action="ignore"):  # PuLP announces its next version
        import pulp

        for interface in ("PULP_CBC_CMD", "COIN_CMD"):
            solver_class = getattr(pulp, interface, None)
            program: str | None = None if solver_class is None else shutil.which(solver_class(msg=False).path)
            if program is not None:
                return program
    raise Unsupported(f"PuLP finds no CBC program; installed are {', '.join(available())}")
