"""What every command pays before it does anything: processes from their start to their end."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from rounds import INSTANCES
from spec import BenchSpec, Row

PYTHON = (sys.executable, "-c")
COMMAND = (sys.executable, "-m", "placeopt.cli")
TINY = str(INSTANCES / "hand" / "minsky-1.json")
TURNS = 5


def run(words: tuple[str, ...]) -> Iterator[Row]:
    """Yield the medians of some runs, after one that does not count."""
    subprocess.run(words, check=True, capture_output=True)
    wall, cpu = [], []
    for _ in range(TURNS):
        began, spent = time.perf_counter(), children_cpu_s()
        subprocess.run(words, check=True, capture_output=True)
        wall.append(time.perf_counter() - began)
        cpu.append(children_cpu_s() - spent)
    yield {"runs": TURNS, "seconds": round(statistics.median(wall), 3), "cpu_s": round(statistics.median(cpu), 3)}


def children_cpu_s() -> float:
    """Return the CPU seconds of all processes that this one has started and that have ended."""
    return sum(os.times()[2:4])


SPEC = BenchSpec(
    name="start",
    question="How long does a command take that has next to nothing to do?",
    rounds={
        "python, nothing": (*PYTHON, "pass"),
        "import placeopt": (*PYTHON, "import placeopt"),
        "from placeopt import Engine": (*PYTHON, "from placeopt import Engine"),
        "placeopt --version": (*COMMAND, "--version"),
        "placeopt solve, 4 jobs": (*COMMAND, "solve", TINY, "--quiet"),
        "placeopt show, 4 jobs": (*COMMAND, "show", TINY),
    },
    run=run,
    columns=("round", "runs", "seconds", "cpu_s", "load"),
    minutes=0.5,
)
