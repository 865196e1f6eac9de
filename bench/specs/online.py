"""
One at a time, by the protocol of FGD: pods of openb come one after the other, none leaves, none is tried twice.

The order is a shuffle of the list, filled up by pods drawn again until 1.3 times the GPUs have been asked for, or cut
there. FGD's authors published means over ten orders of their own (Weng et al., ATC'23); ours are drawn by Python's
generator, so figures are compared with their means, not order by order.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import NamedTuple

from placeopt import Engine, Instance, read_instance
from placeopt.live_cluster import ClusterChanges
from placeopt.model import Job
from rounds import INSTANCES, gpus_of
from spec import BenchSpec, Row

METHODS = ("prices", "stranding", "fgd", "best-fit")
SEEDS = (42, 43, 44)
ASKED = 1.3
"""Demand that comes, in multiples of the GPUs."""


class Online(NamedTuple):
    """A list of pods, and how many orders of it are played."""

    pods: str
    seeds: tuple[int, ...]


def play(asked: Online) -> Iterator[Row]:
    """Yield what each method has allocated when 100 % and 130 % of the GPUs have been asked for, mean of the orders."""
    pods = read_instance(INSTANCES / "openb" / f"{asked.pods}.json.gz")
    nodes = read_instance(INSTANCES / "openb" / "openb-gpu-nodes.json.gz") if len(asked.seeds) > 1 else pods
    empty = pods.model_copy(update={"cluster": nodes.cluster, "jobs": ()})
    for method in METHODS:
        runs = [one_order(empty, arrivals(pods, 1000 * gpus_of(empty), seed), method) for seed in asked.seeds]
        means = [round(sum(column) / len(runs), 2) for column in zip(*runs, strict=True)]
        fields = ("at_100_percent", "at_130_percent", "us_a_decision")
        yield {"method": method, "orders": len(runs), "gpus": gpus_of(empty), **dict(zip(fields, means, strict=True))}


def milli(job: Job) -> int:
    """Return the GPU-milli that a pod asks for."""
    demand = job.options[0].demand
    return demand.gpus * demand.gpu_milli


def arrivals(pods: Instance, capacity: int, seed: int) -> list[Job]:
    """Return the pods in the order in which they come; those drawn again have ids of their own."""
    draw = random.Random(seed)
    order = draw.sample(pods.jobs, len(pods.jobs))
    total = sum(map(milli, order))
    while total > ASKED * capacity:
        total -= milli(order.pop(draw.randrange(len(order))))
    while total < ASKED * capacity:
        more = draw.choice(pods.jobs)
        if total + milli(more) > ASKED * capacity:
            break
        order.append(more.model_copy(update={"id": f"again-{len(order)}"}))
        total += milli(more)
    return order


def one_order(empty: Instance, order: list[Job], method: str) -> tuple[float, float, float]:
    """Play one order; return percent allocated at 100 % and at the end, and microseconds a decision."""
    capacity = 1000 * gpus_of(empty)
    asked = held = 0
    at_100 = seconds = 0.0
    with Engine(isolation="thread") as engine:
        engine.load(empty)
        for job in order:
            began = time.perf_counter()
            engine.apply(ClusterChanges(add_jobs=(job,)))
            plan = engine.place([job.id], method=method, explain=False)
            if plan.placements:
                engine.commit(plan)
                held += milli(job)
            else:
                engine.apply(ClusterChanges(remove_jobs=(job.id,)))
            seconds += time.perf_counter() - began
            asked += milli(job)
            if asked <= capacity:
                at_100 = 100 * held / capacity
    return at_100, 100 * held / capacity, 1e6 * seconds / len(order)


SPEC = BenchSpec(
    name="online",
    question="How much of openb's GPUs is allocated if pods come one at a time, beside FGD's published figures?",
    rounds={
        "openb-first-100": Online("openb-first-100", SEEDS[:1]),
        **{name: Online(name, SEEDS) for name in ("openb-default", "openb-gpuspec33", "openb-multigpu20")},
    },
    run=play,
    columns=("round", "method", "orders", "at_100_percent", "at_130_percent", "us_a_decision", "load"),
    minutes=10,
)
