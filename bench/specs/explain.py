"""The whole queue explained: the reason of every waiting job, and what each single change of the cluster lets start."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from made_rounds import generate
from placeopt import read_instance
from placeopt.explain import explain_all
from rounds import GREEDY, INSTANCES, warm_engine
from spec import BenchSpec, Row


class Queue(NamedTuple):
    """A generated round, or a stored one without jobs."""

    name: str
    jobs: int = 0
    nodes: int = 500


def run(asked: Queue) -> Iterator[Row]:
    """Explain the queue beside greedy's plan."""
    made = (
        generate(asked.name, jobs=asked.jobs, nodes=asked.nodes, gpus=8, seed=0)
        if asked.jobs
        else read_instance(INSTANCES / "openb" / f"{asked.name}.json.gz")
    )
    plan = warm_engine().solve(made, method=GREEDY, time_limit_s=60)
    began = time.perf_counter()
    queue = explain_all(made, plan, time_limit_s=60)
    yield {
        "seconds": round(time.perf_counter() - began, 2),
        "placed": len(plan.placements),
        "waiting": queue.waiting,
        "kinds": queue.kinds,
        "reasons": len(queue.reasons),
        "changes": len(queue.changes),
        "proven": queue.proven,
    }


SPEC = BenchSpec(
    name="explain",
    question="How long does it take to say of every waiting job why it waits, and what would let it start?",
    rounds={
        "uniform, 20 nodes": Queue("uniform", 400, 20),
        **{f"{spec}, 500 nodes": Queue(spec, 11_500) for spec in ("uniform", "varied", "fractions")},
        "openb": Queue("openb-default"),
    },
    run=run,
    columns=("round", "seconds", "placed", "waiting", "kinds", "reasons", "changes", "proven", "load"),
    minutes=1,
)
