"""
Explanations on 500 nodes x 8 GPUs: ``python bench/explain.py [--time-limit S] [--waiting N] [--out FILE.md]``.

First the gang of 80 GPUs bound to one rack, in 50 racks of which each has 7 of 10 nodes free: as Python, as JSON and as
text; the run asserts the conflict, the sentences and that all is proven. Then waiting jobs of full rounds of the
generators, and of the whole openb trace: how long each takes, and how many answers are proven.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from placeopt import Instance, Plan, generate, read_instance, solve, write_instance, write_plan
from placeopt.cli.run import run
from placeopt.environment import usable_cores, versions
from placeopt.explain import Explanation, explain
from placeopt.model import (
    Assignment,
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
    WorkerGpus,
)

T = TypeVar("T")
RACKS, NODES, GPUS, BUSY, WORKERS = 50, 10, 8, 3, 10
SENTENCES = ("GPU count, gang and rack cannot hold together", "largest gang in one rack: 7 workers", "2 racks would do")
SPECS = {"uniform": 3000, "varied": 3000, "gangs": 600, "fractions": 6000}
"""Spec -> jobs on 500 nodes of 8 GPUs: more than fit."""
OPENB = Path(__file__).parent.parent / "instances/openb/openb-default.json.gz"


def rack_gang() -> Instance:
    """In every rack three nodes are held, in part or in full, by preemptible jobs; ``gang`` asks for 10 whole nodes."""
    machine = Machine(
        id="m", cpu_millicores=96_000, memory_mib=524_288, gpus=(Gpu(model="H100", memory_mib=81_920),) * GPUS
    )
    busy = [n for n in range(RACKS * NODES) if n % NODES < BUSY]
    jobs = [Job(id=f"held{n}", options=(Option(demand=Demand(gpus=GPUS if n % 2 else 4), value=5),)) for n in busy]
    runs = [
        Running(job=job.id, option="default", assignments=(_held(n, job),), preemptible=True)
        for n, job in zip(busy, jobs, strict=True)
    ]
    gang = Option(workers=WORKERS, demand=Demand(gpus=GPUS), splits=(Split(level="rack", domains=1),), value=100)
    return Instance(
        name="rack-gang",
        cluster=Cluster(
            machines=(machine,),
            domains=tuple(Domain(id=f"r{r}") for r in range(RACKS)),
            nodes=tuple(Node(id=f"n{n}", machine="m", domain=f"r{n // NODES}") for n in range(RACKS * NODES)),
        ),
        jobs=(*jobs, Job(id="gang", options=(gang,))),
        running=tuple(runs),
    )


def _held(node: int, job: Job) -> Assignment:
    gpus = tuple(range(job.options[0].demand.gpus))
    return Assignment(node=f"n{node}", gpus={str(gpu): 1000 for gpu in gpus}, workers=(WorkerGpus(rank=0, gpus=gpus),))


def main() -> int:
    """Run and report; exit code 1 if the gang is explained otherwise than it should be."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=5.0)
    parser.add_argument("--waiting", type=int, default=6, help="waiting jobs of every full round")
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    gang, faults = _gang(arguments.time_limit)
    lines = [
        "# Explanations at 500 nodes",
        "",
        f"`python bench/explain.py --time-limit {arguments.time_limit:g} --waiting {arguments.waiting}`, "
        f"{usable_cores()} cores, Python {platform.python_version()}, {known}. Wall and CPU seconds of a whole call, "
        "the solver's process, which each call starts anew, included; of several calls the median, and the largest. "
        f"Load average of the machine: {os.getloadavg()[0]:.0f}.",
        "",
        "## A gang of 80 GPUs bound to one rack",
        "",
        "500 nodes x 8 GPUs in 50 racks, 7 of 10 nodes of each are free. Three calls each; the last two read files.",
        "",
        "| as | wall | CPU |",
        "|---|---:|---:|",
        *gang,
        "",
        "## Waiting jobs of full rounds",
        "",
        "Waiting jobs at equal distances down the plan's list; method `stranding`. Files are not counted.",
        "",
        "| round | nodes | placed | explained | reasons | proven | wall | CPU |",
        "|---|---:|---:|---:|---|---:|---:|---:|",
        *_full_rounds(arguments.waiting, arguments.time_limit),
        "",
    ]
    text = "\n".join(lines)
    print(text, *faults, sep="\n")
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 1 if faults else 0


def _gang(time_limit_s: float) -> tuple[list[str], list[str]]:
    """The rows, and what is not as it should be."""
    round_ = rack_gang()
    plan = solve(round_)
    faults: list[str] = []
    rows: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/round.json", f"{folder}/plan.json"]
        write_instance(files[0], round_)
        write_plan(files[1], plan)
        timed: list[tuple[float, float]] = []
        for _ in range(3):
            explanation = _timed(timed, lambda: explain(round_, plan, "gang", time_limit_s=time_limit_s))
            faults += _wrong(explanation)
        rows.append(_row("`placeopt.explain.explain`", timed))
        for name, more in (("`placeopt explain --json`", ["--json"]), ("`placeopt explain`", [])):
            timed = []
            for _ in range(3):
                said = io.StringIO()
                with contextlib.redirect_stdout(said):
                    code = _timed(timed, lambda more=more: run(["explain", *files, "--job", "gang", *more]))
                faults += [f"{name}: {words!r} is not said" for words in SENTENCES if words not in said.getvalue()]
                faults += [f"{name}: exit code {code}"] if code else []
            rows.append(_row(name, timed))
    return rows, faults


def _wrong(explanation: Explanation) -> list[str]:
    conflict = [constraint.name for constraint in explanation.conflict]
    said = [explanation.detail, *explanation.remedies.said.values()]
    faults = [f"{words!r} is not said" for words in SENTENCES if not any(words in text for text in said)]
    faults += [] if explanation.proven else ["not all is proven"]
    return faults + ([] if conflict == ["GPU count", "gang", "rack"] else [f"conflict {conflict}"])


def _full_rounds(waiting: int, time_limit_s: float) -> Iterator[str]:
    for spec, jobs in SPECS.items():
        yield _explained(generate(spec, jobs=jobs, nodes=RACKS * NODES, gpus=GPUS, seed=0), waiting, time_limit_s)
    yield _explained(read_instance(str(OPENB)), waiting, time_limit_s)


def _explained(round_: Instance, waiting: int, time_limit_s: float) -> str:
    plan = solve(round_, method="stranding", time_limit_s=30)
    timed: list[tuple[float, float]] = []
    explanations = [
        _timed(timed, lambda job=job: explain(round_, plan, job, time_limit_s=time_limit_s))
        for job in _some(plan, waiting)
    ]
    reasons = ", ".join(sorted({f"{explanation.reason}" for explanation in explanations}))
    proven = sum(explanation.proven for explanation in explanations)
    head = (
        f"| {round_.name} | {len(round_.cluster.nodes):,} | {len(plan.placements):,} | {len(explanations)} | {reasons} "
    )
    return f"{head}| {proven} {_row('', timed).removeprefix('|  ')}"


def _some(plan: Plan, most: int) -> list[str]:
    jobs = [unplaced.job for unplaced in plan.unplaced]
    return jobs[:: max(1, len(jobs) // most)][:most]


def _timed(timed: list[tuple[float, float]], call: Callable[[], T]) -> T:
    wall, cpu = time.perf_counter(), _cpu_s()
    result = call()
    timed.append((time.perf_counter() - wall, _cpu_s() - cpu))
    return result


def _cpu_s() -> float:
    """CPU seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _row(name: str, timed: list[tuple[float, float]]) -> str:
    cells = [f"{statistics.median(clock):.2f}, {max(clock):.2f}" for clock in zip(*timed, strict=True)]
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
