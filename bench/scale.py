"""
Time, gaps and memory from 100 to 1,000,000 jobs: ``python bench/scale.py --points FILE [--most-jobs N] [--out FILE]``.

Two tables. Rounds of four specs solved by ``auto`` within a time limit that grows with the round (``LIMITS_S``), with
the gaps of value and cost to the bounds that the plan states. And rounds of ``uniform`` solved by method ``patterns``,
which ends by itself, for how time and memory grow; the exponents are least squares of the logarithms.

Every round is solved in a process of its own, ``--runs`` times, those of more than ``ONCE_ABOVE`` jobs once: the whole
call, from the instance in memory (nothing of it computed before, its digest neither) to the checked plan; the solver
process is warm. Wall time is the median; beside it CPU time of all processes, which other work on the machine disturbs
less. Memory is the peak of both processes, making the instance included. Each round is a line of ``--points``, written
at once; what stands there is not solved again, so that the tables can be made in parts.
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

from placeopt import Engine, audit, violations
from placeopt.environment import usable_cores, versions
from placeopt.formats.figure import COLOURS, MARKS, Figure, Tips, render
from placeopt.formats.table import markdown_table
from placeopt.generators import generate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Size(NamedTuple):
    """A method, and the arguments of a round."""

    method: str
    spec: str
    jobs: int
    nodes: int
    gpus: int

    @property
    def name(self) -> str:
        """What tables call the round."""
        return f"{self.spec} {self.jobs:,} x {self.nodes:,} x {self.gpus}"

    @property
    def limit_s(self) -> float:
        """The time limit."""
        return LIMITS_S[self.jobs] if self.method == "auto" else UNLIMITED_S


LIMITS_S = {100: 1.0, 1000: 3.0, 10_000: 10.0, 100_000: 40.0, 300_000: 80.0, 1_000_000: 240.0}
"""Time limits of ``auto`` by the number of jobs."""
UNLIMITED_S = 600.0
CURVE = tuple(
    Size("patterns", "uniform", jobs, jobs // 8, 8)
    for jobs in (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
)
SPECS = ("uniform", "varied", "gangs", "fractions")
AUTO = (
    *(Size("auto", spec, jobs, jobs // 8, 8) for jobs in (100, 1000, 10_000, 100_000) for spec in SPECS),
    *(Size("auto", "uniform", jobs, jobs // 8, 8) for jobs in (300_000, 1_000_000)),
)
ONCE_ABOVE = 30_000
LARGE = 3000

Measured = dict[str, float | None]


def main() -> int:
    """Run all rounds that are missing, or the one named; exit code 1 if a plan is refused."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--most-jobs", type=int, default=1_000_000)
    parser.add_argument("--points", type=Path, help="lines of JSON, one a round, added to")
    parser.add_argument("--out", type=Path, help="write the tables of all points")
    parser.add_argument("--one", nargs=5, metavar=Size._fields, help="measure one round, print JSON")
    arguments = parser.parse_args()
    if arguments.one:
        method, spec, *numbers = arguments.one
        print(json.dumps(measure(Size(method, spec, *map(int, numbers)), arguments.runs, arguments.seed)))
        return 0
    if arguments.points is None:
        parser.error("--points is needed")
    found = read_points(arguments.points)
    for size in (*AUTO, *CURVE):
        if size in found or size.jobs > arguments.most_jobs:
            continue
        runs = 1 if size.jobs > ONCE_ABOVE else arguments.runs
        command = [sys.executable, __file__, "--runs", str(runs), "--seed", str(arguments.seed), "--one"]
        done = subprocess.run([*command, *map(str, size)], stdout=subprocess.PIPE, text=True, check=True)
        found[size] = json.loads(done.stdout)
        with arguments.points.open("a", encoding="utf-8") as file:
            file.write(json.dumps([*size, found[size]]) + "\n")
        print(size, found[size], flush=True)
    if arguments.out is not None:
        curve = [(size, found[size]) for size in CURVE if size in found]
        arguments.out.with_suffix(".svg").write_bytes(render(figure(curve), "svg"))
        arguments.out.write_text(page(found, curve, arguments), encoding="utf-8")
    return int(any(measured["refused"] for measured in found.values()))


def read_points(path: Path) -> dict[Size, Measured]:
    """Return what was measured before."""
    if not path.exists():
        return {}
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {Size(*line[:-1]): line[-1] for line in lines}


def page(found: dict[Size, Measured], curve: list[tuple[Size, Measured]], arguments: argparse.Namespace) -> str:
    """Return the page of both tables."""
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    large = [row for row in curve if row[0].jobs >= LARGE]
    columns = ("round", "limit s", "wall s", "CPU s", "value gap %", "cost gap %", "greedy's value gap %", "MiB")
    auto = markdown_table(columns, [line(size, found[size]) for size in AUTO if size in found])
    patterns = markdown_table(columns, [line(size, measured) for size, measured in curve])
    return (
        "# From 100 to 1,000,000 jobs\n\n"
        f"`python bench/scale.py --runs {arguments.runs} --seed {arguments.seed} --points bench/scale.jsonl`, "
        f"{usable_cores()} cores, Python {platform.python_version()}, {known}. Whole calls, from the instance in "
        f"memory to the checked plan; medians, one run above {ONCE_ABOVE:,} jobs. Load of the machine at the end: "
        f"{os.getloadavg()[2]:.0f}.\n\n"
        "Gaps are to the bounds that the plan states; -: no bound, or no cost counts. Greedy's value is that after "
        "stage `heuristic`, - where the first plan is another.\n\n"
        f"## Method `auto` within a limit\n\n{auto}\n"
        f"## Method `patterns`, which ends by itself\n\n{patterns}\n"
        f"Over the rows of `patterns`, {growth(curve)}; from {LARGE:,} jobs on, where fixed costs no longer count, "
        f"{growth(large)}.\n\n![Time and memory by jobs]({arguments.out.stem}.svg)\n"
    )


def measure(size: Size, runs: int, seed: int) -> Measured:
    """Solve one round so many times in this process."""
    made = generate(size.spec, jobs=size.jobs, nodes=size.nodes, gpus=size.gpus, seed=seed)
    walls: list[float] = []
    with Engine() as engine:
        engine.solve(generate("varied", jobs=40, nodes=8, gpus=4, seed=1), time_limit_s=2)
        began = time.process_time()
        for _ in range(runs):
            instance = made.model_copy()  # forgets the digest
            start = time.perf_counter()
            plan = engine.solve(instance, method=size.method, time_limit_s=size.limit_s)
            walls.append(time.perf_counter() - start)
        own = time.process_time() - began
        refused = len(violations(instance, plan)) + len(audit(instance, plan))
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    greedy = next((stage.objective for stage in plan.stages if stage.name == "heuristic"), None)
    bound = plan.levels[0].bound
    return {
        "wall": statistics.median(walls),
        "cpu": (own + children.ru_utime + children.ru_stime) / runs,
        "value": gap(plan.levels[0].objective, bound),
        "cost": gap(plan.levels[1].objective, plan.levels[1].bound) if len(plan.levels) > 1 else None,
        "greedy": None if greedy is None else gap(greedy, bound),
        "mib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + children.ru_maxrss) / 1024,
        "refused": refused,
    }


def gap(objective: int, bound: int | None) -> float | None:
    """Return the gap in per cent, None without a bound."""
    return None if bound is None else 100 * abs(bound - objective) / max(1, abs(objective))


def line(size: Size, measured: Measured) -> tuple[str | float, ...]:
    """Return the table's line for one round."""
    gaps = ("-" if (one := measured[key]) is None else f"{one:.3g}" for key in ("value", "cost", "greedy"))
    limit = f"{size.limit_s:g}" if size.method == "auto" else "-"
    return (size.name, limit, f"{measured['wall']:.2f}", f"{measured['cpu']:.2f}", *gaps, f"{measured['mib']:.0f}")


def growth(rows: list[tuple[Size, Measured]]) -> str:
    """Say how time and memory grow over some rows."""
    if len(rows) < 2:
        return "there are too few rows to say how time grows"
    jobs = [size.jobs for size, _ in rows]
    names = {"wall": "wall time", "cpu": "CPU time", "mib": "memory"}
    parts = [
        f"{name} grows as jobs^{exponent(jobs, [f[key] or 0.0 for _, f in rows]):.2f}" for key, name in names.items()
    ]
    return ", ".join(parts)


def figure(rows: list[tuple[Size, Measured]]) -> Figure:
    """Return a plot of time and memory over the number of jobs, both axes in powers of ten."""
    jobs = [size.jobs for size, _ in rows]
    lines = (("wall", "wall time, s", 1.0), ("cpu", "CPU time, s", 1.0), ("mib", "memory, GiB", 1024.0))

    def draw(axes: Axes) -> Tips:
        for (key, name, unit), colour, mark in zip(lines, COLOURS, MARKS, strict=False):
            amounts = [(measured[key] or 0.0) / unit for _, measured in rows]
            label = f"{name}: jobs^{exponent(jobs, amounts):.2f}"
            axes.loglog(jobs, amounts, color=colour, marker=mark, markersize=4, linewidth=1, label=label)
        axes.set_xlabel("jobs, on an eighth as many nodes of 8 GPUs")
        axes.grid(visible=True, which="major", linewidth=0.3)
        axes.legend(frameon=False)
        return {}

    cells = [(size.jobs, *((measured[key] or 0.0) / unit for key, _, unit in lines)) for size, measured in rows]
    return Figure(
        "scale", "From 100 to 1,000,000 jobs", "", (6.0, 3.6), draw, ("jobs", *(n for _, n, _ in lines)), cells
    )


def exponent(sizes: list[int], amounts: list[float]) -> float:
    """Least squares of log(amount) over log(size)."""
    return statistics.linear_regression([math.log(s) for s in sizes], [math.log(a) for a in amounts]).slope


if __name__ == "__main__":
    sys.exit(main())
