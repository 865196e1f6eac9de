"""Runs a case in a process under supervision: kills it when a phase takes too long, keeps its output."""

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from placeopt.benchmark.journal import Case, CaseAnswer, Phase, TrajectoryPoint

CHILD = ("-P", "-m", "placeopt.benchmark.child")
POLL_S = 0.05
GRACE_S = 30.0
HARD_FACTOR = 2.0
"""A solve is killed after ``HARD_FACTOR`` times its limit plus ``GRACE_S`` seconds."""
OURS_S = 600.0
"""Seconds allowed for starting and reading, and for checking: they do not count as the method's time."""


@dataclass
class ChildOutput:
    """Output of a case's process so far."""

    phase: Phase = "reading"
    since: float = field(default_factory=time.monotonic)
    """Start of the phase by this process's monotonic clock."""
    points: list[TrajectoryPoint] = field(default_factory=list)
    answer: CaseAnswer | None = None


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

    The solution goes to ``<key>.json.gz`` in ``folder``. ``cancelled`` is called twenty times a second; true kills the
    case, and so does a phase that takes longer than `allowances` says. ``start``: folder that the case's path is
    relative to, for workers started elsewhere; None: the current one.
    """
    began, load_before = datetime.now(UTC).isoformat(timespec="seconds"), os.getloadavg()[0]
    target = folder / f"{case.key}.json.gz"
    target.unlink(missing_ok=True)
    allowed = allowances(case)
    request = {"case": case.model_dump(mode="json"), "solution": str(target)}
    said = ChildOutput()
    with tempfile.TemporaryFile() as errors:
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
            reader = threading.Thread(target=_read, args=(process.stdout, said), daemon=True)
            reader.start()
            ended = _attend(process, json.dumps(request), said, allowed, cancelled)
        finally:
            _kill(process)
        reader.join(timeout=5.0)
        if ended == "cancelled":
            target.unlink(missing_ok=True)
            return None
        answer = said.answer or _no_answer(ended, process.returncode, f"{allowed[said.phase]:g} s {said.phase}", errors)
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()
    solution = target if said.answer is not None and target.exists() else None
    return CaseOutcome(case, answer, tuple(said.points), solution, began, load_before, os.getloadavg()[0])


def allowances(case: Case) -> dict[Phase, float]:
    """Return the seconds that each phase of a case may take."""
    return {"reading": OURS_S, "solving": GRACE_S + HARD_FACTOR * case.time_limit_s, "judging": OURS_S}


def _attend(
    process: subprocess.Popen[str],
    request: str,
    said: ChildOutput,
    allowed: Mapping[Phase, float],
    cancelled: Callable[[], bool] | None,
) -> str:
    """Send the request and wait; return how the process ended: ``ended``, ``killed`` or ``cancelled``."""
    with contextlib.suppress(OSError):  # it has died already
        if process.stdin is not None:
            process.stdin.write(request + "\n")
            process.stdin.flush()
    while process.poll() is None:
        if cancelled is not None and cancelled():
            return "cancelled"
        if time.monotonic() > said.since + allowed[said.phase]:
            return "killed"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(POLL_S)
    return "ended"


def _read(stream: IO[str] | None, said: ChildOutput) -> None:
    """Read the output of the process; an incomplete line is ignored."""
    if stream is None:
        return
    with contextlib.suppress(ValueError, OSError):
        for line in stream:
            news: dict[str, Any] = json.loads(line)
            if "phase" in news:
                said.since, said.phase = time.monotonic(), news["phase"]
            if "point" in news:
                seconds, *rest = news["point"]
                said.points.append((float(seconds), *rest))
            if "answer" in news:
                said.answer = CaseAnswer.model_validate_json(json.dumps(news["answer"]))


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _no_answer(ended: str, code: int, spent: str, errors: IO[bytes]) -> CaseAnswer:
    if ended == "killed":
        return CaseAnswer(status="killed", limit="time", message=f"killed after {spent}")
    errors.seek(0)
    last = errors.read().decode(errors="replace").strip().splitlines()
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return CaseAnswer(status="crashed", message=f"its process ended with {how}" + (f": {last[-1]}" if last else ""))
