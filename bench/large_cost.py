"""
The cost level of large rounds: ``python bench/large_cost.py [--seeds N ...] [--gpus N ...] [--out FILE.md]``.

Rounds of 1,000 jobs (``--jobs``) on 1,000 nodes, solved by greedy alone (method ``stranding``) and by method ``search``
(``--method``) within the time limit, the whole call from the instance in memory to the checked plan. Beside value and
every term's cost stand the bound on cost that holds at the second plan's value (of all plans worth as much or more),
from the record of its last stage ``flows``, and the gap to it. A plan that is worth less than greedy's, or costs more
at equal value, ends the bench with exit code 1, and so does one that the referee or the audit refuses.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

from placeopt import Engine, Plan, audit, violations
from placeopt.environment import usable_cores, versions
from placeopt.generators import generate

SPECS = ("gangs", "uniform", "varied", "contention")
NODES = 1000
TERMS = ("communication", "interference", "fragmentation", "resource")


@dataclass(frozen=True)
class Row:
    """One round: plans by greedy and by a method, wall seconds of the second call, and CPU seconds of this process."""

    name: str
    greedy: Plan
    ours: Plan
    wall: float
    cpu: float
    refused: int

    @property
    def bound(self) -> int:
        """Proven on the cost of all plans worth as much as ours; 0 where nothing was proven."""
        proven = [stage.bound for stage in self.ours.stages if stage.name == "flows"]
        return (proven[-1] if proven else None) or 0

    @property
    def gap(self) -> float:
        """Of the cost, relative."""
        cost = self.ours.levels[1].objective
        return abs(self.bound - cost) / max(1, cost)

    @property
    def value_gap(self) -> float:
        """Of the value, relative."""
        value = self.ours.levels[0]
        return abs((value.bound or 0) - value.objective) / max(1, value.objective)

    @property
    def worse(self) -> bool:
        """Whether greedy's plan is worth more, or as much and costs less."""
        ours, greedy = (
            (levels[0].objective, -levels[1].objective) for levels in (self.ours.levels, self.greedy.levels)
        )
        return ours < greedy


def main() -> int:
    """Solve all rounds and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--specs", nargs="+", choices=SPECS, default=list(SPECS[:3]))
    parser.add_argument("--seeds", nargs="+", type=int, default=[10, 11, 12, 13, 14])
    parser.add_argument("--gpus", nargs="+", type=int, default=[4, 8])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--method", default="search")
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    rows = []
    for spec in arguments.specs:
        for gpus in arguments.gpus:
            for seed in arguments.seeds:
                rows.append(measure(spec, gpus, seed, arguments))
                print(*lines(rows[-1], arguments.method), sep="\n", flush=True)
    if arguments.out is not None:
        arguments.out.write_text(report(rows, arguments), encoding="utf-8")
    return int(any(row.worse or row.refused for row in rows))


def measure(spec: str, gpus: int, seed: int, arguments: argparse.Namespace) -> Row:
    """Solve one round both ways."""
    instance = generate(spec, jobs=arguments.jobs, nodes=NODES, gpus=gpus, seed=seed)
    with Engine() as engine:
        greedy = engine.solve(instance, method="stranding", time_limit_s=60)
        wall, cpu = time.perf_counter(), time.process_time()
        ours = engine.solve(instance, method=arguments.method, time_limit_s=arguments.time_limit)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    refused = len(violations(instance, ours)) + len(audit(instance, ours))
    return Row(f"{spec}-{arguments.jobs}x{NODES}x{gpus}-s{seed}", greedy, ours, wall, cpu, refused)


def lines(row: Row, method: str) -> list[str]:
    """Return the table's two lines for a round."""
    value = row.greedy.levels[0].bound
    first = [f"{row.name}, greedy", *figures(row.greedy), "", "", "", ""]
    known = [f"{row.bound / 1e9:,.2f}", f"{100 * row.gap:.2f} %", f"{row.wall:.1f}", f"{row.cpu:.1f}"]
    second = [f"{method} (value at most {value:,})", *figures(row.ours), *known]
    return [f"| {' | '.join(cells)} |" for cells in (first, second)]


def figures(plan: Plan) -> list[str]:
    """Value, raw terms, and the cost level in thousand millions."""
    raw = [f"{plan.costs[term].raw:,}" if term in plan.costs else "-" for term in TERMS]
    return [f"{plan.levels[0].objective:,}", *raw, f"{plan.levels[1].objective / 1e9:,.2f}"]


def report(rows: list[Row], arguments: argparse.Namespace) -> str:
    """Return the page."""
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    head = ["round", "value", *TERMS, "cost, 10^9", "bound, 10^9", "gap", "wall s", "CPU s"]
    command = " ".join(
        [
            "python bench/large_cost.py",
            f"--specs {' '.join(arguments.specs)}",
            f"--seeds {' '.join(map(str, arguments.seeds))}",
            f"--gpus {' '.join(map(str, arguments.gpus))}",
            f"--jobs {arguments.jobs} --method {arguments.method} --time-limit {arguments.time_limit:g}",
        ]
    )
    summary = []
    for spec in arguments.specs:
        for gpus in arguments.gpus:
            here = [row for row in rows if row.name.startswith(f"{spec}-{arguments.jobs}x{NODES}x{gpus}-")]
            gaps, worst_value = sorted(row.gap for row in here), max(row.value_gap for row in here)
            summary.append(
                f"`{spec}` x {gpus}: {100 * gaps[len(gaps) // 2]:.1f} % (worst {100 * gaps[-1]:.1f} %), value within "
                f"{100 * worst_value:.3f} %"
            )
    return "\n".join(
        [
            "# The cost of large rounds",
            "",
            f"`{command}`, {usable_cores()} cores, Python {platform.python_version()}, {known}; load of the machine "
            f"at the end: {os.getloadavg()[2]:.0f}. Terms are raw. The bound holds for all plans worth as much as the "
            "second of a round. CPU seconds are of the process without the solver's.",
            "",
            f"Median gaps of the cost: {'; '.join(summary)}.",
            "",
            f"| {' | '.join(head)} |",
            "|" + "---|" * len(head),
            *(line for row in rows for line in lines(row, arguments.method)),
            "",
        ]
    )


if __name__ == "__main__":
    raise SystemExit(main())
