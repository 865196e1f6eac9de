"""
The whole openb trace as one round: ``python bench/openb_round.py [--time-limit S] [--runs N] [--out FILE.md]``.

Solves the three lists through the Python API and prints time by phase, GPU share placed, its bound and the gap between
them. GPU share is compared, not the plan's value, since that is what the trace's own simulators report. Every plan is
checked and audited again, outside the time that is reported.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
from pathlib import Path

from placeopt import Engine, Plan, audit, read_instance, violations
from placeopt.environment import usable_cores, versions

OPENB = Path(__file__).resolve().parent.parent / "instances" / "openb"
LISTS = ("openb-default", "openb-gpuspec33", "openb-multigpu20")


def main() -> int:
    """Run and report; exit code 1 if a plan is refused."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [
        f"`python bench/openb_round.py --time-limit {arguments.time_limit:g} --runs {arguments.runs}`, "
        f"{usable_cores()} cores, Python {platform.python_version()}, {known}. Seconds are medians; "
        "the solver process is warm.",
        "",
        "| list | jobs | compile | greedy | bound | check | total | GPU-milli placed | of demand | bound | gap |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    refused = 0
    with Engine() as engine:
        for name in LISTS:
            instance = read_instance(OPENB / f"{name}.json.gz")
            plans = [engine.solve(instance, time_limit_s=arguments.time_limit) for _ in range(arguments.runs)]
            faults = [v.message for v in violations(instance, plans[-1])] + audit(instance, plans[-1])
            refused += bool(faults)
            print(*faults, sep="\n", end="")
            lines.append(row(name, len(instance.jobs), plans))
    text = "\n".join([*lines, ""])
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 1 if refused else 0


def row(name: str, jobs: int, plans: list[Plan]) -> str:
    """Return the table's line for one list."""

    def median(seconds: list[float | None]) -> str:
        return f"{statistics.median(s or 0.0 for s in seconds):.2f}"

    def stage(wanted: str) -> str:
        return median([s.seconds for plan in plans for s in plan.stages if s.name == wanted])

    facts = plans[-1].facts
    placed, asked, bound = (facts[f"gpu_milli_{key}"] for key in ("placed", "asked", "bound"))
    cells = [
        name,
        f"{jobs:,}",
        median([plan.seconds.compile for plan in plans]),
        stage("heuristic"),
        stage("bound"),
        median([plan.seconds.check for plan in plans]),
        median([plan.seconds.total for plan in plans]),
        f"{placed:,}",
        f"{100 * placed / asked:.2f} %",
        f"{bound:,}",
        f"{100 * (bound - placed) / placed:.2f} %",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
