"""
The shortest path that the hardware offers a job, by hand.

With the whole weight on communication a job's utility is best path / actual path, and a job whose minimum is 1 starts
on such GPUs only: a best path too short leaves it waiting, one too long places it where the referee refuses it.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.referee_utility import TRAFFIC, utility_policy
from placeopt import Engine, audit, violations
from placeopt.build import instance, job, machine, node, running
from placeopt.model import Domain, Gpu, Part

PARTS = (Part(id="s0", level="socket"), Part(id="s1", level="socket"))
POLICY = utility_policy(communication=1000)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(isolation="thread") as one:
        yield one


def gpus(*places: str, memory_mib: int = 16_384) -> list[Gpu]:
    """GPUs of model ``A`` or ``B`` in socket ``s0`` or ``s1``, written ``A0``, ``B1`` ...; B has 1 MiB more."""
    return [Gpu(model=p[0], part=f"s{p[1]}", memory_mib=memory_mib + (p[0] == "B")) for p in places]


FAR = machine("far", gpus("A0", "A0", "A1"), parts=PARTS)
SPLIT = machine("split", gpus("A0", "A1"), parts=PARTS)
FLAT = machine("flat", 2)
RACKS = (Domain(id="r0"), Domain(id="r1"))
BEST: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[int, ...]]] = {
    "on one node": ({"gpus": 3}, {"nodes": 3}, (3,)),
    "workers on one node": ({"workers": 4}, {"nodes": 3}, (4,)),
    "five on flat machines of four: 12 + 4 x 202, not 6 + 2 + 6 x 202": ({"workers": 5}, {"nodes": 3}, (4, 1)),
    "at most two a node: 2 + 2 + 8 x 202": ({"workers": 5, "workers_per_node_max": 2}, {"nodes": 3}, (2, 2, 1)),
    "one each": ({"workers": 3, "workers_per_node_max": 1}, {"nodes": 3}, (1, 1, 1)),
    "three pairs: 12 + 2 + 8 x 202": ({"workers": 3, "gpus": 2}, {"nodes": 3}, (4, 2)),
    "two threes": ({"workers": 2, "gpus": 3}, {"nodes": 3}, (3, 3)),
    "all on one node although its machine is the far one": ({"gpus": 3}, {"machines": [FAR], "nodes": 2}, (3,)),
    "two near ones of three": ({"workers": 2}, {"machines": [FAR], "nodes": 1}, (2,)),
    "the best type of machine": (
        {"gpus": 2},
        {"machines": [SPLIT, FLAT], "nodes": [node("n0", "split"), node("n1", "flat")]},
        (2,),
    ),
    "the only type of machine that holds it": (
        {"gpus": 3},
        {"machines": [FAR, FLAT], "nodes": [node("n0", "flat"), node("n1", "far")]},
        (3,),
    ),
    "of a model that stands on both sockets": (
        {"gpus": 2, "gpu_models": ("B",)},
        {"machines": [machine(gpus=gpus("A0", "A0", "B0", "B1"), parts=PARTS)], "nodes": 1},
        (2,),
    ),
    "of a memory that stands on both sockets": (
        {"gpus": 2, "gpu_memory_mib": 16_385},
        {"machines": [machine(gpus=gpus("A0", "A0", "B0", "B1"), parts=PARTS)], "nodes": 1},
        (2,),
    ),
    "in a rack: 202": (
        {"workers": 2, "workers_per_node_max": 1},
        {"nodes": [node("a", domain="r0"), node("b", domain="r1"), node("c", domain="r1")], "domains": RACKS},
        (1, 1),
    ),
    "across racks where no rack has two: 602": (
        {"workers": 2, "workers_per_node_max": 1},
        {"nodes": [node("a", domain="r0"), node("b", domain="r1")], "domains": RACKS},
        (1, 1),
    ),
    "1 apart": ({"gpus": 2}, {"machines": [machine(gpus=2, gpu_distance_matrix=((0, 1), (1, 0)))]}, (2,)),
    "not apart at all": ({"workers": 2}, {"machines": [machine(gpus=2, gpu_distance_matrix=((0, 0), (0, 0)))]}, (2,)),
}
"""A job, the cluster, and the GPUs on each node that hold it at its best."""


@pytest.mark.parametrize("name", BEST)
def test_a_job_that_needs_the_best_starts_there(name: str, engine: Engine) -> None:
    fields, cluster, held = BEST[name]
    a = job("a", communication=TRAFFIC, utility_min_thousandths=1000, **fields)
    round_ = instance(**{"nodes": 2, "jobs": [a], "policy": POLICY, **cluster})
    plan = engine.solve(round_, time_limit_s=10)
    assert (violations(round_, plan), audit(round_, plan)) == ([], [])
    assert [sorted((len(part.gpus) for part in one.assignments), reverse=True) for one in plan.placements] == [
        list(held)
    ]


def test_what_is_taken_makes_a_job_wait_for_its_best(engine: Engine) -> None:
    """Every second GPU of two nodes runs something: nearer sets exist, but none is free."""
    kinds = [machine(gpus=gpus("A0", "A0", "A1", "A1"), parts=PARTS)]
    busy = [job(f"b{i}") for i in range(2)]
    a = job("a", gpus=2, communication=TRAFFIC, utility_min_thousandths=1000)
    runs = [running(busy[0], [("n0", [0])]), running(busy[1], [("n0", [2])])]
    round_ = instance(1, [*busy, a], machines=kinds, running=runs, policy=POLICY)
    plan = engine.solve(round_, time_limit_s=10)
    assert plan.placement_of("a") is None
    assert violations(round_, plan) == []
