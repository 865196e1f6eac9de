"""
A cluster that stays: ``python bench/resident.py [--nodes N] [--decisions N] [--out FILE.md]``.

N nodes of 8 GPUs in racks of 32, about one running job a GPU. Measured are (1) compiling: from nothing, and after a
change, where classes and running jobs are asserted to be those that are compiled from nothing; (2) decisions for single
jobs while others come and go: a job is added, placed and committed, two others are released (and a gang, too), so that
nodes change between any two decisions. In the mix ``alike`` jobs ask for CPU in proportion to their GPUs, as on most
clusters; in ``varied`` for one of 20 amounts, so that hardly any two nodes look alike. Times are those of the calling
thread's CPU, with the wall clock's beside them. The kernel is everything up to GPUs that every rule allows; it and
``place`` are timed in turns, since whichever comes first brings the scores up to date.
"""

from __future__ import annotations

import argparse
import gc
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from placeopt import Engine, Instance, Plan, Policy
from placeopt.environment import usable_cores, versions
from placeopt.model import (
    Assignment,
    Cluster,
    Communication,
    Demand,
    Domain,
    Gpu,
    Job,
    Machine,
    Node,
    Option,
    Part,
    Running,
    WorkerGpus,
)
from placeopt.problem import compile_problem

GPUS, RACK = 8, 32
SIZES = (250, 500, 1000, 2000, 4000, 8000)
"""GPU-milli of a job."""
CHANCES = (0.25, 0.2, 0.3, 0.13, 0.08, 0.04)
IDLE = 0.12
"""Part of the nodes on which nothing runs at first."""


def job_of(name: str, milli: int, cpu: int, kind: int, workers: int = 1) -> Job:
    """Make a job of so many GPU-milli a worker and millicores; ``kind`` is its traffic."""
    gpus = max(1, milli // 1000)
    demand = Demand(gpus=gpus, gpu_milli=min(milli, 1000), cpu_millicores=cpu, memory_mib=cpu * 6)
    traffic = Communication(weight=kind % 4 + 1 if gpus * workers > 1 else 0)
    return Job(id=name, options=(Option(demand=demand, value=milli * workers, workers=workers),), communication=traffic)


def draw(rng: np.random.Generator, name: str, free: int, varied: bool) -> Job:
    """Draw a job of at most ``free`` GPU-milli."""
    milli = int(rng.choice(SIZES, p=CHANCES))
    while milli > free:
        milli //= 2
    per_gpu = 6_000 + 300 * int(rng.integers(20)) if varied else 8_000
    return job_of(name, milli, milli * per_gpu // 1000, int(rng.integers(4)))


def busy_cluster(nodes: int, seed: int, *, varied: bool) -> Instance:
    """Make the cluster: a tenth of the nodes is idle, on the others GPUs are given out one job after the other."""
    rng = np.random.default_rng(seed)
    parts = tuple(Part(id=f"s{s}", level="socket") for s in range(2))
    gpus = tuple(Gpu(model="H100", memory_mib=81_920, part=f"s{g * 2 // GPUS}") for g in range(GPUS))
    machine = Machine(id="m", cpu_millicores=96_000, memory_mib=589_824, parts=parts, gpus=gpus)
    racks = tuple(Domain(id=f"r{r}", level="rack") for r in range(-(-nodes // RACK)))
    jobs: list[Job] = []
    running: list[Running] = []
    for n in range(nodes):
        free = [1000] * GPUS if rng.random() >= IDLE else []
        while sum(free) and rng.random() < 0.97:
            whole = sum(f == 1000 for f in free) * 1000
            job = draw(rng, f"job-{len(jobs):07d}", max(whole, max(free)), varied)
            demand = job.options[0].demand
            fitting = [g for g, f in enumerate(free) if f >= demand.gpu_milli]
            if demand.gpu_milli < 1000:
                fitting.sort(key=lambda g: free[g])
            held = tuple(sorted(fitting[: demand.gpus]))
            for g in held:
                free[g] -= demand.gpu_milli
            where = Assignment(
                node=f"n{n:05d}",
                gpus={str(g): demand.gpu_milli for g in held},
                cpu_millicores=demand.cpu_millicores,
                memory_mib=demand.memory_mib,
                workers=(WorkerGpus(rank=0, gpus=held),),
            )
            jobs.append(job)
            running.append(Running(job=job.id, option="default", assignments=(where,)))
    cluster = Cluster(
        machines=(machine,),
        domains=racks,
        nodes=tuple(Node(id=f"n{n:05d}", machine="m", domain=f"r{n // RACK}") for n in range(nodes)),
    )
    name = f"resident-{'varied' if varied else 'alike'}-{nodes}x{GPUS}-s{seed}"
    return Instance(name=name, cluster=cluster, jobs=tuple(jobs), running=tuple(running), policy=Policy())


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return wall and CPU seconds."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def compile_rows(engine: Engine, instance: Instance, rng: np.random.Generator) -> list[str]:
    """Compile from nothing and after changes."""
    resident = engine._cluster
    assert resident is not None
    rows = []

    def row(what: str, change: Callable[[], None]) -> None:
        update = timed(change)
        compiled = timed(resident.state.problem)
        fresh = compile_problem(engine.snapshot)
        kept = resident.state.problem()
        assert kept.running == fresh.running
        assert (kept.job_class == fresh.job_class).all()
        assert (kept.node_class == fresh.node_class).all()
        rows.append(f"| {what} | {cells(update, compiled)} |")

    nothing = timed(lambda: compile_problem(instance))
    rows.append(f"| from nothing | {cells((0.0, 0.0), nothing)} |")
    row("1 job came", lambda: engine.update(add_jobs=[draw(rng, "one", 8000, False)]))
    row("100 jobs came", lambda: engine.update(add_jobs=[draw(rng, f"more-{i}", 8000, False) for i in range(100)]))
    row("1 job of a new class", lambda: engine.update(add_jobs=[job_of("new", 1000, 777, 0)]))
    row("1 job ended", lambda: engine.release(next(iter(resident.state.record.running))) and None)
    row("1 node drained", lambda: engine.update(nodes={"n00007": "drain"}))
    moved = engine.snapshot.cluster.nodes[9].model_copy(update={"domain": "r1"})
    row("1 node in another rack", lambda: engine.update(nodes={moved.id: moved}))
    row("1 node added", lambda: engine.update(nodes={"extra": Node(id="extra", machine="m", domain="r0")}))
    idle = next(n.id for n in instance.cluster.nodes if not resident.state.record.ledger.on_node(n.id))
    row("1 node gone", lambda: engine.update(nodes={idle: None}))
    return rows


def cells(*figures: tuple[float, float]) -> str:
    """Write wall and CPU milliseconds."""
    return " | ".join(f"{1000 * wall:.1f} | {1000 * cpu:.1f}" for wall, cpu in figures)


class Stopwatch:
    """CPU and wall microseconds of the calling thread."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def __call__(self, work: Callable[[], Plan | object]) -> object:
        """Run ``work`` and return what it does."""
        wall, cpu = time.perf_counter(), time.thread_time()
        done = work()
        self.cpu.append(1e6 * (time.thread_time() - cpu))
        self.wall.append(1e6 * (time.perf_counter() - wall))
        return done

    def __str__(self) -> str:
        cpu, wall = np.array(self.cpu), np.array(self.wall)
        return f"{np.median(cpu):,.0f} | {np.percentile(cpu, 99):,.0f} | {np.median(wall):,.0f}"


def decide(engine: Engine, rng: np.random.Generator, make: Callable[[str], Job], count: int) -> str:
    """Let jobs come, be decided on and run, while others end; return the row's figures."""
    resident = engine._cluster
    assert resident is not None
    runs = list(resident.state.record.running)
    kernel, place, commit, placed = Stopwatch(), Stopwatch(), Stopwatch(), 0
    for i in range(count):
        name = f"decided-{rng.integers(1 << 60)}"
        engine.update(add_jobs=[make(name)])
        if i % 2:
            number = resident.state.parts.table.number(name)
            kernel(lambda number=number: resident.state.placer.decide(number, "stranding"))
            plan = engine.place([name])
        else:
            plan = place(lambda name=name: engine.place([name]))
        assert isinstance(plan, Plan)
        commit(lambda plan=plan: engine.commit(plan))
        placed += len(plan.placements)
        if not plan.placements:
            engine.update(remove_jobs=[name])
        elif len(plan.placements[0].assignments) > 1:  # gangs would soon fill what is idle
            engine.release(name)
        else:
            runs.append(name)
        for _ in range(2):
            engine.release(runs.pop(int(rng.integers(len(runs)))))
    return f"{placed}/{count} | {kernel} | {place} | {commit}"


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=12_500)
    parser.add_argument("--decisions", type=int, default=400)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [
        "# A cluster that stays",
        "",
        f"`python bench/resident.py --nodes {options.nodes} --decisions {options.decisions} --seed {options.seed}`, "
        f"{usable_cores()} cores, Python {platform.python_version()}, {known}.",
    ]
    for varied in (False, True):
        instance = busy_cluster(options.nodes, options.seed, varied=varied)
        rng = np.random.default_rng(options.seed)
        with Engine() as engine:
            load = timed(lambda i=instance, e=engine: e.load(i))  # type: ignore[misc]
            lines += [
                "",
                f"## `{instance.name}`: {len(instance.running):,} running jobs on {options.nodes * GPUS:,} GPUs",
                "",
                f"`load` with the referee's check of what runs: {load[0]:.2f} s, {load[1]:.2f} s of CPU.",
                "",
            ]
            if not varied:
                lines += [
                    "| change | `update`, ms | CPU | compile, ms | CPU |",
                    "|---|---|---|---|---|",
                    *compile_rows(engine, instance, rng),
                    "",
                ]
            lines += [
                "Microseconds of CPU, median and 99th percentile, and median by the wall clock.",
                "",
                "| job | placed | kernel | p99 | wall | `place` | p99 | wall | `commit` | p99 | wall |",
                "|---|---|---|---|---|---|---|---|---|---|---|",
            ]
            for text, milli, workers in (
                ("512 GPUs, 64 workers", 8000, 64),
                ("8 GPUs", 8000, 1),
                ("4 GPUs", 4000, 1),
                ("1 GPU", 1000, 1),
                ("1/4 GPU", 250, 1),
            ):
                count = options.decisions if workers == 1 else options.decisions // 10
                cpu = milli * 8

                def make(name: str, milli: int = milli, cpu: int = cpu, workers: int = workers) -> Job:
                    return job_of(name, milli, cpu, 0, workers)

                decide(engine, rng, make, 20)
                lines.append(f"| {text} | {decide(engine, rng, make, count)} |")
    text = "\n".join(lines) + "\n"
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
