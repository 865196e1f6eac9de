"""What every command pays before it does anything: processes from their start to their end."""

from __future__ import annotations

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
    """Yield median and longest of some runs, after one that does not count."""
    seconds = []
    for _ in range(TURNS + 1):
        began = time.perf_counter()
        subprocess.run(words, check=True, capture_output=True)
        seconds.append(time.perf_counter() - began)
    yield {"runs": TURNS, "seconds": round(statistics.median(seconds[1:]), 3), "most_s": round(max(seconds[1:]), 3)}


SPEC = BenchSpec(
    name="start",
    question="How long does a command take that has next to nothing to do?",
    rounds={
        "python, nothing": (*PYTHON, "pass"),
        "import placeopt": (*PYTHON, "import placeopt"),
        "from placeopt import Engine": (*PYTHON, "from placeopt import Engine"),
        "placeopt --version": (*COMMAND, "--version"),
        "placeopt solve, 4 jobs": (*COMMAND, "solve", TINY, "--quiet"),
        "placeopt check": (*COMMAND, "check", TINY),
    },
    run=run,
    columns=("round", "runs", "seconds", "most_s", "load"),
    minutes=0.5,
)
