"""A case under supervision: its process is ended if it does not end by itself, and what it has said is kept."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from placeopt.benchmark.records import Answer, Case, Point

POLL_S = 0.05
START_S = 30.0
HARD_FACTOR = 2.0
"""A case may take so many times its limit, and so many seconds for starting and reading, before it is killed."""


class Outcome(NamedTuple):
    """What came of a case; ``solution`` is the file it wrote, None if none."""

    case: Case
    answer: Answer
    trajectory: tuple[Point, ...]
    solution: Path | None
    began: str
    load_before: float
    load_after: float


def run_case(
    case: Case, folder: Path, cancelled: Callable[[], bool] | None = None, hard_limit_s: float | None = None
) -> Outcome | None:
    """
    Run a case in a process of its own.

    Parameters
    ----------
    case
        What to run.
    folder
        Where the solution goes, as ``<key>.json.gz``.
    cancelled
        Asked twenty times a second; true kills the case.
    hard_limit_s
        Seconds after which it is killed; left out, twice its limit and 30 s.

    Returns
    -------
    Outcome | None
        None if it was cancelled: it counts as not run.
    """
    began, load_before = datetime.now(UTC).isoformat(timespec="seconds"), os.getloadavg()[0]
    target = folder / f"{case.key}.json.gz"
    target.unlink(missing_ok=True)
    hard = START_S + HARD_FACTOR * case.time_limit_s if hard_limit_s is None else hard_limit_s
    request = {"case": case.model_dump(mode="json"), "solution": str(target)}
    points: list[Point] = []
    answers: list[Answer] = []
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "placeopt.benchmark.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # so that Ctrl-C is ours alone, and a kill takes all of it
            text=True,
            encoding="utf-8",
        )
        try:
            reader = threading.Thread(target=_read, args=(process.stdout, points, answers), daemon=True)
            reader.start()
            ended = _attend(process, json.dumps(request), time.monotonic() + hard, cancelled)
        finally:
            _kill(process)
        reader.join(timeout=5.0)
        if ended == "cancelled":
            target.unlink(missing_ok=True)
            return None
        answer = answers[-1] if answers else _no_answer(ended, process.returncode, hard, errors)
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()
    solution = target if answers and target.exists() else None
    return Outcome(case, answer, tuple(points), solution, began, load_before, os.getloadavg()[0])


def _attend(process: subprocess.Popen[str], request: str, deadline: float, cancelled: Callable[[], bool] | None) -> str:
    """Hand over the request and wait; says how it ended: ``ended``, ``killed`` or ``cancelled``."""
    with contextlib.suppress(OSError):  # it has died already
        if process.stdin is not None:
            process.stdin.write(request + "\n")
            process.stdin.flush()
    while process.poll() is None:
        if cancelled is not None and cancelled():
            return "cancelled"
        if time.monotonic() > deadline:
            return "killed"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(POLL_S)
    return "ended"


def _read(stream: IO[str] | None, points: list[Point], answers: list[Answer]) -> None:
    """Take in what the process says; a line that was cut off is not taken."""
    if stream is None:
        return
    with contextlib.suppress(ValueError, OSError):
        for line in stream:
            said: dict[str, Any] = json.loads(line)
            if "point" in said:
                seconds, *rest = said["point"]
                points.append((float(seconds), *rest))
            if "answer" in said:
                answers.append(Answer.model_validate_json(json.dumps(said["answer"])))


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _no_answer(ended: str, code: int, hard_s: float, errors: IO[bytes]) -> Answer:
    if ended == "killed":
        return Answer(status="killed", limit="time", message=f"killed after {hard_s:g} s")
    errors.seek(0)
    said = errors.read().decode(errors="replace").strip().splitlines()
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return Answer(status="crashed", message=f"its process ended with {how}" + (f": {said[-1]}" if said else ""))
