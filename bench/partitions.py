"""
What a round loses in parts: ``python bench/partitions.py [--rounds NAMES] [--time-limit S] [--out FILE.md]``.

Each round is solved as a whole by ``auto``, then in 2, 4 and 8 parts, and in 4 by every way of splitting, two parts at
a time, with the same limit for the whole call; ``large`` and ``million`` in 8 parts only. Gaps are to the best bound of
all runs of that round. Every plan is checked and audited again. Memory is the largest sum of what this process and its
children hold, instance included, looked at four times a second; CPU seconds are theirs, too. With ``--append`` the rows
are added to a table that is there.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from placeopt import Instance, Plan, audit, generate, read_instance, solve, solve_in_parts, violations
from placeopt.environment import usable_cores, versions

OPENB = Path(__file__).resolve().parent.parent / "instances" / "openb" / "openb-default.json.gz"
SHAPES = {
    "uniform": ("uniform", 10_000, 1_000, 4),
    "varied": ("varied", 10_000, 1_000, 4),
    "gangs": ("gangs", 1_000, 1_000, 8),
    "large": ("uniform", 100_000, 12_500, 8),
    "million": ("uniform", 1_000_000, 125_000, 8),
}
SMALL = ["uniform", "varied", "gangs", "openb"]
LARGE = ("large", "million")
SPLITS = ((2, "random"), (4, "random"), (8, "random"), (4, "rack"), (4, "price"))
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    """Run and report; exit code 1 if a plan is refused."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--rounds", nargs="+", choices=[*SHAPES, "openb"], default=SMALL)
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the table here as well")
    parser.add_argument("--append", action="store_true", help="add rows to the table in OUT")
    arguments = parser.parse_args()
    known = ", ".join(f"{package} {version}" for package, version in versions().items())
    lines = [
        "# What a round loses in parts",
        "",
        f"`python bench/partitions.py --rounds NAME --time-limit LIMIT --seed {arguments.seed} --append`, "
        f"{usable_cores()} cores, Python {platform.python_version()}, {known}.",
        "",
        "Gap of value to the best bound of all runs of the round, and of cost where the value is proven and the cost "
        "bounded. Two parts at a time. CPU seconds and memory (MiB) are those of all processes, instance included; of "
        "the seconds, those for drafts and checks of the whole.",
        "",
        "| round | limit s | parts | gap of value | gap of cost | wall s | CPU s | check s | MiB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    refused = 0
    rows: list[str] = []
    for name in arguments.rounds:
        instance = make(name, arguments.seed)
        whole = [] if name in LARGE else [("whole", as_a_whole(arguments))]
        splits = ((8, "random"),) if name in LARGE else SPLITS
        calls = [*whole, *((f"{parts}, {by}", in_parts(parts, by, arguments)) for parts, by in splits)]
        runs = [(label, run(instance, call)) for label, call in calls]
        bound = min(one.plan.levels[0].bound for _, one in runs if one.plan.levels[0].bound is not None)
        for label, one in runs:
            refused += bool(one.faults)
            value, *cost = one.plan.levels
            cells = [
                gap(bound, value.objective, value.objective),
                *(gap(level.objective, level.bound, level.objective) for level in cost[:1]),
                *([""] if not cost else []),
                f"{one.wall_s:.1f}",
                f"{one.cpu_s:.0f}",
                f"{one.plan.seconds.check or 0:.1f}",
                f"{one.peak_mib:,.0f}",
            ]
            rows.append(f"| {instance.name} | {arguments.time_limit:g} | {label} | {' | '.join(cells)} |")
            print(rows[-1], *one.faults, sep="\n", flush=True)
    if arguments.out is not None:
        add = arguments.append and arguments.out.exists()
        before = arguments.out.read_text(encoding="utf-8").rstrip("\n").splitlines() if add else lines
        arguments.out.write_text("\n".join([*before, *rows, ""]), encoding="utf-8")
    return 1 if refused else 0


def make(name: str, seed: int) -> Instance:
    """Return a round by name."""
    if name == "openb":
        return read_instance(OPENB)
    spec, jobs, nodes, gpus = SHAPES[name]
    return generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)


def as_a_whole(arguments: argparse.Namespace) -> Callable[[Instance], Plan]:
    """Return what solves a round as a whole."""
    return lambda instance: solve(instance, time_limit_s=arguments.time_limit, seed=arguments.seed)


def in_parts(parts: int, by: str, arguments: argparse.Namespace) -> Callable[[Instance], Plan]:
    """Return what solves a round in parts."""
    return lambda instance: solve_in_parts(
        instance,
        parts=parts,
        by=by,  # type: ignore[arg-type]
        jobs=2,
        time_limit_s=arguments.time_limit,
        seed=arguments.seed,
    )


@dataclass
class Run:
    """A plan, what it took, and what is wrong with it."""

    plan: Plan
    wall_s: float
    cpu_s: float
    peak_mib: float
    faults: list[str]


def run(instance: Instance, call: Callable[[Instance], Plan]) -> Run:
    """Solve, and look at the processes meanwhile."""
    over, seen = threading.Event(), Seen()
    watcher = threading.Thread(target=seen.watch, args=(over,))
    before = seen.look()
    watcher.start()
    began = time.monotonic()
    plan = call(instance)
    wall_s = time.monotonic() - began
    over.set()
    watcher.join()
    seen.look()
    faults = [violation.message for violation in violations(instance, plan)] + audit(instance, plan)
    return Run(plan, wall_s, seen.cpu_s - before, seen.peak / 2**20, faults)


class Seen:
    """CPU seconds and memory of this process and all its descendants, of which some may have ended."""

    def __init__(self) -> None:
        self.peak = 0
        self._ticks: dict[int, int] = {}

    @property
    def cpu_s(self) -> float:
        """CPU seconds so far."""
        return sum(self._ticks.values()) / TICKS

    def watch(self, over: threading.Event) -> None:
        """Look four times a second."""
        while not over.wait(0.25):
            self.look()

    def look(self) -> float:
        """Look once; return CPU seconds so far."""
        parent, memory, ticks = {}, {}, {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parent[int(entry)], memory[int(entry)] = int(fields[1]), int(fields[21]) * PAGE
            ticks[int(entry)] = int(fields[11]) + int(fields[12])
        mine = [process for process in parent if _descends(process, parent)]
        self._ticks.update({process: ticks[process] for process in mine})
        self.peak = max(self.peak, sum(memory[process] for process in mine))
        return self.cpu_s


def _descends(process: int, parent: dict[int, int]) -> bool:
    while process in parent and process != os.getpid():
        process = parent[process]
    return process == os.getpid()


def gap(high: int, low: int | None, of: int) -> str:
    """Return a gap for people."""
    return "" if low is None else f"{100 * (high - low) / max(1, of):.3f} %"


if __name__ == "__main__":
    sys.exit(main())
