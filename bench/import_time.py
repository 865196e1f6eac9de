"""
How long commands take from start to end: ``python bench/import_time.py [--runs N] [--against SRC] [--out FILE.md]``.

Every run is a process of its own. Wall time is what the shell sees; processor time, of the process and of those that
it started, is beside it, because other work on the machine disturbs it less. What others' packages take is the floor:
placeopt cannot start faster than the packages that it needs. All commands run once per turn, so that a busy minute
of the machine disturbs all of them. ``--against`` measures another version's ``src`` folder in the same turns.

Modules are compiled before the first turn, as they are in every installation: where ``PYTHONDONTWRITEBYTECODE`` is
set, Python compiles all of placeopt anew in every process, which doubles the time.

Exit code 1 if the median of ``import placeopt``, the start of Python excluded, misses ``--goal-ms``.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGES = ("placeopt", "numpy", "pydantic", "typer", "rich", "highspy", "ortools")
FLOOR = {
    "start of Python": "pass",
    "`import numpy`": "import numpy",
    "`import pydantic`, a record": "import pydantic; type('R', (pydantic.BaseModel,), {})",
    "`import typer`": "import typer",
    "`import rich`, a table": "import rich.console, rich.table, rich.text",
    "the four together": "import numpy, pydantic, typer, rich.console, rich.table, rich.text; "
    "type('R', (pydantic.BaseModel,), {})",
}
"""Other packages, each in a process of its own, start of Python included."""
IMPORTS = {
    "solver process, until HiGHS is loaded": "import placeopt.solvers.worker, placeopt.solvers.highs",
    "`import placeopt`": "import placeopt",
    "modules of a solve": "import placeopt.solving.api, placeopt.formats.documents",
}
ROUND = "instances/generated/uniform-20x4x4-{}.json.gz"


NOTHING_PLACED = 4
"""Exit code of a round whose time limit ends before the first plan."""


class Run(NamedTuple):
    """One process, in seconds."""

    wall: float
    processor: float
    is_done: bool
    """False where the time limit was over before anything was placed."""


def main() -> int:
    """Measure and print; see above."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--goal-ms", type=float, default=50.0)
    parser.add_argument("--against", type=Path, metavar="SRC", help="src folder of another version")
    parser.add_argument("--out", type=Path, metavar="FILE.md")
    arguments = parser.parse_args()
    versions = {"": None} if arguments.against is None else {"before": arguments.against, "now": ROOT / "src"}
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.json"
        command = ["generate", "--spec", "uniform", "--jobs", "10000", "--nodes", "1000", "--gpus", "8"]
        subprocess.run([*_placeopt(), *command, "--out", str(large)], check=True, capture_output=True, cwd=ROOT)
        cases = _cases(large)
        runs: dict[tuple[str, str], list[Run]] = {}
        for turn in range(arguments.runs + 1):
            for name, case in cases.items():
                for which, source in versions.items():
                    if name in FLOOR and which == "before":
                        continue
                    found = _measure(case, source)
                    if turn:  # the first compiles
                        runs.setdefault((name, "" if name in FLOOR else which), []).append(found)
    text = _page(runs, arguments.runs, against=arguments.against is not None)
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    last = list(versions)[-1]
    package, python = (
        statistics.median(run.wall for run in runs[key])
        for key in (("`import placeopt`", last), ("start of Python", ""))
    )
    return 0 if 1000 * (package - python) <= arguments.goal_ms else 1


def _placeopt() -> list[str]:
    return [sys.executable, "-m", "placeopt.cli"]


def _cases(large: Path) -> dict[str, list[str]]:
    """Return name and command of everything that is measured."""
    python = {name: [sys.executable, "-c", program] for name, program in (FLOOR | IMPORTS).items()}
    return python | {
        "`placeopt --version`": [*_placeopt(), "--version"],
        "`placeopt --help`": [*_placeopt(), "--help"],
        "`placeopt solve`, 20 jobs, optimal without an exact model": [*_placeopt(), "solve", ROUND.format("s0")],
        "`placeopt solve`, 20 jobs, optimal by a race of exact models": [*_placeopt(), "solve", ROUND.format("s2")],
        "`placeopt solve`, 10,000 jobs on 1,000 nodes, `--time-limit 1`": [
            *_placeopt(),
            "solve",
            str(large),
            "--time-limit",
            "1",
        ],
    }


def _measure(command: list[str], source: Path | None) -> Run:
    """Run a command, with the modules of ``source``, and return what it took."""
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if source is not None:
        settings["PYTHONPATH"] = str(source.resolve())
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, NOTHING_PLACED), shlex.join(command)
    return Run(wall, used.ru_utime + used.ru_stime, process.returncode == 0)


def _page(runs: dict[tuple[str, str], list[Run]], num_runs: int, *, against: bool) -> str:
    """Return the table and how it was made."""
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    lines = [
        "# From the start of a command to its end",
        "",
        f"`python bench/import_time.py --runs {num_runs}{' --against SRC' if against else ''}`. {os.cpu_count()} cores "
        f"({platform.machine()}), Python {platform.python_version()}, "
        f"{', '.join(f'{name} {version(name)}' for name in PACKAGES)}. "
        f"Load of the last 1, 5 and 15 minutes at the end: {load}.",
        "",
        "Seconds, least and median: wall time, and processor time of all processes of the command.",
        "",
        "| command | version | wall, least | median | processor, least | median |",
        "|---|---|---|---|---|---|",
    ]
    for (name, which), found in runs.items():
        wall, processor = [run.wall for run in found], [run.processor for run in found]
        figures = (min(wall), statistics.median(wall), min(processor), statistics.median(processor))
        late = sum(not run.is_done for run in found)
        note = f"; {late} of {num_runs} runs placed nothing in time" if late else ""
        lines.append(f"| {name}{note} | {which} | " + " | ".join(f"{seconds:.3f}" for seconds in figures) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
