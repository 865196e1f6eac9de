"""
CBC's program, as PuLP calls it: the one that PuLP brings, or one on the path.

Its preprocessing is switched off: with it, CBC 2.10.3 calls wrong optima optimal (in 17 of 2,000 tiny placement
models, in none without). PuLP says neither what has cut CBC short nor its bound, nor that CBC has left an option aside:
that is read from what CBC prints, which is there after its end only.

Work is counted in nodes, on one thread; a unit is of the order of a second of a small model. The root node, with its
cuts and heuristics, comes on top and cannot be limited.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Sequence
from typing import IO, Any

from placeopt.arguments import MAX_SEED
from placeopt.errors import Unsupported
from placeopt.solvers.reading import integer_tolerance
from placeopt.solvers.registry import available
from placeopt.solvers.result import Limit, SolveOptions

with warnings.catch_warnings(action="ignore"):  # PuLP announces its next version
    import pulp

DIGITS = 8
"""Of values as CBC writes them; larger ones would come back as others."""
MAX_COST = 10**13
"""PuLP writes costs with 13 digits."""
NODES_PER_WORK = 500
"""Nodes of its tree in a unit of ``SolveOptions.work_limit``, roughly a second."""

_END = re.compile("Result - .*?(time limit|limit|ctrl-c)")
_LIMITS: dict[str, Limit] = {"time limit": "time", "limit": "work", "ctrl-c": "user"}
_LOWER = re.compile(r"Lower bound: +(\S+)")
_OPTIMUM = re.compile(r"(?:Objective value:|Optimal objective) +(\S+)")
_COMPLAINT = re.compile(
    "^(?:No match for|Short match for|Multiple matches|String of|<Possible options|.* was provided for |"
    "Option for preprocess changed from .* to (?!off)).*",
    re.MULTILINE,
)


class Cbc(pulp.COIN_CMD):  # type: ignore[misc]  # PuLP has no types
    """PuLP's interface to CBC, on files without names, of which a kill leaves nothing behind."""

    def __init__(self, *, gapRel: float, options: Sequence[str], **passed: Any) -> None:  # noqa: N803 - PuLP's name
        self._files: dict[str, IO[bytes]] = {}
        (log,) = self.create_tmp_files("", "log")
        # PuLP's own options come after those of ``options``, and would win
        options = [f"ratioGap={gapRel}", *options]
        super().__init__(path=cbc_program(), logPath=log, options=options, keepFiles=True, **passed)

    def create_tmp_files(self, name: str, *kinds: str) -> list[str]:
        """Return paths of files, one for each kind, which are there as long as this object."""
        del name
        self._files |= {kind: tempfile.TemporaryFile() for kind in kinds}  # noqa: SIM115 - closed with this object
        return [self._path(kind) for kind in kinds]

    def actualSolve(self, lp: Any) -> None:  # noqa: N802 - the name is PuLP's
        """
        Solve, and leave what CBC has printed as the problem's ``solverModel``.

        Raises ``PulpSolverError`` if CBC dies, writes no whole solution or refuses an option, and ``MemoryError``.
        """
        fault: Exception | None = None
        began = time.monotonic()
        try:
            super().actualSolve(lp)
        except Exception as error:  # noqa: BLE001 - PuLP does not expect half a file
            fault = error
        log = lp.solverModel = self._files["log"].read().decode("ascii", errors="replace")
        if (complaint := _COMPLAINT.search(log)) is not None:
            raise pulp.PulpSolverError(complaint[0])
        if fault is None:
            return
        if "bad_alloc" in log:
            raise MemoryError from fault
        if log or not self._is_infeasible(2 * (time.monotonic() - began)):
            raise pulp.PulpSolverError("CBC died, or has written no whole solution") from fault
        lp.assignStatus(pulp.LpStatusInfeasible)

    def _is_infeasible(self, seconds: float) -> bool:
        """
        Whether CBC, asked once more, finds the model infeasible before it begins to search.

        Then it dies over the solution file before anything that it says is printed; so here it has no file to write.
        """
        command = [self.path, self._path("mps"), "-preprocess", "off", "-solve"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            said = subprocess.run(command, capture_output=True, timeout=seconds, check=False).stdout  # noqa: S603
            return b"Problem is infeasible" in said
        return False

    def _path(self, kind: str) -> str:
        return f"/proc/{os.getpid()}/fd/{self._files[kind].fileno()}"


def cbc_options(model: Any, options: SolveOptions) -> dict[str, object]:
    """What CBC is told beyond time, gap and start; raises ``Unsupported`` if a cost has too many digits."""
    if abs(model.objective).max(initial=0) >= MAX_COST:
        raise Unsupported(f"PuLP hands costs below {MAX_COST:,} over to CBC; use solver 'highs' or 'cpsat'")
    seed = options.seed % MAX_SEED + 1  # 0 is the time of day
    own: dict[str, object] = {
        "preprocess": "off",
        "randomSeed": seed,
        "randomCbcSeed": seed,
        "integerTolerance": integer_tolerance(model),
    }
    if options.threads > 1 and not options.deterministic:
        own["threads"] = options.threads
    if options.work_limit is not None:
        own["maxNodes"] = max(int(options.work_limit * NODES_PER_WORK), 1)
    return own


def cbc_limit(log: str) -> Limit:
    """What CBC says has cut it short."""
    end = _END.search(log)
    return "none" if end is None else _LIMITS[end[1]]


def cbc_bound(log: str) -> float:
    """The bound of a minimum that CBC names at its end; raises ``IndexError`` if it names none."""
    named = _LOWER.findall(log)
    if not named and cbc_limit(log) == "none":
        named = _OPTIMUM.findall(log)
    return float(named[-1])


def cbc_program() -> str:
    """Path of CBC's program: PuLP's own, or the one on the path."""
    program = shutil.which(pulp.PULP_CBC_CMD.pulp_cbc_path) or shutil.which("cbc")
    if program is None:
        raise Unsupported(f"PuLP finds no CBC program; installed are {', '.join(available())}")
    return program
