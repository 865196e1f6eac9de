"""
Racks of 18 nodes with four GPUs each (NVL72), jobs in segments that stay in a rack, and nodes that are out.

A segment of s nodes leaves 18 mod s nodes of every rack to smaller jobs, and more where nodes are out. How much of the
cluster that costs is asked for each size: what placeopt holds, what two rules hold, and what is proven impossible.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from placeopt import build, solve
from placeopt.model import Domain, Instance, Job, Spread
from spec import BenchSpec, Row

RACK_NODES, NODE_GPUS = 18, 4
RACKS = 278
"""5,004 nodes."""
MIXES = {"8 to 1,152 GPUs": (2, 4, 8, 16, 32, 64, 128, 288), "64 to 1,152 GPUs": (16, 32, 64, 128, 288)}
"""Nodes of jobs; those of each size ask for as many nodes in sum."""
DEMAND = 1.25
"""Nodes that are asked for, over those of the cluster."""
SEGMENTS = (4, 9, 16)
OUT_PERCENT = (0, 2, 4, 8)
LIMIT_S = 120.0
SEED = 7


@dataclass(frozen=True)
class Study:
    """A prescribed segment, the share of nodes that are out, and the jobs."""

    segment: int
    out_percent: int
    mix: str
    racks: int = RACKS


def made(study: Study) -> Instance:
    """Return the round: more jobs than fit, each worth its number of nodes, in the order in which they came."""
    dice = random.Random(SEED)
    total = study.racks * RACK_NODES
    out = set(dice.sample(range(total), total * study.out_percent // 100))
    nodes = [build.node(f"n{i}", "nvl72", domain=f"r{i // RACK_NODES}", drained=i in out) for i in range(total)]
    sizes = MIXES[study.mix]
    each = DEMAND * total / len(sizes)
    jobs = [_job(size, number, study.segment) for size in sizes for number in range(max(1, round(each / size)))]
    dice.shuffle(jobs)
    return build.instance(
        nodes=nodes,
        machines=[build.machine("nvl72", gpus=NODE_GPUS, model="GB200", gpu_memory_mib=189_440)],
        domains=[Domain(id=f"r{i}") for i in range(study.racks)],
        jobs=jobs,
    )


def _job(size: int, number: int, segment: int) -> Job:
    apart = Spread(level="rack", segment=min(segment, size), remainder="smaller")
    return build.gang(f"{size}-{number}", workers=size, gpus=NODE_GPUS, value=size, spread=(apart,))


Free = dict[str, int]
"""Rack -> nodes that nothing holds."""
RULES: dict[str, Callable[[list[str], Free], str]] = {
    "first fit": lambda fits, _: fits[0],
    "best fit": lambda fits, free: min(fits, key=free.__getitem__),
}
"""Which of the racks with room for it takes a segment: the first, or the fullest."""


def held_by_rule(instance: Instance, segment: int, choose: Callable[[list[str], Free], str]) -> int:
    """Return the nodes that are held where jobs are placed as they came, each whole; one that does not fit waits."""
    free = dict.fromkeys((domain.id for domain in instance.cluster.domains), 0)
    for node in instance.cluster.nodes:
        free[str(node.domain)] += not node.drained
    held = 0
    for job in instance.jobs:
        size, after = job.options[0].workers, dict(free)
        for part in [segment] * (size // segment) + [size % segment] * (size % segment > 0):
            fits = [rack for rack in after if after[rack] >= part]
            if not fits:
                break
            after[choose(fits, after)] -= part
        else:
            held, free = held + size, after
    return held


def study(asked: Study) -> Iterator[Row]:
    """Yield a row for each rule and for placeopt, in parts of the nodes that are not out; the last with its bound."""
    instance = made(asked)
    there = sum(not node.drained for node in instance.cluster.nodes)
    about = {"segment": asked.segment, "out_percent": asked.out_percent, "mix": asked.mix, "nodes": there}
    for name, choose in RULES.items():
        held = held_by_rule(instance, asked.segment, choose)
        yield {**about, "by": name, "held": round(held / there, 4), "bound": None}
    plan = solve(instance, time_limit_s=LIMIT_S, seed=SEED)
    value = plan.levels[0]
    bound = None if value.bound is None else round(value.bound / there, 4)
    yield {**about, "by": "placeopt", "held": round(value.objective / there, 4), "bound": bound}


SMALLEST = next(iter(MIXES))
STUDIES = {
    "18 nodes": Study(4, 0, SMALLEST, racks=1),  # small
    **{
        f"{segment} of 18, {out} % out, {mix}": Study(segment, out, mix)
        for mix in MIXES
        for segment in SEGMENTS
        for out in OUT_PERCENT
    },
}
SPEC = BenchSpec(
    name="segments",
    question="Which segment size shall be prescribed on 5,004 nodes in racks of 18, with some nodes out?",
    rounds=STUDIES,
    run=study,
    columns=("round", "by", "nodes", "held", "bound", "load"),
    minutes=55,
)
