"""
Scheduling policies side by side, seed by seed: ``python bench/scheduling_policies.py [--out FILE.md]``.

Scenarios: the jobs of SC'17's ``workloads-100`` drawn anew (with replacement, arrivals by a Poisson process of the
same rate), and, with ``--philly CSV``, windows of Philly with profiles drawn by the seed. For every policy the means
over the seeds, and the difference to the first policy, seed by seed, with Student's interval of 95 %: where that holds
0, the two cannot be told apart.
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from placeopt import read_scenario
from placeopt.formats.philly import read_philly
from placeopt.generators.philly_scenario import philly_scenario
from placeopt.metrics import paired_interval
from placeopt.model.scenario import Scenario
from placeopt.simulate import Summary, named_policy, simulate, summarise
from placeopt.workplace import usable_cores, versions

PAPERS = Path(__file__).resolve().parent.parent / "instances" / "papers"
FIGURES: dict[str, Callable[[Summary], float]] = {
    "completion, s": lambda one: 0.0 if one.completion_s is None else one.completion_s.mean,
    "wait, s": lambda one: 0.0 if one.wait_s is None else one.wait_s.mean,
    "slowed": lambda one: float(one.slowed),
    "last end, s": lambda one: one.last_end_s or 0.0,
}


def drawn_anew(seed: int) -> Scenario:
    """Return as many jobs of ``workloads-100``, drawn with replacement, that arrive at the same rate."""
    told = read_scenario(PAPERS / "sc17-workloads-100.json")
    last = max(arrival.job.arrival_ms for arrival in told.arrivals)
    dice, clock, arrivals = random.Random(seed), 0.0, []
    for i in range(len(told.arrivals)):
        clock += dice.expovariate(len(told.arrivals) / last)
        kind = dice.choice(told.arrivals)
        job = kind.job.model_copy(update={"id": str(i), "arrival_ms": 1 + int(clock)})
        arrivals.append(kind.model_copy(update={"job": job}))
    return told.model_copy(update={"name": f"sc17-drawn-s{seed}", "arrivals": tuple(arrivals)})


def compared(make: Callable[[int], Scenario], seeds: list[int], policies: list[str]) -> list[str]:
    """Return the table of one kind of scenario."""
    found: dict[str, list[Summary]] = {name: [] for name in policies}
    cpu: dict[str, float] = {}
    for name in policies:
        started = time.process_time()
        found[name] = [summarise(simulate(make(seed), named_policy(name))) for seed in seeds]
        cpu[name] = (time.process_time() - started) / len(seeds)
    lines = [f"| policy | {' | '.join(FIGURES)} | CPU, s |", f"|---|{'---:|' * (len(FIGURES) + 1)}"]
    for name in policies:
        cells = []
        for figure in FIGURES.values():
            mine, first = [figure(one) for one in found[name]], [figure(one) for one in found[policies[0]]]
            cell = f"{fmean(mine):,.1f}"
            apart = None if name == policies[0] else paired_interval(mine, first)
            if apart is not None:
                cell += (
                    f" ({apart.mean:+,.1f} ± {apart.high - apart.mean:,.1f}{'' if apart.excludes_zero else ', tie'})"
                )
            cells.append(cell)
        lines.append(f"| {name} | {' | '.join(cells)} | {cpu[name]:.1f} |")
    return lines


def main() -> int:
    """Simulate and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the tables here as well")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--policies", default="placeopt,fcfs,best-fit,topo-aware,topo-aware-p,srtf", help="the first is compared with"
    )
    parser.add_argument("--philly", type=Path, help="the trace, as Sia's simulator keeps it")
    parser.add_argument("--from-day", type=int, default=40)
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--load", type=float, default=0.9)
    arguments = parser.parse_args()
    seeds = list(range(arguments.first_seed, arguments.first_seed + arguments.seeds))
    policies = arguments.policies.split(",")
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    command = f"python bench/scheduling_policies.py --first-seed {seeds[0]} --seeds {len(seeds)}"
    command += f" --policies {arguments.policies}"
    if arguments.philly is not None:
        command += f" --philly CSV --from-day {arguments.from_day} --days {arguments.days} --load {arguments.load:g}"
    lines = [
        "# Scheduling policies side by side",
        "",
        f"`{command}`, {usable_cores()} cores, Python {platform.python_version()}, {known}.",
        "",
        f"Means over {len(seeds)} seeds; in brackets the difference to `{policies[0]}`, seed by seed, with its "
        "interval of 95 %.",
        "",
        "## Jobs of SC'17's workloads-100, drawn anew",
        "",
        *compared(drawn_anew, seeds, policies),
    ]
    if arguments.philly is not None:
        jobs = read_philly(arguments.philly)

        def window(seed: int) -> Scenario:
            return philly_scenario(
                jobs, from_day=arguments.from_day, days=arguments.days, load=arguments.load, seed=seed
            )

        shape = window(seeds[0])
        lines += [
            "",
            f"## Philly: {len(shape.arrivals):,} jobs on {len(shape.cluster.nodes)} nodes of 8 GPUs",
            "",
            *compared(window, seeds, policies),
        ]
    text = "\n".join([*lines, ""])
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
