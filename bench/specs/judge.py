"""A full cluster judged: regret in both readings, and the smallest set of stops for each kind of job that waits."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import NamedTuple

from placeopt import build
from placeopt.judge import judge, live_round
from placeopt.model import Instance
from spec import BenchSpec, Row

LIMIT_S = 60.0
SHAPES = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8), (8, 8), (16, 8))
"""Workers, and GPUs of each, of the jobs that wait."""
PRIORITIES = (1, 2, 3)


class FullCluster(NamedTuple):
    """Nodes of 8 GPUs, on each GPU of which a job runs that may be stopped, every fourth moved, too; jobs that wait."""

    nodes: int
    waiting: int


def full_cluster(asked: FullCluster) -> Instance:
    """Return the round; what waits is of higher priority than what runs."""
    dice = random.Random(0)
    machine = build.machine("m", gpus=8, cpu_millicores=128_000, memory_mib=1 << 20)
    victims = [build.job(f"victim{i}", cpu_millicores=8000) for i in range(8 * asked.nodes)]
    running = [
        build.running(job, [(f"n{i // 8}", [i % 8])], preemptible=True, movable=i % 4 == 0)
        for i, job in enumerate(victims)
    ]
    shapes = [dice.choice(SHAPES) for _ in range(asked.waiting)]
    waiting = [
        build.job(f"job{i}", workers=workers, gpus=gpus, priority=dice.choice(PRIORITIES), cpu_millicores=8000 * gpus)
        for i, (workers, gpus) in enumerate(shapes)
    ]
    return build.instance(nodes=asked.nodes, machines=[machine], jobs=[*victims, *waiting], running=running)


def run(asked: FullCluster) -> Iterator[Row]:
    """Judge what runs."""
    round_ = live_round(full_cluster(asked))
    began, cpu = time.perf_counter(), time.process_time()
    found = judge(round_, time_limit_s=LIMIT_S)
    fixed, free = found.regrets
    sets = [kind for kind in found.waiting if kind.verdict == "changes"]
    yield {
        "limit_s": LIMIT_S,
        "seconds": round(time.perf_counter() - began, 2),
        "cpu_s": round(time.process_time() - cpu, 2),
        "victims": len(round_.running),
        "waiting": asked.waiting,
        "fixed_proven": fixed.proven,
        "changes_proven": free.proven,
        "jobs_more": sum(band.best for band in free.bands if band.highest > 0),
        "kinds": len(found.waiting),
        "smallest_sets_proven": sum(kind.proven for kind in sets),
        "largest_set": max((kind.size or 0 for kind in sets), default=0),
        "open": "; ".join(found.open),
    }


SPEC = BenchSpec(
    name="judge",
    question="Does a full cluster of 4,000 jobs that may be stopped get its proofs within a minute?",
    rounds={"10 nodes": FullCluster(10, 10), "500 nodes": FullCluster(500, 100)},
    run=run,
    columns=(
        "round",
        "limit_s",
        "seconds",
        "cpu_s",
        "victims",
        "waiting",
        "fixed_proven",
        "changes_proven",
        "jobs_more",
        "kinds",
        "smallest_sets_proven",
        "largest_set",
        "open",
        "load",
    ),
    minutes=2,
)
