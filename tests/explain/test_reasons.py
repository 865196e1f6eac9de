"""Every reason to wait, in rounds small enough to see it, and the set of constraints behind it."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.plans import plan_for
from placeopt import BadInput, Instance, Plan, Policy, solve
from placeopt.build import instance, job, machine, node, option, running
from placeopt.explain import Explanation, explain
from placeopt.model import Domain, Queue, Quota, Split, Taint, Unplaced


def explained(round_: Instance, job_id: str, plan: Plan | None = None, time_limit_s: float = 60) -> Explanation:
    """Explain a job of the plan, or of the one that ``solve`` makes."""
    plan = solve(round_) if plan is None else plan
    return explain(round_, plan, job_id, isolation="thread", time_limit_s=time_limit_s)


def groups(found: Explanation) -> set[str]:
    """Return the conflict as a set."""
    return {constraint.group for constraint in found.conflict}


RACKS = (Domain(id="r0"), Domain(id="r1"))
HOMES = [node(f"n{i}", domain=f"r{i // 2}") for i in range(4)]
HELD, HALF, SMALL = job("held"), job("half", gpu_milli=500), [machine(gpus=1)]
EXCLUSIVE = Policy(share_mode="exclusive")


def on_homes(**fields: Any) -> Instance:
    """
    Four nodes of 4 V100 in two racks; a job holds one GPU of n0.

    No GPUs asked for, no model and no memory is wrong: so the number of GPUs stands in every conflict about GPUs.
    """
    return instance(HOMES, [HELD, job("j", **fields)], domains=RACKS, running=[running(HELD, [("n0", [0])])])


def beside_half(policy: Policy | None = None, **fields: Any) -> Instance:
    """A node of one GPU, of which a job holds half."""
    held = [running(HALF, [("n0", [0])])]
    return instance(1, [HALF, job("j", **fields)], machines=SMALL, running=held, policy=policy)


ONE_RACK, THREE_RACKS = (Split(level="rack", domains=1),), (Split(level="rack", domains=3),)
WAYS = (option("cpu", gpus=0, cpu_millicores=40_000, value=1), option("gpu", gpus=5, value=2))
CONFLICTS = [
    (on_homes(gpu_models=("A100",)), "gpu_count gpu_model"),
    (on_homes(gpu_memory_mib=20_000), "gpu_count gpu_memory"),
    (on_homes(cpu_millicores=33_000), "cpu"),
    (on_homes(memory_mib=300_000), "memory"),
    (on_homes(workers=9, gpus=2), "gpu_count gang"),
    (on_homes(workers=3, gpus=2, single_node=True), "gpu_count gang single_node"),
    (on_homes(workers=5, workers_per_node_max=1), "workers_per_node gang"),
    (on_homes(workers=5, gpus=2, splits=ONE_RACK), "gpu_count gang split:rack"),
    (on_homes(workers=2, gpus=0, splits=THREE_RACKS), "split:rack"),
    (on_homes(node_selector={"disk": "ssd"}), "node_selector"),
    (on_homes(gpus=4, nodes_allowed=("n0",), cpu_millicores=1), "gpu_count nodes_allowed"),
    (on_homes(nodes_allowed=("n0",), node_selector={"rack": "r1"}), "nodes_allowed node_selector"),
    (on_homes(utility_min_thousandths=500, utility_thousandths=400), "utility"),
    # 3000 MB/s a worker on an uplink of 75 % of 2000; in one node they would not talk outside
    (
        instance(
            2,
            [job("j", workers=2, network_bandwidth_mbps=3000)],
            machines=[machine(gpus=1, network_bandwidth_mbps=2000)],
        ),
        "network_bandwidth gang gpu_count",
    ),
    # a whole GPU cannot be had, a smaller share could; where a GPU takes one job, the number of jobs is the cause
    (beside_half(), "gpu_count gpu_share"),
    (beside_half(EXCLUSIVE, gpu_milli=500), "gpu_count jobs_per_gpu"),
    # one option lacks CPU, the other GPUs
    (instance(1, [job("j", options=WAYS)]), "cpu gpu_count"),
    # to let the job in it is enough to open either node
    (instance([node("n0", drained=True), node("n1", taints=(Taint(key="old"),))], [job("j")]), "drained taints"),
]


@pytest.mark.parametrize(("round_", "conflict"), CONFLICTS, ids=[words for _, words in CONFLICTS])
def test_conflicts(round_: Instance, conflict: str) -> None:
    """Just what cannot hold together, and no more."""
    found = explained(round_, "j")
    assert groups(found) == set(conflict.split())
    assert found.proven
    assert found.reason == found.plan_reason == ("policy" if conflict == "utility" else "conflict")


def test_conflict_of_one_demand() -> None:
    """8 GPUs a worker where machines have 4: with none of them it would fit, so the number of GPUs is all there is."""
    found = explained(instance(2, [job("j", gpus=8, cpu_millicores=1000)]), "j")
    assert (found.reason, found.plan_reason, found.beside, found.proven) == ("conflict", "conflict", "running", True)
    assert found.detail == "does not fit beside the running jobs that must stay: by GPU count alone"
    assert [(constraint.group, constraint.asks) for constraint in found.conflict] == [("gpu_count", "8 GPUs")]


def test_outvoted() -> None:
    """4 GPUs; two jobs of 2 GPUs worth 20 and 15 keep out one of 4 worth 30."""
    jobs = [job("a", gpus=2, value=20), job("b", gpus=2, value=15), job("big", gpus=4, value=30)]
    found = explained(instance(1, jobs), "big")
    assert (found.reason, found.beside) == ("outvoted", "plan")
    assert found.outvoted_by is not None
    assert [(rival.job, rival.value) for rival in found.outvoted_by.jobs] == [("a", 20), ("b", 15)]
    assert found.detail == "a and b hold the room it needs and are worth 35 together, more than its 30"


def test_outvoted_by_the_cheapest() -> None:
    """Two nodes of 4 GPUs, each with a job: the one worth less holds the room."""
    jobs = [job("a", gpus=4, value=20), job("b", gpus=4, value=10), job("c", gpus=3, value=5)]
    found = explained(instance(2, jobs), "c")
    assert found.detail == "b holds the room it needs and is worth 10, more than its 5"


def test_a_plan_that_can_be_improved() -> None:
    """Made by hand, not optimal: the sentence says so."""
    jobs = [job("a", gpus=4, value=1), job("b", gpus=4, value=9)]
    round_ = instance(1, jobs)
    found = explained(round_, "b", plan_for(round_, {"a": [("n0", range(4))]}))
    assert found.reason == "outvoted"
    assert found.detail.endswith("less than its 9: the plan can be improved")


def test_not_reached() -> None:
    """Left out of a plan that has room for it."""
    round_ = instance(1, [job("j", value=3)])
    plan = plan_for(round_, {}, limit="time")
    found = explained(round_, "j", plan)
    assert (found.reason, found.plan_reason, found.conflict) == ("not_reached", "outvoted", ())
    assert found.detail == "fits on node 'n0' beside the plan; the search did not get to it (stopped by time)"
    assert set(found.remedies.none.values()) == {"it fits as it is"}


def test_worth_nothing() -> None:
    """A job without value does not raise the plan's."""
    round_ = instance(1, [job("j", value=0)])
    found = explained(round_, "j", plan_for(round_, {}))
    assert found.reason == "outvoted"
    assert "worth nothing" in found.detail


@pytest.mark.parametrize("reason", ["policy", "postponed"])
def test_the_reason_of_the_plan_is_kept(reason: str) -> None:
    """It fits, but the plan kept it back for an order or for later: that word is passed on."""
    round_ = instance(1, [job("j")])
    plan = plan_for(round_, {}).model_copy(
        update={"unplaced": (Unplaced(job="j", reason=reason, detail="an earlier job does not fit"),)}
    )
    found = explained(round_, "j", plan)
    assert (found.reason, found.detail) == (reason, "an earlier job does not fit")


def test_quota() -> None:
    """A queue of 2 GPUs: one job of it runs, another of 2 GPUs waits though the node is free."""
    policy = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=2000)),))
    held = job("held", queue="q", value=1)
    jobs = [held, job("j", gpus=2, queue="q")]
    round_ = instance(1, jobs, policy=policy, running=[running(held, [("n0", [0])], preemptible=True)])
    found = explained(round_, "j")
    assert (found.reason, found.plan_reason) == ("policy", "policy")
    assert groups(found) == {"gpu_count", "queue"}
    assert found.remedies.preempt is not None
    assert [rival.job for rival in found.remedies.preempt.jobs] == ["held"]


def test_time_that_is_up() -> None:
    """Without time the plan's own word is passed on, and nothing is called proven."""
    round_ = instance(HOMES, [job("j", workers=5, gpus=2, splits=(Split(level="rack", domains=1),))], domains=RACKS)
    found = explained(round_, "j", time_limit_s=1e-6)
    assert not found.proven
    assert found.reason == "conflict"
    assert "as the plan says" in found.detail


def test_refusals() -> None:
    """A job that is not there, a plan that breaks rules, a limit that is none."""
    round_ = instance(1, [job("a", gpus=4), job("b", gpus=4)])
    plan = solve(round_)
    with pytest.raises(BadInput, match="no job 'x'"):
        explain(round_, plan, "x", time_limit_s=60)
    with pytest.raises(BadInput, match="time_limit_s"):
        explain(round_, plan, "a", time_limit_s=0)
    with pytest.raises(BadInput, match="only valid plans"):
        explain(round_, plan_for(round_, {name: [("n0", range(4))] for name in "ab"}), "a", time_limit_s=60)
