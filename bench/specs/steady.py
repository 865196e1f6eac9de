"""A cluster that stays for many rounds: jobs end, others come, a round is placed and committed; time and memory."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from placeopt import Engine, generate
from placeopt.live_cluster import ClusterChanges
from spec import BenchSpec, Row

POINTS = 5
"""Rows of one run: how memory goes on."""


class Stay(NamedTuple):
    """Nodes of 8 GPUs, rounds, and jobs that end and come between two of them."""

    nodes: int
    rounds: int
    changes: int


def run(asked: Stay) -> Iterator[Row]:
    """Play the rounds; yield a row at each fifth of them."""
    with Engine() as engine:
        engine.load(generate("uniform", jobs=8 * asked.nodes, nodes=asked.nodes, gpus=8, seed=1))
        engine.commit(engine.place(method="stranding", prove=False, explain=False, time_limit_s=600))
        snapshot = engine.snapshot
        running = [held.job for held in snapshot.running]
        shapes = snapshot.jobs
        draw = random.Random(1)
        began = resident_mib()
        seconds: list[float] = []
        started = 0
        for number in range(1, asked.rounds + 1):
            gone = tuple(running.pop(draw.randrange(len(running))) for _ in range(asked.changes))
            ids = (f"round-{number}-{i}" for i in range(asked.changes))
            come = tuple(draw.choice(shapes).model_copy(update={"id": one}) for one in ids)
            engine.apply(ClusterChanges(release=gone, add_jobs=come))
            clock = time.perf_counter()
            plan = engine.place(waiting_only=True, time_limit_s=3, gap=2e-5)
            engine.commit(plan)
            seconds.append(time.perf_counter() - clock)
            running += [held.job for held in plan.placements]
            started += len(plan.placements)
            if number % max(1, asked.rounds // POINTS) == 0:
                yield {
                    "call": f"after {number} rounds",
                    "started": started,
                    "p50_s": round(statistics.median(seconds), 3),
                    "most_s": round(max(seconds), 3),
                    "mib": round(resident_mib()),
                    "mib_more": round(resident_mib() - began),
                }
                seconds.clear()


def resident_mib(process: int | str = "self") -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


SPEC = BenchSpec(
    name="steady",
    question="What does a round of a cluster that stays take, and does memory stay flat?",
    rounds={
        "16 nodes, 10 rounds of 10 changes": Stay(16, 10, 10),
        "100 nodes, 1,000 rounds of 50 changes": Stay(100, 1000, 50),
        "12,500 nodes, 50 rounds of 50 changes": Stay(12_500, 50, 50),
    },
    run=run,
    columns=("round", "call", "started", "p50_s", "most_s", "mib", "mib_more", "load"),
    minutes=8,
)
