"""
SODA's month under its policies: ``python bench/soda_month.py [--nodes N] [--days D] [--seeds S,..] [--out FILE.md]``.

Every policy plays the same month (``placeopt_papers.scenarios.soda_month``); figures of the paper (section VI) stand
beside ours where it has them. Fewer nodes and days make a smaller month under the same load. With ``--write FOLDER``
the months are written as scenarios, too.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from placeopt import write_scenario
from placeopt.environment import usable_cores, versions
from placeopt.simulation import History, Summary, named_policy, occupancy_between, simulate, summarise
from placeopt_papers.scenarios.soda_month import DAYS, NODES, soda_month

POLICIES = "kelp-fifo,kelp-drf,coda,soda,fcfs,drf"
PAPER: dict[str, dict[str, float]] = {
    "GPU utilisation of active, %": {"kelp-fifo": 45.5, "kelp-drf": 45.1, "coda": 59.8, "soda": 65.4},
    "GPU active rate, %": {"kelp-fifo": 90.2, "kelp-drf": 89.7, "coda": 80.3, "soda": 76.3},
    "CPU held, %": {"kelp-fifo": 52.8, "kelp-drf": 54.5, "coda": 35.1, "soda": 46.4},
    "GPU jobs at once, %": {"coda": 82.2, "soda": 88.2},
    "GPU jobs > 1 min, %": {"kelp-fifo": 57.5, "kelp-drf": 49.5},
    "GPU jobs > 1 h, %": {"kelp-fifo": 33.2, "kelp-drf": 19.1},
    "CPU jobs <= 10 s, %": {"kelp-fifo": 90.5, "kelp-drf": 90.6},
    "CPU jobs <= 1 min, %": {"coda": 93.9, "soda": 91.3},
}
"""Section VI-B, C and F. It counts utilisation of active GPUs (III-A), and of CPUs what is in use, not what is held."""


def figures_of(history: History, summary: Summary) -> dict[str, float]:
    """Return the figures of one simulation, by the names of ``PAPER`` and a few more."""
    kind = {arrival.job.id: arrival.job.kind for arrival in history.scenario.arrivals}
    started = [(kind[job.job] == "cpu", (job.start_ms or 0) - job.arrival_ms) for job in history.jobs if job.spans]
    gpu = [wait for is_cpu, wait in started if not is_cpu]
    cpu = [wait for is_cpu, wait in started if is_cpu]
    came = [job.arrival_ms for job in history.jobs if not job.service]
    coming = occupancy_between(history, min(came), max(came))  # the month would go on
    serving = summary.serving
    return {
        "GPU utilisation of active, %": 100 * coming.utilisation_of_active,
        "GPU active rate, %": 100 * coming.active_rate,
        "GPU utilisation, %": 100 * summary.occupancy.utilisation,
        "CPU held, %": 100 * _cpu_held(history, summary),
        "GPU jobs at once, %": _share(gpu, lambda wait: wait == 0),
        "GPU jobs > 1 min, %": _share(gpu, lambda wait: wait > 60_000),
        "GPU jobs > 1 h, %": _share(gpu, lambda wait: wait > 3_600_000),
        "CPU jobs <= 10 s, %": _share(cpu, lambda wait: wait <= 10_000),
        "CPU jobs <= 1 min, %": _share(cpu, lambda wait: wait <= 60_000),
        "requests late, %": 100 * serving.late_share if serving is not None else 0.0,
        "latency p95, ms": (serving.latency_p95_ms or float("nan")) if serving is not None else 0.0,
        "stops": float(summary.stops),
        "last end, days": (summary.last_end_s or 0.0) / 86_400,
        "rounds": float(summary.rounds),
    }


def _share(waits: list[int], counts: Callable[[int], bool]) -> float:
    return 100 * sum(map(counts, waits)) / len(waits) if waits else 0.0


def _cpu_held(history: History, summary: Summary) -> float:
    machines = {machine.id: machine for machine in history.scenario.cluster.machines}
    there = sum(machines[node.machine].cpu_millicores for node in history.scenario.cluster.nodes)
    held = sum(
        sum(assignment.cpu_millicores for assignment in span.placement.assignments)
        * ((span.end_ms or 0) - span.start_ms)
        for job in history.jobs
        for span in job.spans
    )
    return held / (there * summary.occupancy.window_ms) if summary.occupancy.window_ms else 0.0


def table(policies: list[str], runs: dict[str, list[dict[str, float]]]) -> list[str]:
    """Return the table: a row a figure, a column a policy; the paper's in brackets."""
    lines = [f"| | {' | '.join(policies)} |", f"|---|{'---:|' * len(policies)}"]
    for name in next(iter(runs.values()))[0]:
        cells = []
        for policy in policies:
            value = f"{fmean(run[name] for run in runs[policy]):,.1f}"
            told = PAPER.get(name, {}).get(policy)
            cells.append(value if told is None else f"{value} ({told})")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main() -> int:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--policies", default=POLICIES)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    policies = arguments.policies.split(",")
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    runs: dict[str, list[dict[str, float]]] = {policy: [] for policy in policies}
    jobs = 0
    for seed in seeds:
        month = soda_month(seed=seed, nodes=arguments.nodes, days=arguments.days)
        jobs = len(month.arrivals)
        if arguments.write is not None:
            write_scenario(arguments.write / f"{month.name}.json.gz", month)
            continue
        for policy in policies:
            started = time.process_time()
            history = simulate(month, named_policy(policy))
            seconds = time.process_time() - started
            figures = figures_of(history, summarise(history))
            runs[policy].append({**figures, "CPU time of the simulation, s": seconds})
            print(policy, seed, f"{seconds:.0f} s", file=sys.stderr, flush=True)
    if arguments.write is not None:
        return 0
    text = [
        "# SODA's month",
        "",
        f"{jobs:,} jobs and the replicas of services on {arguments.nodes} nodes over {arguments.days} days, seeds "
        f"{arguments.seeds}; means over seeds, the paper's figures in brackets. `python {' '.join(sys.argv)}`, "
        f"{usable_cores()} cores, Python {platform.python_version()}, "
        + ", ".join(f"{name} {version}" for name, version in versions().items())
        + ".",
        "",
        *table(policies, runs),
    ]
    if arguments.out is None:
        print("\n".join(text))
    else:
        arguments.out.write_text("\n".join(text) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
