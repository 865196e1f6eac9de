"""
CBC, by its program: the one that PuLP brings, or one on the path.

The model goes over as our own MPS file, in 2 s per million non-zeros, where PuLP needs 40 to 70. CBC's preprocessing
is switched off: with it, CBC 2.10.3 calls wrong optima optimal (in 17 of 2,000 tiny placement models, in none
without). We read its log and its solution file ourselves: a file that is cut short, or that holds the values of the
linear relaxation for want of a solution, reads elsewhere as a complete optimum.

Bounds are reported while CBC runs, solutions only at its end: CBC writes none before, its log only names their
objectives, which are reported as claims. So it is asked to stop a little early; if it has to be killed, what remains is
the hint and the bound. The solver process ends it, see `placeopt.solvers.worker`; files are passed as open descriptors
of unnamed files, so there is nothing else to tidy up.

Work is counted in nodes, on one thread; a unit is of the order of a second of a small model. The root node, with its
cuts and heuristics, comes on top and cannot be limited.
"""

import contextlib
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import BadInput, Unsupported
from placeopt.linear import LinearModel
from placeopt.solvers.export import mps
from placeopt.solvers.reading import LOOSE, OnProgress, Reading
from placeopt.solvers.registry import available
from placeopt.solvers.result import Limit, Solution, SolveOptions
from placeopt.solvers.stopper import Stopper

MAX_VALUE = 10**8
"""CBC writes values with eight digits; larger ones would come back as others."""
MAX_PROVEN = 10**15
"""Objectives up to which a unit more or less is seen; measured, on 12 binaries with costs up to 1e14."""
UNKNOWN = 1e30
"""Bounds beyond this are CBC's word for none."""
MAX_SEED = 2**31 - 1
"""CBC's own; of any seed what is left over by it, and one more, is handed over."""
NODES_PER_WORK = 500
"""Nodes of its tree in a unit of ``SolveOptions.work_limit``, roughly a second."""
SPARE = 0.1, 0.3
"""Share of the time, and most seconds, that CBC gets less than there are, to write its solution."""
ADDRESS_SPACE_MIB = 80
"""Address space that the program, and each of its threads, reserves without using the memory."""

_BOUND = re.compile(rb"best possible ([-+.\deE]+?)\)?[\s,]|Lower bound:\s+([-+.\deE]+)\s")
_FOUND = re.compile(rb"Integer solution of ([-+.\deE]+) found")
_SECONDS = re.compile(rb"\(([.\d]+) seconds\)\s*$")
_TOTAL = re.compile(rb"Wallclock seconds\):\s+([.\d]+)")
_COMPLAINTS = ("No match for", "Short match for", "Multiple matches", "String of", "<Possible options")
_PREPROCESSING = re.compile("Option for preprocess changed from .* to (?!off)")
_LIMITS: dict[str, Limit] = {
    "Stopped on time limit": "time",
    "Stopped on node limit": "work",
    "Stopped on iteration limit": "work",
    "Stopped on solution limit": "work",
}


def solve(
    model: LinearModel,
    options: SolveOptions,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
) -> Solution:
    """
    Solve with CBC, which gives no relaxations here; see `registry.Solve`. A stop is a SIGINT.

    Raises ``Unsupported`` if a variable may exceed `MAX_VALUE`, or if there is no program. Raises ``BadInput`` if CBC
    refuses an option in ``extra``, or if one switches the preprocessing on again.
    """
    if options.relax:
        raise Unsupported("pulp-cbc solves no relaxations here; use solver 'highs'")
    reading = Reading(model, options, on_progress)
    settled = reading.settled()
    if settled is not None:
        return settled
    if max(abs(model.lower).max(), abs(model.upper).max()) >= MAX_VALUE:
        raise Unsupported("CBC returns values of eight digits, a variable may be larger; use solver 'highs' or 'cpsat'")
    minimised = model
    if model.sense == "max":  # CBC ignores the sense in an MPS file
        minimised = replace(model, objective=-model.objective, offset=-model.offset, sense="min")
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as start, tempfile.TemporaryFile() as solution:
        _fill(given, mps(minimised))
        if options.hint is not None:
            _fill(start, _start(options.hint.tolist()))
        files = [file.fileno() for file in (given, start, solution)]
        log = _Log(reading, options)
        seconds = max(options.time_limit_s - reading.seconds, 1e-3)
        code = _run([cbc_program(), *_arguments(model, options, seconds, *files)], files, log, options, stop)
        solution.seek(0)
        result = _read(solution.read(), model)
    limit: Limit = "user" if stop is not None and stop.is_set() else log.limit
    if limit == "time" and reading.seconds < options.time_limit_s / 2:  # CBC gets at least 1 - SPARE of its time
        if result.claim == "feasible" and result.values is not None:
            reading.offer(result.values)
        return reading.conclude("error", message="CBC was stopped by a clock that jumped")
    return _conclusion(reading, code, limit, log, result, options)


def _run(
    command: Sequence[str], files: Sequence[int], log: "_Log", options: SolveOptions, stop: threading.Event | None
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
            if options.memory_limit_mib is not None and sys.platform == "linux":  # elsewhere it has our own limit
                most = (options.memory_limit_mib + (1 + options.threads) * ADDRESS_SPACE_MIB) << 20
                resource.prlimit(process.pid, resource.RLIMIT_AS, (most, most))
            with Stopper(stop, lambda: process.send_signal(signal.SIGINT)):
                with contextlib.suppress(OSError):  # a terminal reports its last writer gone
                    for line in output:
                        log.take(line)
                return process.wait()
        finally:
            process.kill()
            process.wait()


def _conclusion(
    reading: Reading, code: int, limit: Limit, log: "_Log", result: "_Result", options: SolveOptions
) -> Solution:
    """CBC's status first; values only where it says that they are integer, and then they are verified."""
    if result.claim == "none":
        if limit != "none":  # it had no time to write
            return reading.conclude("feasible" if reading.values is not None else "no_solution", limit)
        if log.infeasible:  # CBC then dies over the file
            return reading.conclude("infeasible")
        memory: Limit = "memory" if "bad_alloc" in log.tail else "none"
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return reading.conclude("error", memory, f"CBC ended with {how} and no solution file: {log.last_line}")
    if result.claim == "infeasible":
        return reading.conclude("infeasible")
    if result.claim in ("optimal", "feasible"):
        if result.values is None:
            return reading.conclude("error", limit, "CBC's solution file is cut short; thrown away")
        if not reading.offer(result.values):
            return reading.conclude("error", limit, "CBC returned values that break the model; thrown away")
    if result.claim == "optimal":
        return reading.conclude("optimal", bound=_proven(reading, result, options))
    if limit == "none" and result.claim == "error":
        return reading.conclude("error", message=f"CBC ended with {result.status!r}")
    return reading.conclude("feasible" if reading.values is not None else "no_solution", limit)


def _proven(reading: Reading, result: "_Result", options: SolveOptions) -> int | None:
    """The bound behind a claim of optimality: the objective itself, if it is what CBC says it is and asked for."""
    objective, said = reading.objective, result.objective
    if objective is None or options.gap > 0 or "gap" in result.status or abs(objective) > MAX_PROVEN:
        return None
    sign = -1 if reading.model.sense == "max" else 1
    return objective if abs(sign * said - objective) <= max(LOOSE, LOOSE * abs(objective)) else None


def _arguments(
    model: LinearModel, options: SolveOptions, seconds: float, given: int, start: int, solution: int
) -> Iterator[str]:
    share, most = SPARE
    heaviest = float(np.bincount(model.row_of_nonzero, weights=np.abs(model.coefficients)).max(initial=1.0))
    own = {
        "preprocess": "off",
        "timeMode": "elapsed",
        "seconds": max(seconds - min(share * seconds, most), 1e-3),
        "randomSeed": options.seed % MAX_SEED + 1,  # 0 is the time of day
        "randomCbcSeed": options.seed % MAX_SEED + 1,
        "ratioGap": options.gap,
        # As for HiGHS: rounding an almost integer value must not break a row.
        "integerTolerance": float(np.clip(0.4 / heaviest, 1e-9, 1e-6)),
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
    lines = (f"{j:7} x{j} {value} 0" for j, value in enumerate(hint))
    return "\n".join(["Stopped on time - objective value 0", *lines, ""]).encode("ascii")


def _fill(file: BinaryIO, content: bytes) -> None:
    file.write(content)
    file.flush()


@dataclass(frozen=True)
class _Result:
    """
    A solution file: what it claims, in our words; its first line; the objective there; values only if all are there.

    ``claim`` is ``none`` for a file that holds not even a first line, ``no_solution`` where CBC wrote the values of a
    relaxation, ``error`` for a status that we do not know.
    """

    claim: str
    status: str = ""
    objective: float = math.nan
    values: NDArray[np.float64] | None = None


def _read(content: bytes, model: LinearModel) -> _Result:
    first, newline, rest = content.decode("ascii", errors="replace").partition("\n")
    status, separator, said = first.partition(" - objective value ")
    if not newline or not separator:
        return _Result("none")
    if status in ("Infeasible", "Integer infeasible"):
        return _Result("infeasible", status)
    if "no integer solution" in status:
        return _Result("no_solution", status)
    claim = "optimal" if status.startswith("Optimal") else "feasible" if status.startswith("Stopped") else "error"
    if claim == "error":
        return _Result(claim, status)
    return _Result(claim, status, float(said), _values(rest, model))


def _values(text: str, model: LinearModel) -> NDArray[np.float64] | None:
    """The values, if there is a whole line for every row and then for every variable; else ``None``."""
    lines = text.splitlines()[model.num_rows :]
    if len(lines) != model.num_variables or not text.endswith("\n"):
        return None
    fields = [line.removeprefix("**").split() for line in lines]  # two stars mark what breaks a bound or a row
    if any(len(entry) != 4 or entry[1] != f"x{j}" for j, entry in enumerate(fields)):
        return None
    return np.array([float(entry[2]) for entry in fields])


def last_bound(log: bytes) -> float | None:
    """Return the last bound in CBC's output, of a minimum without its constant; None if there is none."""
    bounds = [float(one or other) for one, other in _BOUND.findall(log)]
    return bounds[-1] if bounds and abs(bounds[-1]) < UNKNOWN else None


def trajectory(log: bytes, ended_s: float = 0.0) -> list[tuple[float, float | None, float | None]]:
    """
    Return what CBC's output says by its own clock: seconds, the objective of its best solution, and its bound.

    Of a minimum without its constant; None until there is one. Objectives have six digits. ``ended_s``: seconds at the
    end by the clock of the caller, whose start may be earlier.
    """
    totals = _TOTAL.findall(log)
    earlier_s = max(ended_s - float(totals[-1]), 0.0) if totals else 0.0
    out: list[tuple[float, float | None, float | None]] = []
    objective: float | None = None
    bound: float | None = None
    for line in log.splitlines():
        seconds, found, lower = _SECONDS.search(line), _FOUND.search(line), last_bound(line + b"\n")
        if seconds is None or (found is None and lower is None):
            continue
        if found is not None and (objective is None or float(found[1]) < objective):
            objective = float(found[1])
        bound = lower if bound is None or (lower is not None and lower > bound) else bound
        out.append((earlier_s + float(seconds[1]), objective, bound))
    return out


class _Log:
    """Listens to what CBC prints: bounds go to the reading; its reason to stop and its complaints are kept."""

    def __init__(self, reading: Reading, options: SolveOptions) -> None:
        self.limit: Limit = "none"
        self.infeasible = False
        self.tail = ""
        self._reading = reading
        self._sign = -1 if reading.model.sense == "max" else 1
        self._extra = options.extra

    @property
    def last_line(self) -> str:
        """The last thing said, for a message."""
        lines = self.tail.strip().splitlines()
        return lines[-1] if lines else "nothing said"

    def take(self, line: bytes) -> None:
        """Take a line of output; raises `BadInput` if CBC refuses an option, which it would solve without."""
        bound = last_bound(line)
        if bound is not None:
            self._reading.offer_bound(self._sign * bound)
        found = _FOUND.search(line)
        if found is not None:
            self._reading.report_claim(self._sign * float(found[1]))
        text = line.decode("ascii", errors="replace").rstrip()
        self.tail = f"{self.tail}{text}\n"[-2000:]
        if text.startswith("Result - "):
            said = text.removeprefix("Result - ")
            self.limit = _LIMITS.get(said, "user" if "ctrl-c" in said else "none")
        elif text.startswith("Problem is infeasible"):
            self.infeasible = True
        elif self._extra and (
            text.startswith(_COMPLAINTS) or " was provided for " in text or _PREPROCESSING.match(text)
        ):
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
