"""Processes that tests watch: whether one is alive, whether something happens in time, which child is CBC."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def within(seconds: float) -> float:
    """Return the moment of the monotonic clock that many seconds from now."""
    return time.monotonic() + seconds


def eventually(condition: Callable[[], bool], seconds: float = 3.0) -> bool:
    """Wait for a condition, in small steps."""
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return met


def alive(pid: int) -> bool:
    """Tell whether a process exists and is no zombie."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def children(pid: int) -> list[int]:
    """Return the process ids of the children of a process."""
    pids = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            pids += [int(text) for text in (task / "children").read_text().split()]
    return pids


def running_cbc(pid: int) -> int:
    """Wait until a process has a child that is CBC, and return its process id."""
    pids: list[int] = []

    def started() -> bool:
        for child in children(pid):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{child}/comm").read_text().strip() == "cbc":
                    pids.append(child)
        return bool(pids)

    assert eventually(started, 10.0)
    return pids[0]


def solving(solver: str, isolation: str = "process", **environment: str) -> subprocess.Popen[str]:
    """
    Start a program whose runner solves a model that takes minutes.

    It prints the process id of its worker, 0 if there is none, and a line for whatever the solver reports.
    """
    code = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from helpers.solver_models import hard
from placeopt.solvers import SolveOptions, Worker
runner = Worker(isolation={isolation!r})
runner.start()
print(runner.pid or 0, flush=True)
runner.solve({solver!r}, hard(), SolveOptions(60.0), deadline=time.monotonic() + 60,
             on_progress=lambda _: print("solving", flush=True))
"""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )
