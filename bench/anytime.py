"""
Gaps against the time limit: ``python bench/anytime.py [--limits S ...] [--lists NAME ...] [--out FILE.md]``.

Every round is solved by ``auto`` in a warm `Engine` under every limit, shortest first, after a solve of 0.1 s that is
not counted. The best value and, among plans of that value, the least cost of any limit are what all limits are held
against. Integrals are those of Berthold (2013) over the limits as a step function, which is 1 before the first: what a
caller loses who does not know how long to wait. A round *keeps its promise* if every limit from ``FROM_S`` on reaches
``PROMISE`` of the value at ``AT_S``, and no plan is worse than greedy's alone (stage ``heuristic``).
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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
LISTS = ("openb", "generated", "hard", "real", "hand")
FAMILIES = (
    ("uniform", 1000, 1000, 4, 21),
    ("uniform", 10_000, 1000, 4, 21),
    ("varied", 1000, 1000, 8, 21),
    ("varied", 10_000, 1000, 4, 21),
    ("gangs", 1000, 1000, 8, 21),
    ("elastic", 3000, 100, 8, 21),
    ("fractions", 10_000, 1000, 4, 21),
)
MOST_JOBS = 12_000
"""Waiting and running jobs of the largest rounds taken."""


@dataclass(frozen=True)
class Point:
    """What one solve gave; ``greedy`` is the value after stage ``heuristic``, ``cost`` 0 without a cost level."""

    limit_s: float
    took_s: float
    value: int
    value_bound: int | None
    cost: int
    cost_bound: int | None
    greedy: int

    @classmethod
    def of(cls, limit_s: float, took_s: float, plan: Plan) -> Point:
        """Return the point of a plan."""
        value, cost = plan.levels[0], plan.levels[1] if len(plan.levels) > 1 else None
        greedy = next((stage.objective for stage in plan.stages if stage.name == "heuristic"), None)
        costs = (0, 0) if cost is None else (cost.objective, cost.bound)
        return cls(limit_s, took_s, value.objective, value.bound, *costs, greedy or 0)


@dataclass(frozen=True)
class Curve:
    """A round, and its points by limit."""

    name: str
    points: tuple[Point, ...]

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
        return [p.limit_s for p in self.points if (p.limit_s >= FROM_S and p.value < least) or p.value < p.greedy]


def rounds(lists: tuple[str, ...]) -> Iterator[Instance]:
    """Yield the stored rounds, then the generated ones."""
    for entry in read_sets(lists, ROOT):
        instance = read_instance(entry.there())
        if len(instance.jobs) <= MOST_JOBS:
            yield instance
    for spec, jobs, nodes, gpus, seed in FAMILIES:
        yield generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)


def measured(engine: Engine, instance: Instance, limits: tuple[float, ...]) -> Curve:
    """Solve a round under every limit."""
    engine.solve(instance.model_copy(), time_limit_s=0.1)
    points = []
    for limit in limits:
        copy = instance.model_copy()
        began = time.monotonic()
        plan = engine.solve(copy, time_limit_s=limit)
        points.append(Point.of(limit, time.monotonic() - began, plan))
        if plan.status == "optimal":  # a longer limit gives the same
            points += [Point.of(later, points[-1].took_s, plan) for later in limits if later > limit]
            break
    return Curve(instance.name, tuple(points))


def row(curve: Curve) -> tuple[str | float, ...]:
    """Return the table's row of a round: per cent and seconds."""
    gaps = [f"{100 * gap:.3g}" for gap in curve.value_gaps()]
    return (
        curve.name,
        *gaps,
        f"{100 * curve.proven_gaps()[-1]:.3g}",
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
    """Run all rounds, and write table and figure."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--limits", type=float, nargs="+", default=LIMITS_S)
    parser.add_argument("--lists", nargs="*", default=LISTS)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    limits, curves = tuple(sorted(arguments.limits)), []
    with Engine() as engine:
        for instance in rounds(tuple(arguments.lists)):
            curves.append(measured(engine, instance, limits))
            print(" ".join(str(cell) for cell in row(curves[-1])), flush=True)
    names = [f"{limit:g} s" for limit in limits]
    last = ("proven", "integral s", "proven s", "cost s", "promise")
    table = markdown_table(("round", *names, *last), map(row, curves))
    kept = sum(not curve.broken() for curve in curves)
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    text = (
        "# Value, cost and gap against the time limit\n\n"
        f"`python bench/anytime.py --limits {' '.join(f'{limit:g}' for limit in limits)} --lists "
        f"{' '.join(arguments.lists)}`, {usable_cores()} cores, Python {platform.python_version()}, {known}; load of "
        f"the machine at the end {os.getloadavg()[2]:.1f}.\n\n"
        f"{kept} of {len(curves)} rounds keep the promise: {100 * PROMISE:g} % of the value at {AT_S:g} s from "
        f"{FROM_S:g} s on, and never less than greedy alone. Columns of limits: per cent below the best value of all "
        "limits. proven: gap to the bound at the longest limit, in per cent. Integrals: of the gap to the best value, "
        "to the bound, and of the cost to the least cost.\n\n"
        f"![Gap against the time limit](anytime.svg)\n\n{table}"
    )
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
        arguments.out.with_suffix(".svg").write_bytes(render(figure(curves), "svg"))


if __name__ == "__main__":
    main()
