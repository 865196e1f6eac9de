"""
Gaps of value and cost of large rounds by time limit: ``python bench/limits.py [--seeds N ...] [--out FILE.md]``.

Every round is solved by ``auto`` in a warm `Engine`, whole: from the instance in memory, nothing of it computed before,
to the checked plan. The gap of the cost is to the bound that the plan states, which holds for all plans worth as much
or more. Medians over seeds, and the worst. ``--rounds`` takes those whose name begins so, ``--limits`` other limits.
``--src`` runs another version's sources for comparison, in the same minutes, seed by seed: its rows are marked.
``--busy N`` keeps N processes busy beside the solves, so that these get a part of the cores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from placeopt import Engine, Plan
from placeopt.environment import usable_cores, versions
from placeopt.formats.table import markdown_table
from placeopt.generators import generate

SEEDS = (51, 52, 53, 54, 55)


Found = dict[tuple[str, str, float], list[tuple[float | None, float | None, float]]]
"""Gaps of value and cost, and seconds, of every seed; by round, version and limit."""


class Round(NamedTuple):
    """Arguments of a round, and the limits it is solved under."""

    spec: str
    jobs: int
    nodes: int
    gpus: int
    limits: tuple[float, ...]

    @property
    def name(self) -> str:
        """What the table calls it."""
        return f"{self.spec} {self.jobs:,} x {self.nodes:,} x {self.gpus}"


ROUNDS = (
    Round("uniform", 10_000, 1000, 4, (0.5, 5)),
    Round("gangs", 1000, 1000, 8, (1, 5, 30)),
    Round("uniform", 1000, 1000, 4, (10,)),
    Round("uniform", 1000, 1000, 8, (10,)),
    Round("varied", 1000, 1000, 4, (10,)),
    Round("varied", 1000, 1000, 8, (10,)),
    Round("varied", 10_000, 1000, 4, (1, 2, 5)),
    Round("uniform", 200, 128, 8, (10,)),
    Round("varied", 200, 128, 8, (10,)),
    Round("contention", 10_000, 1000, 8, (5,)),
    Round("uniform", 100_000, 12_500, 8, (8, 30)),
    Round("varied", 100_000, 12_500, 8, (15, 60)),
)


def gap(plan: Plan, level: int) -> float | None:
    """Gap of a level in percent; None without a bound, 0 where there is no such level."""
    if level >= len(plan.levels):
        return 0.0
    objective, bound = plan.levels[level].objective, plan.levels[level].bound
    return None if bound is None else 100 * abs(bound - objective) / max(1, abs(objective))


def solve(arguments: argparse.Namespace) -> None:
    """Solve what one child is asked for, and print a line of JSON for every solve."""
    with Engine() as engine:
        for spec in ("varied", "gangs"):  # between them they use every stage
            engine.solve(generate(spec, jobs=400, nodes=48, gpus=4, seed=1), time_limit_s=1)
        for of in chosen(arguments.rounds):
            instance = generate(of.spec, jobs=of.jobs, nodes=of.nodes, gpus=of.gpus, seed=arguments.seeds[0])
            for limit in arguments.limits or of.limits:
                copy, began = instance.model_copy(), time.monotonic()
                plan = engine.solve(copy, time_limit_s=limit)
                took_s = time.monotonic() - began
                print(json.dumps([of.name, limit, gap(plan, 0), gap(plan, 1), took_s]), flush=True)


def chosen(prefixes: Iterable[str]) -> list[Round]:
    """Return the rounds whose names begin with one of the prefixes."""
    return [of for of in ROUNDS if of.name.startswith(tuple(prefixes))]


def figures(values: list[float | None]) -> str:
    """Median and worst, in percent."""
    known = [float("inf") if value is None else value for value in values]
    text = [f"{value:.3g}" if value < float("inf") else "no bound" for value in (statistics.median(known), max(known))]
    return f"{text[0]} (worst {text[1]})"


def main() -> None:
    """Run all rounds in children, one a seed and version, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--rounds", nargs="+", default=("",))
    parser.add_argument("--limits", type=float, nargs="+")
    parser.add_argument("--busy", type=int, default=0, help="processes that keep the cores busy meanwhile")
    parser.add_argument("--src", type=Path, help="sources of another version")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.child:
        return solve(arguments)
    with ExitStack() as stack:
        for _ in range(arguments.busy):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        found = solve_all(arguments)
    write(arguments, found)
    return None


def solve_all(arguments: argparse.Namespace) -> Found:
    """Solve every round by every seed and version, each in a child of its own."""
    found: Found = {}
    for of in chosen(arguments.rounds):
        for seed in arguments.seeds:
            for version, src in (("before", arguments.src), ("", None)):
                if version and src is None:
                    continue
                call = [sys.executable, __file__, "--child", "--seeds", str(seed), "--rounds", of.name]
                if arguments.limits:
                    call += ["--limits", *map(str, arguments.limits)]
                path = {} if src is None else {"PYTHONPATH": str(src)}
                done = subprocess.run(call, env=os.environ | path, check=True, capture_output=True, text=True)
                for line in done.stdout.splitlines():
                    name, limit, *rest = json.loads(line)
                    found.setdefault((name, version, limit), []).append(tuple(rest))
                    print(seed, version, line, flush=True)
    return found


def write(arguments: argparse.Namespace, found: Found) -> None:
    """Print the table, and write it where a file is named."""
    rows = [
        (
            f"{name}{', ' * bool(version)}{version}",
            f"{limit:g}",
            figures([value for value, _, _ in runs]),
            figures([cost for _, cost, _ in runs]),
            f"{statistics.median(took for *_, took in runs):.2f}",
        )
        for (name, version, limit), runs in found.items()
    ]
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    picked = " ".join(f'"{prefix}"' for prefix in arguments.rounds)
    if arguments.limits:
        picked += f" --limits {' '.join(f'{limit:g}' for limit in arguments.limits)}"
    if arguments.busy:
        picked += f" --busy {arguments.busy}"
    text = (
        "# Value and cost of large rounds by time limit\n\n"
        f"`python bench/limits.py --seeds {' '.join(map(str, arguments.seeds))} --rounds {picked}`, "
        f"{usable_cores()} cores, Python {platform.python_version()}, {known}; load of the machine at the end: "
        f"{os.getloadavg()[0]:.0f}. Gaps in "
        "percent, medians over the seeds.\n\n"
        + markdown_table(("round", "limit s", "value gap", "cost gap", "took s"), rows)
    )
    print(text)
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
