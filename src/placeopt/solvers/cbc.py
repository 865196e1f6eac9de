"""
CBC, by its program: the one that PuLP brings, or one on the path.

The model goes over as our own MPS file, in 2 s per million non-zeros, where PuLP needs 40 to 70. CBC's preprocessing
is switched off: with it, CBC 2.10.3 calls wrong optima optimal (in 17 of 2,000 tiny placement models, in none
without). We read its log and its solution file ourselves: a file that is cut short, or that holds the values of the
linear relaxation for want of a solution, reads elsewhere as a complete optimum.

Bounds are reported while CBC runs, solutions only at its end: CBC writes none before, its log only names their
objectives, which are reported as claims. If it has to be killed, what remains is the hint and the bound. The solver
process ends it, see `placeopt.solvers.worker`; files are passed as open descriptors of unnamed files, so there is
nothing else to tidy up.

Work is counted in nodes, on one thread; a unit is of the order of a second of a small model. The root node, with its
cuts and heuristics, comes on top and cannot be limited.
"""

import contextlib
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeopt.arguments import MAX_SEED
from placeopt.errors import BadInput, Unsupported
from placeopt.linear import MAX_EXACT
from placeopt.solvers.export import mps
from placeopt.solvers.memory import limit_of_program
from placeopt.solvers.reading import LOOSE, Reading, integer_tolerance
from placeopt.solvers.registry import available
from placeopt.solvers.result import Limit, Outcome, Solution, SolveOptions
from placeopt.solvers.stopper import Stopper

MAX_VALUE = 10**8
"""CBC writes values with eight digits; larger ones would come back as others."""
NODES_PER_WORK = 500
"""Nodes of its tree in a unit of ``SolveOptions.work_limit``, roughly a second."""

_BOUND = re.compile(rb"best possible ([-+.\deE]+?)\)?[\s,]|Lower bound:\s+([-+.\deE]+)\s")
_FOUND = re.compile(rb"Integer solution of ([-+.\deE]+) found")
_COMPLAINTS = re.compile(
    "No match for|Short match for|Multiple matches|String of|<Possible options|.* was provided for |"
    "Option for preprocess changed from .* to (?!off)"
)
_LIMITS: dict[str, Limit] = {
    "Stopped on time limit": "time",
    "Stopped on node limit": "work",
    "Stopped on iteration limit": "work",
    "Stopped on solution limit": "work",
}

Hear = Callable[[float | None, float | None], None]
"""Takes the objective of a solution that CBC names, with six digits, and a bound; None: not told."""


def solve(reading: Reading, stop: threading.Event) -> Solution:
    """
    Solve with CBC, which gives no relaxations here; see `registry.Wrapper`. A stop is a SIGINT.

    Raises ``Unsupported`` if a variable may exceed `MAX_VALUE`, or if there is no program. Raises ``BadInput`` if CBC
    refuses an option in ``extra``, or if one switches the preprocessing on again.
    """
    model, options = reading.model, reading.options
    if max(abs(model.lower).max(), abs(model.upper).max()) >= MAX_VALUE:
        raise Unsupported("CBC returns values of eight digits, a variable may be larger; use solver 'highs' or 'cpsat'")

    def hear(objective: float | None, bound: float | None) -> None:
        if bound is not None:
            reading.offer_bound(bound)
        if objective is not None:
            reading.report(claimed=objective)

    ends = time.monotonic() + reading.seconds_left
    found = run(model, options, hear, stop, ends=ends, tolerance=integer_tolerance(model))
    if found.claim == "infeasible":
        return reading.conclude("infeasible")
    if found.claim in ("error", "unbounded"):
        return reading.conclude("error", found.limit, found.message)
    if found.values is not None and not reading.offer(found.values):
        return reading.conclude("error", found.limit, "CBC returned values that break the model; thrown away")
    if found.claim == "optimal":
        return reading.conclude("optimal", bound=None if found.bound is None else reading.proven(found.bound))
    if found.limit == "time" and reading.seconds < options.time_limit_s / 2:
        return reading.conclude("error", message="CBC was stopped by a clock that jumped")
    return reading.conclude("feasible", found.limit)


def run(
    model: Any,
    options: SolveOptions,
    hear: Hear,
    stop: threading.Event,
    *,
    ends: float,
    tolerance: float = LOOSE,
    integer: NDArray[np.bool_] | None = None,
) -> Outcome:
    """
    Run CBC on a model until the monotonic clock shows ``ends``; its outcome has a bound where CBC calls values optimal.

    - ``model``: A `LinearModel`, or one with the same fields in floating point, where infinite bounds are missing ones.
    - ``tolerance``: How far from an integer it may leave a value.
    - ``integer``: Shape ``(n,)``: whether a variable is integer. None: all are.
    """
    minimised, sign = model, 1
    if model.sense == "max":  # CBC ignores the sense in an MPS file
        minimised, sign = replace(model, objective=-model.objective, offset=-model.offset, sense="min"), -1
    log = _Log(hear, sign, options.extra)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as start, tempfile.TemporaryFile() as solution:
        given.write(mps(minimised, integer))
        if options.hint is not None:
            start.write(_start(options.hint.tolist()))
        for file in (given, start):
            file.flush()
        files = [file.fileno() for file in (given, start, solution)]
        command = [cbc_program(), *_arguments(options, ends - time.monotonic(), tolerance, *files)]
        code = _run(command, files, log, options, stop)
        solution.seek(0)
        text = solution.read().decode("ascii", errors="replace")
    if stop.is_set():
        log.limit = "user"
    found = _outcome(code, log, text, len(model.lower))
    return found if found.bound is None else found._replace(bound=sign * found.bound if options.gap == 0 else None)


def _run(
    command: Sequence[str], files: Sequence[int], log: "_Log", options: SolveOptions, stop: threading.Event
) -> int:
    """
    Run the program to its end, and return its exit code, negative for a signal.

    Its output is a terminal: then it writes every line at once, and not thousands of bytes at a time, which are lost
    when it is killed.
    """
    reading, writing = os.openpty()
    with open(reading, "rb") as output:
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell; what is run is CBC
                command, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.STDOUT, pass_fds=files
            )
        finally:
            os.close(writing)
        try:
            limit_of_program(process.pid, options.memory_limit_mib, 1 + options.threads)
            with Stopper(stop, lambda: process.send_signal(signal.SIGINT)):
                with contextlib.suppress(OSError):  # a terminal reports its last writer gone
                    for line in output:
                        log.take(line)
                return process.wait()
        finally:
            process.kill()
            process.wait()


def _outcome(code: int, log: "_Log", text: str, num_variables: int) -> Outcome:
    """The status in the solution file first; values only where it calls them integer."""
    status, objective, values = _read(text, num_variables)
    if not status and log.limit == "none":
        if log.infeasible:  # CBC then dies over the file
            return Outcome("infeasible")
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        message = f"CBC ended with {how} and no solution file: {log.last_line}"
        return Outcome("error", "memory" if log.starved else "none", message=message)
    if status in ("Infeasible", "Integer infeasible"):
        return Outcome("infeasible")
    if status.startswith(("Optimal", "Stopped")) and "no integer solution" not in status:
        if values is None:
            return Outcome("error", log.limit, message="CBC's solution file is cut short; thrown away")
        if status.startswith("Optimal"):
            return Outcome("optimal", log.limit, values, objective if status == "Optimal" else None)  # of a minimum
        return Outcome("feasible", log.limit, values)
    if log.limit == "none" and not status.startswith("Stopped"):
        return Outcome("unbounded" if status == "Unbounded" else "error", message=f"CBC ended with {status!r}")
    return Outcome("no_solution", log.limit)


def _arguments(
    options: SolveOptions, seconds: float, tolerance: float, given: int, start: int, solution: int
) -> Iterator[str]:
    own: dict[str, object] = {
        "preprocess": "off",
        "timeMode": "elapsed",
        "seconds": max(seconds, 0.0),
        "randomSeed": options.seed % MAX_SEED + 1,  # 0 is the time of day
        "randomCbcSeed": options.seed % MAX_SEED + 1,
        "ratioGap": options.gap,
        "integerTolerance": tolerance,
    }
    if options.threads > 1 and not options.deterministic:
        own["threads"] = options.threads
    if options.work_limit is not None:
        own["maxNodes"] = max(int(options.work_limit * NODES_PER_WORK), 1)
    yield f"/dev/fd/{given}"
    for name, value in [*own.items(), *options.extra]:
        yield from (f"-{name.lstrip('-')}", str(value))
    if options.hint is not None:
        yield from ("-mipstart", f"/dev/fd/{start}")
    yield from ("-solve", "-printingOptions", "all", "-solution", f"/dev/fd/{solution}")


def _start(hint: list[int]) -> bytes:
    """A hint in the form of a solution file."""
    lines = (f"{j:7} c{j} {value} 0" for j, value in enumerate(hint))
    return "\n".join(["Stopped on time - objective value 0", *lines, ""]).encode("ascii")


def _read(text: str, num_variables: int) -> tuple[str, float, NDArray[np.float64] | None]:
    """
    Status and objective in a solution file; values if there is a whole line for every variable, after those of rows.

    The status is empty where the file holds not even a first line.
    """
    first, newline, rest = text.partition("\n")
    status, separator, said = first.partition(" - objective value ")
    if not newline or not separator:
        return "", math.nan, None
    lines = rest.splitlines()
    lines = lines[len(lines) - num_variables :]
    fields = [line.removeprefix("**").split() for line in lines]  # two stars mark what breaks a bound or a row
    whole = len(fields) == num_variables and rest.endswith("\n")
    if not whole or any(len(entry) != 4 or entry[1] != f"c{j}" for j, entry in enumerate(fields)):
        return status, float(said), None
    return status, float(said), np.array([float(entry[2]) for entry in fields])


class _Log:
    """What CBC prints: news are heard; kept is why it stopped, and what an error may come from."""

    def __init__(self, hear: Hear, sign: int, extra: Sequence[tuple[str, str]]) -> None:
        self.limit: Limit = "none"
        self.infeasible = self.starved = False
        self.last_line = "nothing said"
        self._hear, self._sign, self._extra = hear, sign, extra

    def take(self, line: bytes) -> None:
        """Take a line of output; raises `BadInput` if CBC refuses an option, which it would solve without."""
        found, bound = _FOUND.search(line), _BOUND.search(line)
        proven = math.inf if bound is None else float(bound[1] or bound[2])
        self._hear(
            None if found is None else self._sign * float(found[1]),
            None if abs(proven) >= MAX_EXACT else self._sign * proven,  # there is none yet
        )
        text = line.decode("ascii", errors="replace").strip()
        self.last_line = text or self.last_line
        self.starved |= "bad_alloc" in text
        self.infeasible |= text.startswith("Problem is infeasible")
        if text.startswith("Result - "):
            said = text.removeprefix("Result - ")
            self.limit = "user" if "ctrl-c" in said else _LIMITS.get(said, "none")
        elif self._extra and _COMPLAINTS.match(text):
            named = ", ".join(f"{name}={value}" for name, value in self._extra)
            raise BadInput(f"CBC refuses an option of {named}: {text}")


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
