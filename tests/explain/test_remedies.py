"""
Remedies worked by hand: what each says, and what brute force does not try (`helpers.explanation_oracle`).

That each remedy does when it is granted, and nothing less, is a property of all explanations.
"""

from __future__ import annotations

import pytest

from placeopt import Instance, solve
from placeopt.build import instance, job, machine, node, option, running
from placeopt.explain import Explanation, explain
from placeopt.model import Changes, Domain, Policy, Split

RACKS = tuple(Domain(id=f"r{i}") for i in range(3))
ONE_RACK = (Split(level="rack", domains=1),)


def explained(round_: Instance) -> Explanation:
    """Explain job ``j`` of the plan that ``solve`` makes; everything in it must be proven."""
    found = explain(round_, solve(round_), "j", isolation="thread", time_limit_s=60)
    assert found.proven
    return found


def racks(per_rack: int, *splits: Split, **fields: object) -> Instance:
    """Three racks of ``per_rack`` nodes of 4 GPUs, and a gang that is split among them."""
    nodes = [node(f"n{i}", domain=f"r{i // per_rack}") for i in range(3 * per_rack)]
    return instance(nodes, [job("j", splits=splits, **fields)], domains=RACKS)


@pytest.mark.parametrize(
    ("round_", "workers", "racks_enough", "level"),
    [
        # 5 workers of 2 GPUs do not fit into one rack of two nodes, 4 do, and all 5 in two racks
        (racks(2, *ONE_RACK, workers=5, gpus=2), 4, [2], "cluster"),
        # 12 workers in one rack of 8 places: 2 racks are enough, 6 in each; equal parts stay equal
        (racks(2, Split(level="rack", domains=1, workers=12), workers=12), 8, [2], "cluster"),
        # 4 racks where there are 3: fewer would do, and the least of all is one
        (racks(1, Split(level="rack", domains=4), workers=4), None, [1], "node"),
        # 6 GPUs of 3 workers on one node of 4: a rack of two nodes holds them
        (racks(2, workers=3, gpus=2, single_node=True), 2, [], "rack"),
    ],
)
def test_gangs(round_: Instance, workers: int | None, racks_enough: list[int], level: str) -> None:
    """Fewer workers, another number of racks, and the first level that takes all of them."""
    asked, found = round_.jobs[0].options[0].workers, explained(round_).remedies
    stated = None if found.workers_max is None else (found.workers_max.workers, found.workers_max.asked)
    assert stated == (None if workers is None else (workers, asked))
    assert [(one.level, one.domains) for one in found.domains_min] == [("rack", count) for count in racks_enough]
    assert found.level == level
    assert found.none["preempt"] == "no running job is preemptible"
    if not racks_enough:
        assert found.none["domains_min"] == "it asks for no number of domains"


def test_elastic_jobs_and_several_options() -> None:
    """Elastic 3 to 6 workers on a node of 2 GPUs: 2 workers would fit; the other option asks for 5 GPUs a worker."""
    ways = (option("many", workers=6, workers_min=3, value=3, single_node=True), option("one", gpus=5, value=9))
    found = explained(instance(1, [job("j", options=ways)], machines=[machine(gpus=2)])).remedies
    assert found.workers_max is not None
    assert (found.workers_max.option, found.workers_max.workers, found.workers_max.asked) == ("many", 2, 3)
    assert found.level is None
    assert found.none["level"] == "it does not fit into the whole cluster, however its workers are distributed"


@pytest.mark.parametrize(
    ("may_go", "changes", "stated"),
    [
        ("abcd", {}, (["b", "c"], 4, False)),  # worth 4 together, less than a
        ("abd", {}, (["a"], 5, False)),
        ("", {}, None),
        ("abcd", {"preemption_price": 2}, (["a"], 7, False)),  # at 2 a job, b and c cost 8
        ("abcd", {"preemptions_max": 2}, (["b", "c"], 4, True)),
        ("abcd", {"last_submitted_first": True}, (["d"], 9, False)),  # whoever stops, d stops first, and is enough
    ],
)
def test_jobs_to_preempt(may_go: str, changes: dict[str, int], stated: tuple[list[str], int, bool] | None) -> None:
    """Three nodes of 4 GPUs, full: a worth 5 on n0, b and c worth 2 each on n1, d worth 9 on n2; j wants 4 GPUs."""
    rows = [("a", 4, 5, "n0", 0), ("b", 2, 2, "n1", 0), ("c", 2, 2, "n1", 2), ("d", 4, 9, "n2", 0)]
    jobs = [job(name, gpus=gpus, value=value, arrival_ms=i) for i, (name, gpus, value, _, _) in enumerate(rows)]
    runs = [
        running(one, [(at, range(first, first + gpus))], preemptible=name in may_go)
        for one, (name, gpus, _, at, first) in zip(jobs, rows, strict=True)
    ]
    policy = Policy(changes=Changes(**changes))
    round_ = instance(3, [*jobs, job("j", gpus=4, value=1)], running=runs, policy=policy)
    found = explained(round_).remedies
    preempt = found.preempt
    assert (preempt and ([one.job for one in preempt.jobs], preempt.price, preempt.allowed)) == stated
    assert ("preempt" in found.none) == (stated is None)


def test_preempting_for_bandwidth() -> None:
    """
    Uplinks of 1000, 750 of them for GPU jobs. A job of two workers talks at 500 across both nodes; so would this one.

    GPUs are free. A worthless job holds one as well, but stopping it is of no use.
    """
    box = machine(gpus=4, network_bandwidth_mbps=1000)
    talker, quiet = job("talker", workers=2, network_bandwidth_mbps=500, value=7), job("quiet", value=0)
    wanted = job("j", workers=2, network_bandwidth_mbps=500, workers_per_node_max=1)
    places = ((talker, [("n0", [0]), ("n1", [0])]), (quiet, [("n0", [1])]))
    runs = [running(one, where, preemptible=True) for one, where in places]
    found = explained(instance(2, [talker, quiet, wanted], machines=[box], running=runs))
    assert {constraint.group for constraint in found.conflict} == {"network_bandwidth", "gang", "workers_per_node"}
    assert found.remedies.preempt is not None
    assert ([one.job for one in found.remedies.preempt.jobs], found.remedies.preempt.price) == (["talker"], 7)
