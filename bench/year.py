"""
A year of jobs, simulated: ``python bench/year.py --rows ROWS [--jobs N] [--policies P,P] [--form dlrm] [--out MD]``.

The year: arrivals are a Poisson process whose rate follows an hour of the day and a day of the week; sizes, and median
and mean run time by size, are those of Philly's 82,247 jobs (msr-fiddle/philly-traces, CC-BY-4.0), run times are
log-normal, at most 30 days. A million jobs are a year; fewer are the first part of it, on the same 176 nodes of 8 GPUs.
The form of Alibaba's DLRM: instances of one GPU or two that live for ten days in the mean (exponential), on few
nodes, so that many wait.

Every policy runs in a process of its own. A row has the CPU seconds, the resident memory, the waiting and the running
jobs at ten checkpoints. ``--out`` writes the table of all rows.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from placeopt.environment import versions
from placeopt.generators.shared import equal_nodes
from placeopt.model import Arrival, Demand, Job, Option, Physics, Scenario
from placeopt.simulation import Tick, named_policy, simulate, summarise
from placeopt.topology.builders import pcie_box

YEAR_MS = 365 * 86_400_000
YEAR_JOBS = 1_000_000
YEAR_NODES = 176
MOST_MS = 30 * 86_400_000
SIZES = {
    1: (0.9317, 1117, 8301),
    2: (0.0221, 92, 30_942),
    4: (0.0227, 17_410, 78_762),
    8: (0.0200, 23_683, 129_775),
    16: (0.0024, 52_548, 126_997),
    32: (0.0011, 14_262, 29_920),
}
"""GPUs -> part of the jobs, median and mean run time in s; of two GPUs the geometric mean instead of the median."""
WEEK = (0.86, 1.07, 1.14, 1.21, 1.35, 0.65, 0.64)
"""Rate of Philly's arrivals from Monday to Sunday, over their mean."""
USERS = 50
CHECKPOINTS = 10
Row = dict[str, Any]


def year(jobs: int, seed: int) -> Scenario:
    """Return the first ``jobs`` of a year of a million."""
    draw = random.Random(seed)
    options = {}
    for gpus in SIZES:
        workers, each = (1, gpus) if gpus <= 8 else (gpus // 8, 8)
        options[gpus] = Option(workers=workers, demand=Demand(gpus=each), value=1000 * gpus)
    sizes, parts = list(SIZES), [part for part, _, _ in SIZES.values()]
    peak, now, arrivals = 2 * max(WEEK), 0.0, []
    while len(arrivals) < jobs:
        now += draw.expovariate(peak * YEAR_JOBS / YEAR_MS)
        hour, day = now / 3_600_000 % 24, int(now / 86_400_000) % 7
        if draw.random() * peak > WEEK[day] * (1 + 0.4 * math.cos((hour - 7) / 12 * math.pi)):
            continue
        gpus = draw.choices(sizes, parts)[0]
        _, median_s, mean_s = SIZES[gpus]
        took_s = draw.lognormvariate(math.log(median_s), math.sqrt(2 * math.log(mean_s / median_s)))
        took_ms = min(MOST_MS, max(1000, int(1000 * took_s)))
        job = Job(
            id=f"job-{len(arrivals)}",
            user=f"user-{draw.randrange(USERS)}",
            arrival_ms=int(now),
            options=(options[gpus].model_copy(update={"run_time_ms": took_ms}),),
        )
        arrivals.append(Arrival(job=job, actual_run_time_ms=took_ms))
    return _scenario(f"year-{jobs}-s{seed}", YEAR_NODES, arrivals)


def dlrm(jobs: int, seed: int) -> Scenario:
    """Return long-lived instances that arrive over 30 days, as in Alibaba's traces of DLRM services."""
    draw = random.Random(seed)
    arrivals = []
    for i, at in enumerate(sorted(draw.uniform(0, MOST_MS) for _ in range(jobs))):
        gpus = draw.choice((1, 1, 1, 2))
        option = Option(demand=Demand(gpus=gpus), value=1000 * gpus)
        took = 60_000 + int(draw.expovariate(3 / MOST_MS))
        job = Job(id=f"instance-{i}", arrival_ms=int(at), options=(option,))
        arrivals.append(Arrival(job=job, actual_run_time_ms=took))
    return _scenario(f"dlrm-{jobs}-s{seed}", max(1, jobs // 38), arrivals)


def _scenario(name: str, nodes: int, arrivals: list[Arrival]) -> Scenario:
    physics = Physics(spread_slowdown_thousandths=0, restart_ms=30_000)
    cluster = equal_nodes(pcie_box(8, gpu_model="P100"), nodes)
    return Scenario(name=name, cluster=cluster, physics=physics, arrivals=tuple(arrivals))


def resident_mib() -> int:
    """Return the resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * resource.getpagesize() >> 20


def run(form: str, jobs: int, seed: int, policy: str) -> Row:
    """Simulate one policy and return its row."""
    before = time.process_time()
    scenario = year(jobs, seed) if form == "year" else dlrm(jobs, seed)
    drawn_s = time.process_time() - before
    empty_mib, began, wall = resident_mib(), time.process_time(), time.monotonic()
    points: list[dict[str, float]] = []

    def note(tick: Tick) -> None:
        if tick.ended * CHECKPOINTS >= (len(points) + 1) * jobs:
            points.append(
                {
                    "ended": tick.ended,
                    "cpu_s": round(time.process_time() - began, 1),
                    "mib": resident_mib() - empty_mib,
                    "waiting": tick.waiting,
                    "running": tick.running,
                }
            )

    history = simulate(scenario, named_policy(policy), seed=seed, on_progress=note)
    cpu_s, wall_s = time.process_time() - began, time.monotonic() - wall
    summary = summarise(history)
    return {
        "form": form,
        "jobs": jobs,
        "seed": seed,
        "policy": policy,
        "drawn_s": round(drawn_s, 1),
        "scenario_mib": empty_mib,
        "cpu_s": round(cpu_s, 1),
        "wall_s": round(wall_s, 1),
        "summary_cpu_s": round(time.process_time() - began - cpu_s, 1),
        "load": [round(part, 1) for part in os.getloadavg()],
        "ended": summary.ended,
        "rounds": summary.rounds,
        "stops": summary.stops,
        "wait_mean_s": round(summary.wait_s.mean, 1) if summary.wait_s else None,
        "gpus_held": round(summary.occupancy.allocation, 3),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "points": points,
    }


def exponent(points: list[dict[str, float]]) -> float | None:
    """Return the slope of log CPU seconds over log ended jobs, by least squares, over the checkpoints."""
    pairs = [(math.log(point["ended"]), math.log(point["cpu_s"])) for point in points if point["cpu_s"] > 0]
    if len(pairs) < 3:
        return None
    mean_x, mean_y = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in pairs) / sum((x - mean_x) ** 2 for x, _ in pairs)


def table(rows: list[Row]) -> str:
    """Return the page."""
    lines = [
        "# A year of jobs, simulated",
        "",
        "`python bench/year.py --rows year.jsonl --out bench/year.md`, with `--jobs`, `--policies` and `--form` of the "
        "rows; `bench/year.py` states how jobs are drawn.",
        f"Python {platform.python_version()}, {', '.join(f'{name} {v}' for name, v in versions().items())}; "
        f"{os.cpu_count()} cores. CPU seconds are of the simulation alone; *exponent*: of CPU seconds over ended jobs, "
        "between the checkpoints; *load*: of the machine at the end, in the mean of one minute.",
        "",
        "| form | jobs | policy | CPU, s | ms a job | exponent | rounds | stops | mean wait, s | GPUs held "
        "| scenario, MiB | peak, MiB | load |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        slope = exponent(row["points"])
        lines.append(
            f"| {row['form']} | {row['jobs']:,} | `{row['policy']}` | {row['cpu_s']:,.0f} "
            f"| {1000 * row['cpu_s'] / row['jobs']:.2f} | {'' if slope is None else f'{slope:.2f}'} "
            f"| {row['rounds']:,} | {row['stops']:,} | {row['wait_mean_s']:,.0f} | {100 * row['gpus_held']:.1f} % "
            f"| {row['scenario_mib']:,} | {row['peak_mib']:,} | {row['load'][0]:.0f} |"
        )
    lines += [
        "",
        "At the checkpoints, ended jobs: CPU seconds, MiB above the scenario's, waiting and running jobs.",
        "",
    ]
    for row in rows:
        points = [
            f"{one['ended']:,}: {one['cpu_s']:,.0f} s, {one['mib']:,} MiB, {one['waiting']:,} + {one['running']:,}"
            for one in row["points"]
        ]
        lines += [f"- {row['form']}, {row['jobs']:,} jobs, `{row['policy']}`: " + "; ".join(points) + "."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is asked for, a process each, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--form", choices=("year", "dlrm"), default="year")
    parser.add_argument("--jobs", type=int, default=YEAR_JOBS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--policies", default="", help="names, by commas")
    parser.add_argument("--here", action="store_true", help="one policy, in this process; prints its row")
    options = parser.parse_args()
    policies = [name for name in options.policies.split(",") if name]
    if options.here:
        print(json.dumps(run(options.form, options.jobs, options.seed, policies[0])))
        return
    for policy in policies:
        same = {"--form": options.form, "--jobs": options.jobs, "--seed": options.seed, "--rows": options.rows}
        words = [str(word) for pair in same.items() for word in pair]
        command = [sys.executable, __file__, *words, "--policies", policy, "--here"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        with options.rows.open("a", encoding="utf-8") as file:
            file.write(done.stdout)
    if options.out is not None:
        rows = [json.loads(line) for line in options.rows.read_text(encoding="utf-8").splitlines()]
        options.out.write_text(table(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
