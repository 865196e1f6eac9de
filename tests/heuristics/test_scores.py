"""The scores of greedy's family, each on an example worked by hand."""

from typing import Any

import numpy as np
import pytest

from helpers.machines import sockets
from placeopt.build import instance, job, machine, running
from placeopt.heuristics import greedy
from placeopt.model import (
    Communication,
    Fragmentation,
    Instance,
    Interference,
    Policy,
    Slowdown,
    TargetWorker,
)
from placeopt.problem import compile_problem

Held = tuple[dict[str, Any], str, list[int]]
"""Fields of a job that runs, its node and its GPUs there."""

SINGLE = {"machines": [machine(gpus=1)]}


def round_of(asks: dict[str, Any], *held: Held, nodes: int = 2, others: tuple = (), **fields: Any) -> Instance:
    """Jobs run, one waits, and others after it."""
    there = [job(f"h{i}", **of) for i, (of, _, _) in enumerate(held)]
    runs = [running(one, [(node, gpus)]) for one, (_, node, gpus) in zip(there, held, strict=True)]
    return instance(nodes, [*there, job("w", **asks), *others], running=runs, **fields)


def chosen(score: str, round_: Instance, seed: int = 0) -> tuple[str, list[int]]:
    """Node and GPU indexes that job ``w`` gets, first of all."""
    problem = compile_problem(round_)
    w = problem.job_ids.index("w")
    placement = greedy(problem, np.array([w]), score, seed=seed).allocation[w]
    first = problem.first_gpu[placement.nodes[0]]
    return problem.node_ids[placement.nodes[0]], [gpu - first for gpu in placement.gpus]


# n0 has 8 of 32 cores and 4 of 4 GPUs free, n1 32 cores and 1 GPU
UNEVEN: list[Held] = [({"gpus": 0, "cpu_millicores": 24_000}, "n0", []), ({"gpus": 3}, "n1", [0, 1, 2])]
# n0 idle; n1 holds a half; n2 two fifths and a whole GPU; n3 two whole GPUs of one job
MIXED: list[Held] = [({"gpu_milli": 500}, "n1", [1]), ({"gpu_milli": 400}, "n2", [2]), ({}, "n2", [0]),
                     ({"gpus": 2}, "n3", [0, 1])]  # fmt: skip
# one GPU a node, two jobs at most; n0: utilisation 80 %, no memory; n1: 10 %, 12 of 16 GiB
BUSY: list[Held] = [({"gpu_utilisation_percent": 80}, "n0", [0]),
                    ({"gpu_utilisation_percent": 10, "gpu_memory_mib": 12_288}, "n1", [0])]  # fmt: skip
ASKS = {"gpu_utilisation_percent": 60, "gpu_memory_mib": 4_096}
TWICE = {"policy": Policy(share_mode="overcommit", jobs_per_gpu_max=2)}
THIRTY: list[Held] = [({"gpu_utilisation_percent": 30}, "n0", [0]), ({"gpu_utilisation_percent": 30}, "n0", [2])]
# two sockets of two GPUs: on n0 one GPU of each is idle, on n1 three GPUs
APART: list[Held] = [({}, "n0", [0]), ({}, "n0", [2]), ({}, "n1", [0])]
TALK, QUIET = ({"gpus": 2, "communication": Communication(weight=weight)} for weight in (1, 0))
SOCKETS = {"machines": [sockets(2, 2)]}
# one GPU a node: n0 has 700 left, n1 is idle
PARTLY: list[Held] = [({"gpu_milli": 300}, "n0", [0])]
SEVENTY = {"policy": Policy(fragmentation=Fragmentation(form="fgd", target=(TargetWorker(gpu_milli=700),))), **SINGLE}
WHOLE = {"policy": Policy(fragmentation=Fragmentation(form="fgd", target=(TargetWorker(),)))}
# jobs of profile x lose 300 to each other in a socket, y nothing to anybody
X, Y = {"profile": "x"}, {"profile": "y"}
LOUD = {
    "slowdowns": (Slowdown(profile="x", beside="x", gpu_thousandths=300, socket_thousandths=300),),
    "policy": Policy(interference=Interference(model="pairwise")),
    **SOCKETS,
}
SPREAD = {"gpus": 2, "communication": Communication(weight=1, spread_slowdown_thousandths=200)}

CASES: dict[str, tuple[str, dict[str, Any], list[Held], dict[str, Any], str, list[int] | None]] = {
    # a whole GPU, no core: 1 x 1/4 against 1/4 x 1/4; eight cores, a quarter GPU: 1/16 + 1/16 against 1/4 + 1/64
    "dot product, no core": ("dot_product", {}, UNEVEN, {}, "n1", None),
    "dot product, eight cores": ("dot_product", {"gpu_milli": 250, "cpu_millicores": 8000}, UNEVEN, {}, "n0", None),
    # the fuller shared GPU (500 left, on n2 600); idle GPUs of a node in use, as few as possible; an idle node
    "packing a half": ("gpu_packing", {"gpu_milli": 500}, MIXED, {"nodes": 4}, "n1", [1]),
    "packing six tenths": ("gpu_packing", {"gpu_milli": 600}, MIXED, {"nodes": 4}, "n2", [2]),
    "packing a whole": ("gpu_packing", {}, MIXED, {"nodes": 4}, "n1", None),  # as good on n2 and n3
    "packing four": ("gpu_packing", {"gpus": 4}, MIXED, {"nodes": 4}, "n0", None),
    # only its own kind, its kind among others, an idle node before other kinds
    "clustering a tenth": ("gpu_clustering", {"gpu_milli": 100}, MIXED, {"nodes": 4}, "n1", None),
    "clustering a whole": ("gpu_clustering", {}, MIXED, {"nodes": 4}, "n2", None),
    "clustering two": ("gpu_clustering", {"gpus": 2}, MIXED, {"nodes": 4}, "n3", None),
    "clustering three": ("gpu_clustering", {"gpus": 3}, MIXED, {"nodes": 4}, "n0", None),
    # f(1.4) = 2.2824, f(0.7) = 0.5696: 1/2 x 4/16 + 1/2 x 2.2824 = 1.266; 1/2 x 16/16 + 1/2 x 0.5696 = 0.785
    "horus goes by cost": ("horus", ASKS, BUSY, {**TWICE, **SINGLE}, "n1", [0]),
    "opportunistic goes by memory": ("obp", ASKS, BUSY, {**TWICE, **SINGLE}, "n0", [0]),  # 16 GiB free against 4
    # GPUs 0 and 2 are in use: a job of two gets the two cheapest
    **{
        f"{score}, two of a node": (
            score, {"gpus": 2, "gpu_utilisation_percent": 10}, THIRTY, {"nodes": 1, **TWICE}, "n0", [1, 3])
        for score in ("horus", "obp")
    },
    # by fit alone the job would use up n0, across its sockets; without traffic it does not matter where they are
    "close fit with traffic": ("close_fit", TALK, APART, SOCKETS, "n1", [2, 3]),
    "best fit with traffic": ("best_fit", TALK, APART, SOCKETS, "n0", [1, 3]),
    "close fit without traffic": ("close_fit", QUIET, APART, SOCKETS, "n0", [1, 3]),
    # workers of 700 are expected: on n0 400 would be left to nobody, on n1 700 serve one
    "fgd by the policy's target": ("fgd", {"gpu_milli": 300}, PARTLY, SEVENTY, "n1", [0]),
    "best fit whatever the target": ("best_fit", {"gpu_milli": 300}, PARTLY, SEVENTY, "n0", [0]),
    # twenty jobs of 700 and two of 300: 400 left serve the latter only; with two of 300 alone, n0 is as good
    "fgd by the jobs of the round": (
        "fgd", {"gpu_milli": 300}, PARTLY,
        {"others": tuple(job(f"o{i}", gpu_milli=700) for i in range(20)), **SINGLE}, "n1", [0]),
    "fgd among its like": ("fgd", {"gpu_milli": 300}, PARTLY, SINGLE, "n0", [0]),
    # whole GPUs are expected: 500 go beside 500, which are no use any more, not to an idle GPU
    "fgd on a GPU of the node": ("fgd", {"gpu_milli": 500}, [({"gpu_milli": 500}, "n1", [2])], WHOLE, "n1", [2]),
    # who disturbs goes to another socket, and beyond that to another node; who does not, where least is left
    "undisturbed, beside one": ("least_slowdown", Y, [(X, "n0", [0])], LOUD, "n0", [1]),
    "disturbed, another socket": ("least_slowdown", X, [(X, "n0", [0])], LOUD, "n0", [2]),
    "disturbed, another node": ("least_slowdown", X, [(X, "n0", [0]), (X, "n0", [2])], LOUD, "n1", [0]),
    # two GPUs with traffic: packed on the idle node; without traffic, where the node is fuller
    "a way apart counts as run time": (
        "least_slowdown", SPREAD, [(Y, "n0", [0]), (Y, "n0", [2])], LOUD, "n1", [0, 1]),
    "a way apart without traffic": (
        "least_slowdown", {"gpus": 2}, [(Y, "n0", [0]), (Y, "n0", [2])], LOUD, "n0", [1, 3]),
}  # fmt: skip
"""The score, what waits, what runs, the cluster and policy, and where the job goes."""


@pytest.mark.parametrize("name", CASES)
def test_where_a_job_goes(name: str) -> None:
    score, asks, held, fields, node, gpus = CASES[name]
    found = chosen(score, round_of(asks, *held, **fields))
    assert found == (node, found[1] if gpus is None else gpus)


class TestRandom:
    """By its seed repeatable, and everybody's turn."""

    def test_every_node_and_gpu_is_drawn(self) -> None:
        """Sixteen GPUs, 160 seeds: none stays out (it would by chance once in 2000 times)."""
        round_ = round_of({"gpu_milli": 500}, nodes=4)
        found = [chosen("random", round_, seed) for seed in range(160)]
        assert {(name, gpu) for name, (gpu,) in found} == {(f"n{n}", gpu) for n in range(4) for gpu in range(4)}
        assert found == [chosen("random", round_, seed) for seed in range(160)]

    def test_drawn_anew_for_every_job(self) -> None:
        """Forty small jobs of one class on eight nodes: no node has more than fifteen (once in 10,000 by chance)."""
        problem = compile_problem(instance(8, [job(f"j{i}", gpu_milli=100) for i in range(40)]))
        nodes = [placement.nodes[0] for placement in greedy(problem, np.arange(40), "random").allocation]
        assert max(np.bincount(nodes, minlength=8)) <= 15


def test_disturbed_and_undisturbed_jobs_score_differently() -> None:
    """Asked for after a job of profile y that wants the same: n0, with an x in each socket, is still no place."""
    held = [(X, "n0", [0]), (X, "n0", [2]), ({**Y, "gpus": 3}, "n2", [0, 1, 2])]
    slow = (Slowdown(profile="x", beside="x", socket_thousandths=300),)
    round_ = round_of(Y, *held, nodes=3, others=(job("w2", profile="x"),), slowdowns=slow, **SOCKETS)
    problem = compile_problem(round_)
    placed = greedy(problem, np.array([3, 4]), "least_slowdown").allocation
    assert [problem.node_ids[one.nodes[0]] for one in placed[3:]] == ["n2", "n1"]
