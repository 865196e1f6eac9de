"""
Calls between a resource manager and a live cluster: ``python bench/live_calls.py [--seeds N,...] [--runs N]``.

Writes ``bench/live_calls.md``: reading a whole cluster, the differences of two readings and carrying them out, the
rebase of a round, ``rank``, a failed GPU, and what the rule for priorities does. Processor time, the smallest of the
runs: what another process takes is not in it, but it is longer while another runs on the same core.
"""

from __future__ import annotations

import argparse
import platform
import random
from collections import Counter
from pathlib import Path

from placeopt import Engine, Instance, Plan, generate, solve
from placeopt.environment import usable_cores, versions
from placeopt.formats import PriorityRule, read_kubernetes
from placeopt.live_cluster.changes import ClusterChanges, changes_between
from reading_cluster import changed, drawn, timed

PRIORITIES = (0, 100, 1000, 1_000_000)


def main() -> None:
    """Measure for every seed, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("nodes", 5000), ("pods", 16500), ("starts", 600), ("runs", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seeds", default="1,2")
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    rows: dict[str, list[float]] = {}
    for seed in seeds:
        for name, seconds in {**readings(options, seed), **calls(options, seed)}.items():
            rows.setdefault(name, []).append(1000 * seconds)
    arguments = " ".join(
        f"--{name} {value}" for name, value in vars(options).items() if value != parser.get_default(name)
    )
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    page = [
        "# Calls between a resource manager and a live cluster\n",
        f"`python bench/live_calls.py{' ' * bool(arguments)}{arguments}`, {usable_cores()} cores "
        f"({platform.machine()}), Python {platform.python_version()}, {known}.\n",
        f"{options.nodes:,} nodes of 8 GPUs, {options.pods:,} pods; milliseconds of processor time, the smallest of "
        f"{options.runs} runs.\n",
        "| call | goal | " + " | ".join(f"seed {seed}" for seed in seeds) + " |",
        "|---|---:|" + "---:|" * len(seeds),
        *(
            f"| {name} | {GOALS.get(name, '')} | " + " | ".join(f"{value:,.1f}" for value in values) + " |"
            for name, values in rows.items()
        ),
        "\n## What priorities decide\n",
        "A small cluster with three times as much work as GPUs, jobs of four priorities, of 1 to 8 GPUs: the part of "
        "the GPUs asked for that a plan of 3 s gives to each priority.\n",
        "| rule | seed | " + " | ".join(f"priority {priority:,}" for priority in PRIORITIES) + " |",
        "|---|---:|" + "---:|" * len(PRIORITIES),
        *(line for seed in seeds for line in by_priority(seed)),
    ]
    Path(__file__).with_suffix(".md").write_text("\n".join(page) + "\n")
    print("\n".join(page))


GOALS = {
    "read the whole cluster": "1,000",
    "differences, the later reading with `previous`": "50",
    "commit of a round, `rebase=True`": "50",
    "`rank` of all nodes": "5",
}


def readings(options: argparse.Namespace, seed: int) -> dict[str, float]:
    """Return seconds of reading, of differences, and of carrying them out."""
    draw = random.Random(seed)
    first = {"kind": "List", "items": drawn(draw, options.nodes, options.pods)}
    second = changed(draw, first)
    rows: dict[str, float] = {}
    before, rows["read the whole cluster"] = timed(options.runs, lambda: read_kubernetes(first))
    after, rows["read it again with `previous`"] = timed(options.runs, lambda: read_kubernetes(second, previous=before))
    alone = read_kubernetes(second)
    changes, seconds = timed(options.runs, lambda: changes_between(before, after))
    rows["differences, the later reading with `previous`"] = seconds
    _, rows["differences of readings that share nothing"] = timed(options.runs, lambda: changes_between(before, alone))
    applied = [apply_anew(before, changes) for _ in range(options.runs)]
    rows[f"`apply` of them ({len(changes.release)} ended, {len(changes.adopt)} began, one node drained)"] = min(applied)
    return rows


def apply_anew(before: Instance, changes: ClusterChanges) -> float:
    """Return seconds of `apply` in an engine that holds ``before``."""
    with Engine(isolation="thread") as engine:
        engine.load(before)
        return timed(1, lambda: engine.apply(changes))[1]


def calls(options: argparse.Namespace, seed: int) -> dict[str, float]:
    """Return seconds of calls of an engine with a cluster in use."""
    loaded = generate("uniform", jobs=options.starts, nodes=options.nodes, gpus=8, seed=seed)
    with Engine(isolation="thread") as rounds:
        rounds.load(loaded)
        plan = rounds.place(method="stranding", prove=False, explain=False)
    runs = [calls_once(loaded, plan) for _ in range(options.runs)]
    return {name: min(row[name] for row in runs) for name in runs[0]}


def calls_once(loaded: Instance, plan: Plan) -> dict[str, float]:
    """Return seconds of calls, once each; meanwhile jobs ended and nodes were drained."""
    row: dict[str, float] = {}
    running = {held.job for held in loaded.running}
    waiting = next(job.id for job in loaded.jobs if job.id not in running)
    with Engine(isolation="thread") as live:
        live.load(loaded)
        for held in loaded.running[:50]:
            live.release(held.job)
        live.update(nodes={node.id: "drain" for node in loaded.cluster.nodes[-20:]})
        live.rank(waiting)
        _, row["`rank` of all nodes"] = timed(1, lambda: live.rank(waiting))
        done, row["commit of a round, `rebase=True`"] = timed(1, lambda: live.commit(plan, rebase=True))
        print(f"{len(done.committed)} starts committed, {len(done.refused)} refused")
        node, gpu = next((a.node, int(gpu)) for a in live.snapshot.running[100].assignments for gpu in a.gpus)
        _, row["`fail_gpu`, the first of the cluster"] = timed(1, lambda: live.fail_gpu(node, gpu))
        _, row["a second `fail_gpu`"] = timed(1, lambda: live.fail_gpu(node, (gpu + 1) % 8))
        _, row["`repair_gpu`"] = timed(1, lambda: live.repair_gpu(node, gpu))
    return row


def by_priority(seed: int) -> list[str]:
    """Return a line for each rule: the part of the GPUs asked for that each priority gets."""
    draw = random.Random(seed)
    items = drawn(draw, 32, 0)
    asked: Counter[int] = Counter()
    number = 0
    while asked.total() < 3 * 32 * 8:
        priority, gpus = draw.choice(PRIORITIES), draw.choice((1, 1, 2, 4, 8))
        asked[priority] += gpus
        limits = {"cpu": str(gpus), "memory": f"{gpus}Gi", "nvidia.com/gpu": str(gpus)}
        spec = {
            "priority": priority,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "resources": {"requests": limits, "limits": limits}}],
        }
        metadata = {"name": f"p{priority}-{number}", "namespace": "team"}
        items.append({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
        number += 1
    lines = []
    for name, rule in (("default", None), ("`percent_per_doubling` 0", PriorityRule(percent_per_doubling=0))):
        plan = solve(read_kubernetes(items, rule=rule), time_limit_s=3)
        given: Counter[int] = Counter()
        for placement in plan.placements:
            priority = int(placement.job.partition("/p")[2].partition("-")[0])
            given[priority] += sum(len(held.gpus) for held in placement.assignments)
        parts = (f"{100 * given[priority] / asked[priority]:.0f} %" for priority in PRIORITIES)
        lines.append(f"| {name} | {seed} | " + " | ".join(parts) + " |")
    return lines


if __name__ == "__main__":
    main()
