"""
A full cluster and one large job: ``python bench/preemption.py [--time-limit S] [--runs N] [--out FILE.md]``.

2,000 nodes of 8 GPUs in racks of 32, every GPU held by a running job, 700 of which may be preempted; a job of 8 workers
x 8 GPUs waits that must lie in one rack. Which victims are the cheapest, and how long until that is proven? What they
must cost is worked out apart: a worker needs a whole node, so a rack costs what its 8 cheapest nodes do of which every
job may be preempted. A run asserts that the plan's value is just that, that it is proven, and that the referee and the
audit accept it.
"""

from __future__ import annotations

import argparse
import heapq
import platform
import statistics
import sys
from pathlib import Path

import numpy as np

from placeopt import Engine, Instance, Plan, Policy, audit, violations
from placeopt.environment import usable_cores, versions
from placeopt.model import (
    Assignment,
    Changes,
    Cluster,
    Demand,
    Domain,
    Gpu,
    Job,
    Machine,
    Node,
    Option,
    Running,
    Split,
    Weights,
    WorkerGpus,
)

NODES, GPUS, RACK, CANDIDATES, WORKERS = 2000, 8, 32, 700, 8
PRICE = 500
MIXES = ((8,), (8,), (8,), (4, 4), (4, 2, 2))
"""GPUs of the jobs on a node; each mix is as likely."""


def preemption_round(seed: int) -> Instance:
    """Make the round. What a running job is worth is its GPU-milli x 1, 2 or 4 by class, give or take a tenth."""
    rng = np.random.default_rng(seed)
    machine = Machine(
        id="m", cpu_millicores=96_000, memory_mib=524_288, gpus=(Gpu(model="H100", memory_mib=81_920),) * GPUS
    )
    racks = tuple(Domain(id=f"r{r}", level="rack") for r in range(-(-NODES // RACK)))
    nodes = tuple(Node(id=f"n{n}", machine="m", domain=f"r{n // RACK}") for n in range(NODES))
    jobs: list[Job] = []
    runs: list[Running] = []
    of_node: list[list[int]] = []
    for n in range(NODES):
        of_node.append([])
        first = 0
        for gpus in MIXES[int(rng.integers(len(MIXES)))]:
            of_node[n].append(len(jobs))
            worth = round(1000 * gpus * (1, 2, 4)[int(rng.choice(3, p=(0.6, 0.3, 0.1)))] * rng.uniform(0.9, 1.1))
            name, demand = f"run-{len(jobs)}", Demand(gpus=gpus, cpu_millicores=8000 * gpus, memory_mib=32_768 * gpus)
            jobs.append(Job(id=name, arrival_ms=len(jobs), options=(Option(demand=demand, value=worth),)))
            held = tuple(range(first, first + gpus))
            first += gpus
            assignment = Assignment(
                node=f"n{n}",
                gpus={str(gpu): 1000 for gpu in held},
                cpu_millicores=demand.cpu_millicores,
                memory_mib=demand.memory_mib,
                workers=(WorkerGpus(rank=0, gpus=held),),
            )
            runs.append(Running(job=name, option="default", assignments=(assignment,)))
    free: set[int] = set()
    for n in rng.permutation(NODES).tolist():  # node by node, so that whole nodes can be had; the last one in part
        free.update(of_node[n][: CANDIDATES - len(free)])
    runs = [run.model_copy(update={"preemptible": j in free}) for j, run in enumerate(runs)]
    gang = Option(
        workers=WORKERS,
        demand=Demand(gpus=GPUS, cpu_millicores=64_000, memory_mib=262_144),
        splits=(Split(level="rack", domains=1),),
        value=1000 * GPUS * WORKERS * 8,
    )
    return Instance(
        name=f"preemption-{NODES}x{GPUS}-s{seed}",
        cluster=Cluster(machines=(machine,), domains=racks, nodes=nodes),
        jobs=(*jobs, Job(id="gang", arrival_ms=len(jobs), options=(gang,))),
        running=tuple(runs),
        policy=Policy(
            changes=Changes(preemptions_max=CANDIDATES, preemption_price=PRICE),
            weights=Weights(communication=0, interference=0, fragmentation=0),
        ),
    )


def best_value(round_: Instance) -> int:
    """Work out the greatest value without placeopt."""
    worth = {job.id: job.options[0].value for job in round_.jobs}
    loss: dict[str, int | None] = {}
    for run in round_.running:
        node, so_far = run.assignments[0].node, loss.get(run.assignments[0].node, 0)
        loss[node] = so_far + worth[run.job] + PRICE if run.preemptible and so_far is not None else None
    racks: dict[str | None, list[int]] = {}
    for node in round_.cluster.nodes:
        cost = loss[node.id]
        if cost is not None:
            racks.setdefault(node.domain, []).append(cost)
    cheapest = min(sum(heapq.nsmallest(WORKERS, costs)) for costs in racks.values() if len(costs) >= WORKERS)
    running = sum(worth[run.job] for run in round_.running)
    return running + max(0, worth["gang"] - cheapest)


def main() -> int:
    """Run and report; exit code 1 if a plan is refused, not the best or not proven."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=5.0)
    parser.add_argument("--runs", type=int, default=3, help="rounds, of seeds 0, 1, 2, ...")
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [
        "# A full cluster and one large job",
        "",
        f"`python bench/preemption.py --time-limit {arguments.time_limit:g} --runs {arguments.runs}`, {usable_cores()} "
        f"cores, Python {platform.python_version()}, {known}. Seconds; the solver process is warm. What the victims "
        "are worth, with their price, is the loss; the cheapest is worked out apart, and every run must prove it.",
        "",
        "| seed | jobs | victims | loss, greedy | loss | status | compile | greedy | bound | exact | check | total |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    faults, totals = [], []
    with Engine() as engine:
        for seed in range(arguments.runs):
            round_ = preemption_round(seed)
            plan = engine.solve(round_, time_limit_s=arguments.time_limit)
            best = best_value(round_)
            faults += [v.message for v in violations(round_, plan)] + audit(round_, plan)
            level = plan.levels[0]
            if (level.objective, level.bound) != (best, best):
                faults.append(f"seed {seed}: value {level.objective}, bound {level.bound}, the best is {best}")
            totals.append(plan.seconds.total or 0.0)
            lines.append(row(seed, round_, plan))
    lines += ["", f"Median of the totals: {statistics.median(totals):.2f} s."]
    text = "\n".join([*lines, ""])
    print(text, *faults, sep="\n")
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 1 if faults else 0


def row(seed: int, round_: Instance, plan: Plan) -> str:
    """Return the table's line for one round. A loss is what the victims were worth, with their price."""
    value = {job.id: job.options[0].value for job in round_.jobs}
    all_of_it = sum(value.values())

    def loss(objective: int | None) -> str:
        return "" if objective is None else f"{all_of_it - objective:,}"

    def stage(*names: str) -> str:
        return f"{sum(s.seconds or 0.0 for s in plan.stages if s.name.startswith(names)):.2f}"

    seconds = plan.seconds
    cells = [
        str(seed),
        f"{len(round_.jobs):,}",
        str(len(plan.preempted)),
        loss(next(s.objective for s in plan.stages if s.name == "make-room")),
        loss(plan.levels[0].objective),
        plan.status,
        f"{seconds.compile or 0:.2f}",
        stage("heuristic", "make-room"),
        stage("bound"),
        stage("counts"),
        f"{seconds.check or 0:.2f}",
        f"{seconds.total or 0:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
