"""Runs a case in a process of its own: ends it when it is cancelled or takes too long, and reads what it says."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from placeopt.benchmark.child import GRACE_S, HARD_FACTOR
from placeopt.benchmark.journal import Case, CaseAnswer, TrajectoryPoint

CHILD = ("-P", "-m", "placeopt.benchmark.child")
POLL_S = 0.05
OURS_S = 600.0
"""Seconds allowed for starting and reading, and as many for checking: they do not count as the method's time."""


class CaseOutcome(NamedTuple):
    """Outcome of a case; ``solution`` is the file it wrote, None if none."""

    case: Case
    answer: CaseAnswer
    trajectory: tuple[TrajectoryPoint, ...]
    solution: Path | None
    began: str
    load_before: float
    load_after: float


def run_case(
    case: Case,
    folder: Path,
    cancelled: Callable[[], bool] | None = None,
    start: Path | None = None,
) -> CaseOutcome | None:
    """
    Run a case in a process of its own; return None if it was cancelled: it then counts as not run.

    The solution goes to ``<key>.json.gz`` in ``folder``. ``cancelled`` is called twenty times a second; true ends the
    case, and so does more time than `allowance`. ``start``: folder that the case's path is relative to, for workers
    started elsewhere; None: the current one.
    """
    began, load_before = datetime.now(UTC).isoformat(timespec="seconds"), os.getloadavg()[0]
    target = folder / f"{case.key}.json.gz"
    target.unlink(missing_ok=True)
    request = json.dumps({"case": case.model_dump(mode="json"), "solution": str(target)}) + "\n"
    due = time.monotonic() + allowance(case)
    with tempfile.TemporaryFile() as errors:  # no pipe: programs that outlive the process would keep it open
        process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, *CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=start,
            start_new_session=True,  # so that Ctrl-C is ours alone, and a kill takes all of it
            text=True,
            encoding="utf-8",
        )
        try:
            said, ended = _attend(process, request, due, cancelled)
        finally:
            _kill(process)  # and what it has started and not ended
        errors.seek(0)
        last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
    if ended == "cancelled":
        target.unlink(missing_ok=True)
        return None
    points, answer = _read(said)
    solution = target if answer is not None and target.exists() else None
    if answer is None and ended == "killed":
        answer = CaseAnswer(status="killed", limit="time", message=f"killed after {allowance(case):g} s")
    answer = answer or _crash(process.returncode, last)
    return CaseOutcome(case, answer, points, solution, began, load_before, os.getloadavg()[0])


def _attend(
    process: subprocess.Popen[str], request: str, due: float, cancelled: Callable[[], bool] | None
) -> tuple[str, str]:
    """Return what the process wrote, and how it ended: ``ended``, ``killed`` or ``cancelled``."""
    how, to_send = "ended", request
    while True:
        try:
            return process.communicate(to_send, POLL_S)[0], how
        except subprocess.TimeoutExpired:
            to_send = ""  # it is on its way
        if cancelled is not None and cancelled():
            how = "cancelled"
        elif time.monotonic() > due:
            how = "killed"
        if how != "ended":
            _kill(process)


def allowance(case: Case) -> float:
    """Return the seconds that a case may take, from its start to its answer."""
    return 2 * OURS_S + GRACE_S + HARD_FACTOR * case.time_limit_s


def _read(said: str) -> tuple[tuple[TrajectoryPoint, ...], CaseAnswer | None]:
    """Return the points of the trajectory and the answer; an incomplete line is ignored."""
    points: list[TrajectoryPoint] = []
    answer = None
    for line in said.splitlines():
        with contextlib.suppress(ValueError):
            news = json.loads(line)
            if "point" in news:
                seconds, *rest = news["point"]
                points.append((float(seconds), *rest))
            if "answer" in news:
                answer = CaseAnswer.model_validate_json(json.dumps(news["answer"]))
    return tuple(points), answer


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _crash(code: int, last: list[str]) -> CaseAnswer:
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return CaseAnswer(status="crashed", message=": ".join([f"its process ended with {how}", *last]))
