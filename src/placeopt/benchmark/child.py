"""
The process of one case: ``python -m placeopt.benchmark.child``.

Reads a case and the name of a file for the solution, a JSON line, from its standard input. Writes JSON lines: a point
whenever objective or bound has changed, and at the end the answer. It ends itself when a solve does not end, or when
the process that started it is gone.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import threading
import time
from pathlib import Path

from placeopt.benchmark.journal import Case, CaseAnswer, Status, TrajectoryPoint
from placeopt.benchmark.solu import Number
from placeopt.errors import PlaceoptError, Unsupported

RUNNERS = {
    "placement": ("placeopt.benchmark.placement_case", "place_round"),
    "linear": ("placeopt.benchmark.linear_case", "solve_model"),
    "quadratic": ("placeopt.benchmark.quadratic_case", "assign_items"),
}
"""Modules are imported on use: an integer model needs no engine."""
HARD_FACTOR, GRACE_S = 2.0, 30.0
"""A solve is ended after ``HARD_FACTOR`` times its limit plus ``GRACE_S`` seconds."""
POLL_S = 0.5


class CaseReport:
    """
    News of a case for the parent process, and the times of its phases.

    Only the time between `solving` and `solved` counts as the method's, and is limited here.
    """

    def __init__(self, limit_s: float) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self._last: tuple[Number | None, ...] | None = None
        self._began, self._cpu_s = time.monotonic(), 0.0
        self._allowed_s = HARD_FACTOR * limit_s + GRACE_S
        self._timer: threading.Timer | None = None
        self.read_s: float | None = None
        self.wall_s: float | None = None
        self.cpu_s: float | None = None

    def tell(self, kind: str, value: object) -> None:
        """Write a line."""
        self._out.write(json.dumps({kind: value}) + "\n")
        self._out.flush()

    def point(self, point: TrajectoryPoint) -> None:
        """Report a point if it differs from the last one in more than time."""
        if self._last != point[1:]:
            self._last = point[1:]
            self.tell("point", point)

    def solving(self, allowed_s: float | None = None) -> None:
        """
        Begin to solve: all before was reading.

        ``allowed_s``: seconds after which the process ends without a solution, for solvers in this process, which may
        not end by themselves; None: those of any case, after which the answer is that it was killed.
        """
        self.read_s, self._cpu_s = time.monotonic() - self._began, _cpu_s()
        seconds = self._allowed_s if allowed_s is None else allowed_s
        status = "killed" if allowed_s is None else "no_solution"
        self._timer = threading.Timer(seconds, self._end, (status, f"killed after {seconds:g} s solving"))
        self._timer.daemon = True
        self._timer.start()
        self._began = time.monotonic()

    def solved(self) -> None:
        """Note the end of the solve, before its processes are ended."""
        self.wall_s = time.monotonic() - self._began
        if self._timer is not None:
            self._timer.cancel()

    def judging(self) -> None:
        """Begin to check the solution; the solver's processes have ended, so their CPU time counts."""
        self.cpu_s = _cpu_s() - self._cpu_s

    def _end(self, status: Status, message: str) -> None:
        wall_s = time.monotonic() - self._began
        answer = CaseAnswer(status=status, limit="time", message=message, wall_s=wall_s, read_s=self.read_s)
        self.tell("answer", answer.model_dump(mode="json"))
        os._exit(0)


def main() -> None:
    """Run the case that standard input describes."""
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()
    request = json.loads(sys.stdin.readline())
    case, target = Case.model_validate_json(json.dumps(request["case"])), Path(request["solution"])
    module, name = RUNNERS[case.kind]
    runner = getattr(importlib.import_module(module), name)
    report = CaseReport(case.time_limit_s)
    os.dup2(2, 1)  # output of solvers goes to standard error
    try:
        answer: CaseAnswer = runner(case, target, report)
        times = {"wall_s": report.wall_s, "cpu_s": report.cpu_s, "read_s": report.read_s}
        answer = answer.model_copy(update=times)
    except PlaceoptError as error:
        message = f"{type(error).__name__}: {error}"
        answer = CaseAnswer(status="unsupported" if isinstance(error, Unsupported) else "error", message=message)
    report.tell("answer", answer.model_copy(update={"peak_mib": _peak_mib()}).model_dump(mode="json"))


def _watch_parent(parent: int) -> None:
    """Exit when the process that started this one is gone."""
    while os.getppid() == parent:
        time.sleep(POLL_S)
    os._exit(1)


def _cpu_s() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    return sum(usage.ru_utime + usage.ru_stime for usage in _usage())


def _peak_mib() -> int:
    """Return the largest resident set of this process or one of its children, in MiB."""
    return max(usage.ru_maxrss for usage in _usage()) >> 10


def _usage() -> list[resource.struct_rusage]:
    return [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]


if __name__ == "__main__":
    main()
