"""
The whole queue explained: ``python bench/explain_queue.py [--out FILE.md]``.

The openb trace as one round, and rounds of the generators on 500 nodes x 8 GPUs of which some 8,000 jobs wait. In one
of them every third job also needs a licence, of which every tenth node has two, and ten nodes are drained.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from placeopt import Instance, generate, read_instance, solve
from placeopt.environment import usable_cores, versions
from placeopt.explain import explain_all
from placeopt.model import Cluster, Demand, Machine

OPENB = Path(__file__).parent.parent / "instances/openb/openb-default.json.gz"
JOBS = {"uniform": 11_500, "varied": 11_500, "fractions": 12_500}
NODES, GPUS, SHOWN = 500, 8, 4


def with_licences(round_: Instance) -> Instance:
    """Let every third job need a licence, give every tenth node two, and drain ten nodes."""
    jobs = []
    for j, job in enumerate(round_.jobs):
        options = tuple(
            option.model_copy(update={"demand": Demand(**{**dict(option.demand), "resources": {"licence": 1}})})
            for option in job.options
        )
        jobs.append(job if j % 3 else job.model_copy(update={"options": options}))
    machines = {machine.id: machine for machine in round_.cluster.machines}
    nodes, kinds = [], dict(machines)
    for n, node in enumerate(round_.cluster.nodes):
        kind = node.machine
        if n % 10 == 0:
            kind = f"{node.machine}-licensed"
            kinds[kind] = Machine(**{**dict(machines[node.machine]), "id": kind, "resources": {"licence": 2}})
        nodes.append(node.model_copy(update={"machine": kind, "drained": n % 50 == 1}))
    cluster = Cluster(machines=tuple(kinds.values()), domains=round_.cluster.domains, nodes=tuple(nodes))
    return Instance(name=f"{round_.name}-licences", cluster=cluster, jobs=tuple(jobs), policy=round_.policy)


def rounds() -> Iterator[Instance]:
    """Yield the rounds of the table."""
    yield read_instance(str(OPENB))
    for spec, jobs in JOBS.items():
        yield generate(spec, jobs=jobs, nodes=NODES, gpus=GPUS, seed=0)
    yield with_licences(generate("varied", jobs=JOBS["varied"], nodes=NODES, gpus=GPUS, seed=0))


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    rows, said = [], []
    for round_ in rounds():
        plan = solve(round_, method="stranding", time_limit_s=60)
        wall, cpu = time.perf_counter(), time.process_time()
        queue = explain_all(round_, plan, time_limit_s=arguments.time_limit)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        rows.append(
            f"| {round_.name} | {len(plan.placements):,} | {queue.waiting:,} | {queue.kinds:,} | {len(queue.reasons)} "
            f"| {len(queue.changes)} | {'yes' if queue.proven else 'no'} | {wall:.1f} | {cpu:.1f} |"
        )
        said += ["", f"{round_.name}:", ""]
        said += [f"- {one.jobs:,} jobs, {one.reason}: {one.detail}" for one in queue.reasons[:SHOWN]]
        said += [
            f"- {one.change}: {one.jobs_together:,} start together, {one.jobs_alone:,} fit alone"
            for one in queue.changes[:SHOWN]
        ]
    text = "\n".join(
        [
            "# The whole queue explained",
            "",
            f"`python bench/explain_queue.py`, {usable_cores()} cores, Python {platform.python_version()}, {known}. "
            "Plans by method `stranding`; seconds of `explain_all`, the check of the plan included.",
            "",
            "| round | placed | waiting | distinct | reasons | changes | all answered | wall | CPU |",
            "|---|---:|---:|---:|---:|---:|---|---:|---:|",
            *rows,
            "",
            f"Of each the first {SHOWN} reasons and changes:",
            *said,
            "",
        ]
    )
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
