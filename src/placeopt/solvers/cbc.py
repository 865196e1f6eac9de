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
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from placeopt.arguments import MAX_SEED
from placeopt.errors import BadInput, Unsupported
from placeopt.linear import MAX_EXACT, LinearModel
from placeopt.solvers.export import mps
from placeopt.solvers.memory import limit_of_program
from placeopt.solvers.reading import Reading, integer_tolerance
from placeopt.solvers.registry import available
from placeopt.solvers.result import Limit, Solution, SolveOptions
from placeopt.solvers.stopper import Stopper

MAX_VALUE = 10**8
"""CBC writes values with eight digits; larger ones would come back as others."""
NODES_PER_WORK = 500
"""Nodes of its tree in a unit of ``SolveOptions.work_limit``, roughly a second."""

_BOUND = re.compile(rb"best possible ([-+.\deE]+?)\)?[\s,]|Lower bound:\s+([-+.\deE]+)\s")
_FOUND = re.compile(rb"Integer solution of ([-+.\deE]+) found")
_SECONDS = re.compile(rb"\(([.\d]+) seconds\)\s*$")
_TOTAL = re.compile(rb"Wallclock seconds\):\s+([.\d]+)")
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


def solve(reading: Reading, stop: threading.Event) -> Solution:
    """
    Solve with CBC, which gives no relaxations here; see `registry.Wrapper`. A stop is a SIGINT.

    Raises ``Unsupported`` if a variable may exceed `MAX_VALUE`, or if there is no program. Raises ``BadInput`` if CBC
    refuses an option in ``extra``, or if one switches the preprocessing on again.
    """
    model, options = reading.model, reading.options
    if max(abs(model.lower).max(), abs(model.upper).max()) >= MAX_VALUE:
        raise Unsupported("CBC returns values of eight digits, a variable may be larger; use solver 'highs' or 'cpsat'")
    minimised = model
    if model.sense == "max":  # CBC ignores the sense in an MPS file
        minimised = replace(model, objective=-model.objective, offset=-model.offset, sense="min")
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as start, tempfile.TemporaryFile() as solution:
        given.write(mps(minimised))
        if options.hint is not None:
            start.write(_start(options.hint.tolist()))
        for file in (given, start):
            file.flush()
        files = [file.fileno() for file in (given, start, solution)]
        log = _Log(reading)
        code = _run([cbc_program(), *_arguments(reading, *files)], files, log, options, stop)
        solution.seek(0)
        text = solution.read().decode("ascii", errors="replace")
    if stop.is_set():
        log.limit = "user"
    return _conclusion(reading, code, log, text)


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


def _conclusion(reading: Reading, code: int, log: "_Log", text: str) -> Solution:
    """The status in the solution file first; values only where it calls them integer, and then they are verified."""
    status, objective, values = _read(text, reading.model)
    if not status and log.limit == "none":
        if log.infeasible:  # CBC then dies over the file
            return reading.conclude("infeasible")
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        message = f"CBC ended with {how} and no solution file: {log.last_line}"
        return reading.conclude("error", "memory" if log.starved else "none", message)
    if status in ("Infeasible", "Integer infeasible"):
        return reading.conclude("infeasible")
    if status.startswith(("Optimal", "Stopped")) and "no integer solution" not in status:
        if values is None:
            return reading.conclude("error", log.limit, "CBC's solution file is cut short; thrown away")
        if not reading.offer(values):
            return reading.conclude("error", log.limit, "CBC returned values that break the model; thrown away")
    if status.startswith("Optimal"):
        sign, exact = -1 if reading.model.sense == "max" else 1, status == "Optimal" and reading.options.gap == 0
        return reading.conclude("optimal", bound=reading.proven(sign * objective) if exact else None)
    if log.limit == "time" and reading.seconds < reading.options.time_limit_s / 2:
        return reading.conclude("error", message="CBC was stopped by a clock that jumped")
    if log.limit == "none" and not status.startswith("Stopped"):
        return reading.conclude("error", message=f"CBC ended with {status!r}")
    return reading.conclude("feasible", log.limit)


def _arguments(reading: Reading, given: int, start: int, solution: int) -> Iterator[str]:
    options = reading.options
    own: dict[str, object] = {
        "preprocess": "off",
        "timeMode": "elapsed",
        "seconds": max(reading.seconds_left, 0.0),
        "randomSeed": options.seed % MAX_SEED + 1,  # 0 is the time of day
        "randomCbcSeed": options.seed % MAX_SEED + 1,
        "ratioGap": options.gap,
        "integerTolerance": integer_tolerance(reading.model),
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


def _read(text: str, model: LinearModel) -> tuple[str, float, NDArray[np.float64] | None]:
    """
    Status and objective in a solution file; values if there is a whole line for every row and then for every variable.

    The status is empty where the file holds not even a first line.
    """
    first, newline, rest = text.partition("\n")
    status, separator, said = first.partition(" - objective value ")
    if not newline or not separator:
        return "", math.nan, None
    lines = rest.splitlines()[model.num_rows :]
    fields = [line.removeprefix("**").split() for line in lines]  # two stars mark what breaks a bound or a row
    whole = len(fields) == model.num_variables and rest.endswith("\n")
    if not whole or any(len(entry) != 4 or entry[1] != f"c{j}" for j, entry in enumerate(fields)):
        return status, float(said), None
    return status, float(said), np.array([float(entry[2]) for entry in fields])


def last_bound(log: bytes) -> float | None:
    """Return the last bound in CBC's output, of a minimum without its constant; None if there is none."""
    bounds = [float(one or other) for one, other in _BOUND.findall(log)]
    return bounds[-1] if bounds and abs(bounds[-1]) < MAX_EXACT else None


def trajectory(log: bytes, ended_s: float) -> list[tuple[float, float | None, float | None]]:
    """
    Return what CBC's output says by its own clock: seconds, the objective of its best solution, and its bound.

    Of a minimum without its constant; None until there is one. Objectives have six digits. ``ended_s``: seconds at the
    end by the clock of the caller, whose start may be earlier.
    """
    total = _TOTAL.findall(log)
    earlier_s = max(ended_s - float(total[-1]), 0.0) if total else 0.0
    out: list[tuple[float, float | None, float | None]] = []
    objectives, bounds = list[float](), list[float]()
    for line in log.splitlines():
        seconds, found, bound = _SECONDS.search(line), _FOUND.search(line), last_bound(line + b"\n")
        if seconds is None or (found is None and bound is None):
            continue
        objectives += [] if found is None else [float(found[1])]
        bounds += [] if bound is None else [bound]
        out.append((earlier_s + float(seconds[1]), min(objectives, default=None), max(bounds, default=None)))
    return out


class _Log:
    """What CBC prints: bounds and claims go to the reading; kept is why it stopped, and what an error may come from."""

    def __init__(self, reading: Reading) -> None:
        self.limit: Limit = "none"
        self.infeasible = self.starved = False
        self.last_line = "nothing said"
        self._reading = reading
        self._sign = -1 if reading.model.sense == "max" else 1
        self._extra = reading.options.extra

    def take(self, line: bytes) -> None:
        """Take a line of output; raises `BadInput` if CBC refuses an option, which it would solve without."""
        bound, found = last_bound(line), _FOUND.search(line)
        if bound is not None:
            self._reading.offer_bound(self._sign * bound)
        if found is not None:
            self._reading.report(claimed=self._sign * float(found[1]))
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
