"""A cluster of Kubernetes read as its API lists it, read again after a hundred changes, and the differences applied."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

from kubernetes_lists import drawn, later
from placeopt import Engine
from placeopt.importers import read_kubernetes
from placeopt.live_cluster import changes_between
from spec import BenchSpec, Row
from watch import Watch

REPEATS = 5


def readings(nodes: int) -> Iterator[Row]:
    """Read the objects of so many nodes, 3.3 pods a node."""
    watch = Watch()
    draw = random.Random(1)
    first: dict[str, Any] = {"kind": "List", "items": drawn(draw, nodes, 33 * nodes // 10)}
    second = later(draw, first)
    for _ in range(REPEATS):
        before = watch("read a cluster of Kubernetes", lambda: read_kubernetes(first))
        after = watch("read it again", partial(read_kubernetes, second, previous=before))
        changes = watch("compute the differences", partial(changes_between, before, after))
        with Engine(isolation="thread") as engine:
            engine.load(before)
            watch("apply the differences", partial(engine.apply, changes))
    yield from watch.rows()


SPEC = BenchSpec(
    name="differences",
    question="How long does it take to follow a cluster of Kubernetes from one reading to the next?",
    rounds={"250 nodes": 250, "5,000 nodes": 5000},
    run=readings,
    columns=("round", "call", "calls", "p50_ms", "p99_ms", "load"),
    minutes=1,
)
