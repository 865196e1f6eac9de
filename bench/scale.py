"""
Time, gap and memory from 100 to 100,000 jobs: ``python bench/scale.py [--runs N] [--seed N] [--out FILE.md]``.

Every round is solved by method ``patterns`` in a process of its own, ``--runs`` times: the whole call, from the
instance in memory (nothing of it computed before, its digest neither) to the checked plan; the solver process is warm
from the second call on. Wall time is the median; beside it CPU time of both processes, which other work on the
machine disturbs less. Memory is the peak of both processes, making the instance included. The exponents are least
squares of the logarithms over the rows of ``uniform`` x 8, which a plot beside the table shows (``--out``).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from placeopt import Engine, violations
from placeopt.environment import usable_cores, versions
from placeopt.formats.figure import COLOURS, MARKS, Figure, Tips, render
from placeopt.generators import generate
from placeopt.solving.audit import audit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Size(NamedTuple):
    """Arguments of a round."""

    spec: str
    jobs: int
    nodes: int
    gpus: int


CURVE = tuple(Size("uniform", jobs, jobs // 8, 8) for jobs in (100, 300, 1000, 3000, 10_000, 30_000, 100_000))
OTHERS = (
    Size("uniform", 10_000, 1000, 4),
    Size("uniform", 1000, 1000, 4),
    Size("varied", 1000, 100, 4),
    Size("varied", 10_000, 1000, 4),
    Size("varied", 30_000, 3000, 4),
)
TIME_LIMIT_S = 120.0
LARGE = 3000


def main() -> int:
    """Run all rounds, or the one named; exit code 1 if a plan is refused."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, help="write the table here as well")
    parser.add_argument(
        "--one", nargs=4, metavar=("SPEC", "JOBS", "NODES", "GPUS"), help="measure one round, print JSON"
    )
    arguments = parser.parse_args()
    if arguments.one:
        spec, *numbers = arguments.one
        print(json.dumps(measure(Size(spec, *map(int, numbers)), arguments.runs, arguments.seed)))
        return 0
    rows = []
    for size in (*CURVE, *OTHERS):
        command = [sys.executable, __file__, "--runs", str(arguments.runs), "--seed", str(arguments.seed), "--one"]
        done = subprocess.run([*command, *map(str, size)], capture_output=True, text=True, check=True)
        rows.append((size, json.loads(done.stdout)))
        print(line(*rows[-1]), flush=True)
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    curve = rows[: len(CURVE)]
    large = [row for row in curve if row[0].jobs >= LARGE]
    text = "\n".join(
        [
            "# From 100 to 100,000 jobs",
            "",
            f"`python bench/scale.py --runs {arguments.runs} --seed {arguments.seed}`, {usable_cores()} cores, Python "
            f"{platform.python_version()}, {known}. Whole calls of method `patterns`, from the instance in "
            f"memory to the checked plan; medians. Load of the machine at the end: {os.getloadavg()[2]:.0f}.",
            "",
            "| round | wall s | CPU s | value | bound | gap | greedy's value | MiB |",
            "|---|---|---|---|---|---|---|---|",
            *(line(size, measured) for size, measured in rows),
            "",
            f"Over the rows of `uniform` with nodes of 8 GPUs, {growth(curve)}; from {LARGE:,} jobs on, where fixed "
            f"costs no longer count, {growth(large)}.",
            "",
        ]
    )
    if arguments.out is not None:
        arguments.out.with_suffix(".svg").write_bytes(render(figure(curve), "svg"))
        arguments.out.write_text(f"{text}\n![Time and memory by jobs]({arguments.out.stem}.svg)\n", encoding="utf-8")
    return int(any(measured["refused"] for _, measured in rows))


def measure(size: Size, runs: int, seed: int) -> dict[str, float]:
    """Solve one round so many times in this process."""
    made = generate(size.spec, jobs=size.jobs, nodes=size.nodes, gpus=size.gpus, seed=seed)
    walls, began, refused = [], time.process_time(), 0
    with Engine() as engine:
        for _ in range(runs):
            instance = made.model_copy()  # forgets the digest
            start = time.perf_counter()
            plan = engine.solve(instance, method="patterns", time_limit_s=TIME_LIMIT_S)
            walls.append(time.perf_counter() - start)
        own = time.process_time() - began
        refused = len(violations(instance, plan)) + len(audit(instance, plan))
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    greedy = next((stage.objective for stage in plan.stages if stage.name == "heuristic"), None)
    value = plan.levels[0]
    mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + children.ru_maxrss) / 1024
    return {
        "wall": statistics.median(walls),
        "cpu": (own + children.ru_utime + children.ru_stime) / runs,
        "value": value.objective,
        "bound": value.bound or 0,
        "greedy": greedy or 0,
        "mib": mib,
        "refused": refused,
    }


def line(size: Size, measured: dict[str, float]) -> str:
    """Return the table's line for one round."""
    gap = abs(measured["bound"] - measured["value"]) / max(1, measured["value"])
    cells = [
        f"{size.spec} {size.jobs:,} x {size.nodes:,} x {size.gpus}",
        f"{measured['wall']:.2f}",
        f"{measured['cpu']:.2f}",
        f"{measured['value']:,}",
        f"{measured['bound']:,}",
        f"{100 * gap:.3f} %",
        f"{measured['greedy']:,}",
        f"{measured['mib']:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def growth(rows: list[tuple[Size, dict[str, float]]]) -> str:
    """Say how time and memory grow over some rows."""
    jobs = [size.jobs for size, _ in rows]
    names = {"wall": "wall time", "cpu": "CPU time", "mib": "memory"}
    parts = [f"{name} grows as jobs^{exponent(jobs, [f[key] for _, f in rows]):.2f}" for key, name in names.items()]
    return ", ".join(parts)


def figure(rows: list[tuple[Size, dict[str, float]]]) -> Figure:
    """Return a plot of time and memory over the number of jobs, both axes in powers of ten."""
    jobs = [size.jobs for size, _ in rows]
    lines = (("wall", "wall time, s", 1.0), ("cpu", "CPU time, s", 1.0), ("mib", "memory, GiB", 1024.0))

    def draw(axes: Axes) -> Tips:
        for (key, name, unit), colour, mark in zip(lines, COLOURS, MARKS, strict=False):
            amounts = [measured[key] / unit for _, measured in rows]
            label = f"{name}: jobs^{exponent(jobs, amounts):.2f}"
            axes.loglog(jobs, amounts, color=colour, marker=mark, markersize=4, linewidth=1, label=label)
        axes.set_xlabel("jobs, on an eighth as many nodes of 8 GPUs")
        axes.grid(visible=True, which="major", linewidth=0.3)
        axes.legend(frameon=False)
        return {}

    cells = [(size.jobs, *(measured[key] / unit for key, _, unit in lines)) for size, measured in rows]
    return Figure("scale", "From 100 to 100,000 jobs", "", (6.0, 3.6), draw, ("jobs", *(n for _, n, _ in lines)), cells)


def exponent(sizes: list[int], amounts: list[float]) -> float:
    """Least squares of log(amount) over log(size)."""
    return statistics.linear_regression([math.log(s) for s in sizes], [math.log(a) for a in amounts]).slope


if __name__ == "__main__":
    sys.exit(main())
