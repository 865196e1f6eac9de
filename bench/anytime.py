"""
Gaps against the time limit.

    python bench/anytime.py --points FILE [--limits S ...] [--lists NAME ...] [--rounds PATTERN] [--out FILE.md]

``--rounds`` takes those whose name matches a pattern, ``--estimate`` only says how long what is missing takes at most.

Every round is solved by ``auto`` in a warm `Engine` under every limit, shortest first, after a solve of 0.1 s that is
not counted. Each solve is a line of ``--points``, written at once; what stands there is not solved again, so that a
table can be made in parts: by lists, by rounds, by limits, or after an interruption. Only rounds with points at all
limits are in table and figure. A limit longer than one at which the plan is
proven optimal is not run: it gives the same plan.

The best value and, among plans of that value, the least cost of any limit are what all limits are held against.
Integrals are those of Berthold (2013) over the limits as a step function, which is 1 before the first: what a caller
loses who does not know how long to wait. A round *keeps its promise* if every limit from ``FROM_S`` on reaches
``PROMISE`` of the value at ``AT_S``, no limit gives an empty plan where another gives jobs a place, and no plan is
worth less than greedy's alone (stage ``heuristic``).
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from placeopt import Engine, Instance, Plan, read_instance
from placeopt.benchmark.metrics import integral, primal_dual_gap, primal_gap
from placeopt.benchmark.sets import read_sets
from placeopt.environment import usable_cores, versions
from placeopt.formats.figure import COLOURS, MARKS, Figure, Tips, render
from placeopt.formats.table import markdown_table
from placeopt.generators import generate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LIMITS_S = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0)
FROM_S, AT_S, PROMISE = 0.3, 10.0, 0.97
ROOT = Path(__file__).parents[1] / "instances"
GENERATED = "families"
"""Name of the rounds of ``FAMILIES`` among the lists."""
LISTS = ("hand", "generated", "hard", "real", "openb", GENERATED)
FAMILIES = (
    ("uniform", 1000, 1000, 4, 21),
    ("uniform", 10_000, 1000, 4, 21),
    ("varied", 1000, 1000, 8, 21),
    ("varied", 10_000, 1000, 4, 21),
    ("gangs", 1000, 1000, 8, 21),
    ("elastic", 3000, 100, 8, 21),
    ("fractions", 10_000, 1000, 4, 21),
)
PAUSE_S = 0.5
"""Seconds between two solves, for solver processes that the deadline ended to load again, as between two rounds."""
MOST_JOBS = 12_000
"""Waiting and running jobs of the largest rounds taken."""


class Point(NamedTuple):
    """What one solve gave; ``greedy`` is the value after stage ``heuristic``, ``cost`` 0 without a cost level."""

    round: str
    limit_s: float
    took_s: float
    value: int
    value_bound: int | None
    cost: int
    cost_bound: int | None
    greedy: int
    optimal: bool

    @classmethod
    def of(cls, name: str, limit_s: float, took_s: float, plan: Plan) -> Point:
        """Return the point of a plan."""
        value, cost = plan.levels[0], plan.levels[1] if len(plan.levels) > 1 else None
        greedy = next((stage.objective for stage in plan.stages if stage.name == "heuristic"), None)
        costs = (0, 0) if cost is None else (cost.objective, cost.bound)
        optimal = plan.status == "optimal"
        return cls(name, limit_s, round(took_s, 3), value.objective, value.bound, *costs, greedy or 0, optimal)

    @classmethod
    def read(cls, row: dict[str, str]) -> Point:
        """Return the point of a line of the file."""

        def known(text: str) -> int | None:
            return int(text) if text else None

        return cls(
            row["round"],
            float(row["limit_s"]),
            float(row["took_s"]),
            int(row["value"]),
            known(row["value_bound"]),
            int(row["cost"]),
            known(row["cost_bound"]),
            int(row["greedy"]),
            row["optimal"] == "True",
        )


@dataclass(frozen=True)
class Curve:
    """A round, and its points by limit."""

    name: str
    points: tuple[Point, ...]

    @classmethod
    def of(cls, name: str, points: list[Point], limits: tuple[float, ...]) -> Curve:
        """Return the curve of a round at ``limits``; those not run give the plan of the longest one run."""
        found = {point.limit_s: point for point in points}
        known, latest = [], None
        for limit in limits:
            latest = found.get(limit) or (latest._replace(limit_s=limit) if latest is not None else None)
            known += [latest] if latest is not None else []
        return cls(name, tuple(known))

    @property
    def best_value(self) -> int:
        """The best value of any limit."""
        return max(point.value for point in self.points)

    @property
    def best_cost(self) -> int:
        """The least cost of the plans of that value."""
        return min(point.cost for point in self.points if point.value == self.best_value)

    def value_gaps(self) -> list[float]:
        """Return the gap to the best value at every limit."""
        return [primal_gap(point.value, self.best_value) for point in self.points]

    def cost_gaps(self) -> list[float]:
        """Return the gap to the least cost at every limit; 1 where the value is not the best yet."""
        best = self.best_value
        return [1.0 if point.value < best else primal_gap(point.cost, self.best_cost) for point in self.points]

    def proven_gaps(self) -> list[float]:
        """Return the gap between value and its bound at every limit."""
        return [primal_dual_gap(point.value, point.value_bound) for point in self.points]

    def integral_s(self, gaps: list[float]) -> float:
        """Return the seconds lost up to the longest limit."""
        limits = [point.limit_s for point in self.points]
        return integral(list(zip(limits, gaps, strict=True)), limits[-1])

    def broken(self) -> list[float]:
        """Return the limits that break the promise."""
        late = [point.value for point in self.points if point.limit_s <= AT_S]
        least = PROMISE * (late[-1] if late else 0)
        best = self.best_value
        return [
            p.limit_s
            for p in self.points
            if (p.limit_s >= FROM_S and p.value < least) or p.value < p.greedy or (p.value == 0 < best)
        ]

    @property
    def optimal_s(self) -> float | None:
        """The shortest limit at which the plan is proven optimal."""
        return next((point.limit_s for point in self.points if point.optimal), None)


def rounds(lists: tuple[str, ...], pattern: str = "*") -> Iterator[Instance]:
    """Yield the stored rounds of some lists, and the generated ones, whose names match ``pattern``."""
    for entry in read_sets([name for name in lists if name != GENERATED], ROOT):
        if fnmatch(entry.name, pattern):
            instance = read_instance(entry.there())
            if len(instance.jobs) <= MOST_JOBS:
                yield instance
    if GENERATED in lists:
        for spec, jobs, nodes, gpus, seed in FAMILIES:
            if fnmatch(f"{spec}-{jobs}x{nodes}x{gpus}-s{seed}", pattern):
                yield generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)


def limits_missing(limits: tuple[float, ...], known: list[Point]) -> list[float]:
    """Return the limits that are neither known nor longer than one that proved the plan optimal."""
    there = {point.limit_s for point in known}
    enough = min((point.limit_s for point in known if point.optimal), default=float("inf"))
    return [limit for limit in limits if limit not in there and limit < enough]


def measure(engine: Engine, instance: Instance, limits: tuple[float, ...], known: list[Point]) -> Iterator[Point]:
    """Solve a round under every limit that is missing, until one proves the plan optimal."""
    missing = limits_missing(limits, known)
    if missing:
        engine.solve(instance.model_copy(), time_limit_s=0.1)
    for limit in missing:
        time.sleep(PAUSE_S)
        copy = instance.model_copy()
        began = time.monotonic()
        plan = engine.solve(copy, time_limit_s=limit)
        yield Point.of(instance.name, limit, time.monotonic() - began, plan)
        if plan.status == "optimal":
            return


def read_points(path: Path) -> dict[str, list[Point]]:
    """Return the points of a file by round."""
    found: dict[str, list[Point]] = {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                if None in line.values():  # a run was stopped while it wrote this line
                    continue
                point = Point.read(line)
                found.setdefault(point.round, []).append(point)
    return found


def row(curve: Curve) -> tuple[str | float, ...]:
    """Return the table's row of a round: per cent and seconds."""
    gaps = [f"{100 * gap:.3g}" for gap in curve.value_gaps()]
    return (
        curve.name,
        *gaps,
        f"{100 * curve.proven_gaps()[-1]:.3g}",
        "-" if curve.optimal_s is None else f"{curve.optimal_s:g}",
        f"{curve.integral_s(curve.value_gaps()):.3g}",
        f"{curve.integral_s(curve.proven_gaps()):.3g}",
        f"{curve.integral_s(curve.cost_gaps()):.3g}",
        ", ".join(f"{limit:g}" for limit in curve.broken()) or "kept",
    )


def figure(curves: list[Curve]) -> Figure:
    """Return a plot of gaps over limits: median and worst round, for value, its bound, and cost."""
    limits = [point.limit_s for point in curves[0].points]
    kinds = (("value", Curve.value_gaps), ("value and bound", Curve.proven_gaps), ("cost", Curve.cost_gaps))
    heights = {
        f"{name}, {word}": [pick(gaps) for gaps in zip(*map(of, curves), strict=True)]
        for name, of in kinds
        for word, pick in (("median", statistics.median), ("worst round", max))
    }

    def draw(axes: Axes) -> Tips:
        for number, (name, gaps) in enumerate(heights.items()):
            form = f"{MARKS[number // 2]}{('-', ':')[number % 2]}"
            drawn = [max(100 * gap, 1e-4) for gap in gaps]
            axes.plot(limits, drawn, form, color=COLOURS[number // 2], markersize=4, linewidth=1, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("time limit, s")
        axes.set_ylabel("gap, % (0 is drawn as 0.0001)")
        axes.grid(visible=True, which="major", linewidth=0.3)
        axes.legend(frameon=False, fontsize=7)
        return {}

    cells = [(limit, *(heights[name][i] for name in heights)) for i, limit in enumerate(limits)]
    return Figure("anytime", "Gap against the time limit", "", (6.4, 3.8), draw, ("limit s", *heights), cells)


def main() -> None:
    """Run what is missing, and write table and figure."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--limits", type=float, nargs="+", default=LIMITS_S)
    parser.add_argument("--lists", nargs="*", default=LISTS)
    parser.add_argument("--rounds", default="*", help="pattern of names, as of files")
    parser.add_argument("--estimate", action="store_true", help="say how long the rest takes at most, and end")
    parser.add_argument("--points", type=Path, required=True, help="CSV of all solves, added to")
    parser.add_argument("--out", type=Path, help="write table and figure of all points")
    arguments = parser.parse_args()
    limits, found = tuple(sorted(arguments.limits)), read_points(arguments.points)
    if arguments.estimate:
        names = [instance.name for instance in rounds(tuple(arguments.lists), arguments.rounds)]
        missing = [limits_missing(limits, found.get(name, [])) for name in names]
        seconds = sum(sum(some) + (len(some) + 1) * PAUSE_S for some in missing)
        print(
            f"{sum(map(len, missing))} solves of {sum(map(bool, missing))} rounds, at most {seconds / 60:.0f} minutes"
        )
        return
    with Engine() as engine, arguments.points.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not found:
            writer.writerow(Point._fields)
        for instance in rounds(tuple(arguments.lists), arguments.rounds):
            points = found.setdefault(instance.name, [])
            for point in measure(engine, instance, limits, list(points)):
                points.append(point)
                writer.writerow(point)
                file.flush()
            print(" ".join(str(cell) for cell in row(Curve.of(instance.name, points, limits))), flush=True)
    if arguments.out is not None:
        arguments.out.write_text(text(found), encoding="utf-8")
        arguments.out.with_suffix(".svg").write_bytes(render(figure(curves(found)), "svg"))


def curves(found: dict[str, list[Point]]) -> list[Curve]:
    """Return the curves of the rounds that have points at all limits of any."""
    limits = tuple(sorted({point.limit_s for points in found.values() for point in points}))
    made = [Curve.of(name, points, limits) for name, points in found.items()]
    return [curve for curve in made if len(curve.points) == len(limits)]


def text(found: dict[str, list[Point]]) -> str:
    """Return the page of a table."""
    shown = curves(found)
    names = [f"{point.limit_s:g} s" for point in shown[0].points]
    limits = " ".join(f"{point.limit_s:g}" for point in shown[0].points)
    last = ("proven", "optimal from s", "integral s", "proven s", "cost s", "promise")
    kept = sum(not curve.broken() for curve in shown)
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    return (
        "# Value, cost and gap against the time limit\n\n"
        f"`python bench/anytime.py --points FILE --limits {limits} --out bench/anytime.md`, {usable_cores()} cores, "
        f"Python {platform.python_version()}, {known}; load of the machine at the end {os.getloadavg()[2]:.1f}.\n\n"
        f"{kept} of {len(shown)} rounds keep the promise: {100 * PROMISE:g} % of the value at {AT_S:g} s from "
        f"{FROM_S:g} s on, no empty plan, and never less than greedy alone. Columns of limits: per cent below the best "
        "value of all limits. proven: gap to the bound at the longest limit, in per cent. optimal: the shortest limit "
        "with a proven optimal plan; longer ones are not run and count as the same. Integrals: of the gap to the best "
        "value, to the bound, and of the cost to the least cost.\n\n"
        f"![Gap against the time limit](anytime.svg)\n\n{markdown_table(('round', *names, *last), map(row, shown))}"
    )


if __name__ == "__main__":
    main()
