"""
What runs beyond a limit, or on what is gone, stands.

One odd thing never stops a round: it is listed, gets no worse, and is in the way of new starts only where they would
add to it. What the referee says of it: ``tests/check/test_what_stands.py``.
"""

from typing import Any

import pytest

from placeopt import BadInput, Engine, Plan, audit
from placeopt.build import instance, job, machine, node, option, running
from placeopt.check import judge
from placeopt.model import Changes, Job, Policy, Queue, Quota, Running, Weights

NO_COST = Policy(name="plain", weights=Weights(communication=0, interference=0, fragmentation=0))
Stands = tuple[str | None, str, str | None]
"""Job, rule, node."""


def solved(engine: Engine, jobs: list[Job], runs: list[Running], policy: dict[str, Any], **fields: Any) -> Plan:
    """Solve a round of one node under a policy without costs, and let referee and audit read the plan."""
    round_ = instance([node("n0")], jobs, running=runs, policy=NO_COST.model_copy(update=policy), **fields)
    plan = engine.solve(round_, time_limit_s=30)
    assert judge(round_, plan).violations == []
    assert audit(round_, plan) == []
    assert plan.status == "optimal"
    return plan


QUOTA = {"queues": (Queue(id="q", quota=Quota(gpu_milli=1000)), Queue(id="r"))}
SHARE = {"queues": (Queue(id="q", dominant_share_percent=50),)}
TWO_A_GPU = {"share_mode": "overcommit", "jobs_per_gpu_max": 2}
MINE, OTHER = job("mine", queue="q"), job("other", queue="r")
CORE, NONE = job("core", cpu_millicores=1), job("none")
EACH: dict[str, tuple[Job, list[tuple[str, list[int]]], list[Job], dict[str, Any], list[str], Stands]] = {
    # queue q holds 2 GPUs and may now hold 1: nobody of q starts, others do
    "quota": (job("held", gpus=2, queue="q"), [("n0", [0, 1])], [MINE, OTHER], QUOTA, ["other"],
              ("held", "queue_quota", None)),
    # half of 8 GPUs was 4; of the 4 that are left it is 2, and the queue holds 3
    "share": (job("held", gpus=3, queue="q"), [("n0", [0, 1, 2])], [MINE], SHARE, [], ("held", "queue_share", None)),
    # 10 of 8 cores are held: a job that needs a core waits, one that needs none starts beside
    "cores": (job("held", cpu_millicores=10_000), [("n0", [0])], [CORE, NONE], {}, ["none"], ("held", "cpu", "n0")),
    # GPUs hold more memory than they have: whoever asks for memory waits, whoever does not may share them
    "memory": (job("held", gpus=4, gpu_memory_mib=99_000), [("n0", [0, 1, 2, 3])],
               [job("some", gpu_memory_mib=1), job("none", gpus=4)], TWO_A_GPU, ["none"],
               ("held", "gpu_memory", "n0")),
    # GPU 4 of a node that lists 0 to 3 is kept by that name; three of the four are free, late waits
    "GPU": (job("held", gpus=2), [("n0", [3, 4])],
            [job("pair", gpus=2, value=2), job("other", value=2), job("late")], {}, ["pair", "other"],
            ("held", "gpu_indexes", "n0")),
    # one worker is on a node that is not listed; the other holds what it holds
    "node": (job("held", workers=2, gpus=2), [("n0", [0, 1]), ("gone", [6, 7])],
             [job("pair", gpus=2), job("four", gpus=4)], {}, ["pair"], ("held", "unknown_node", "gone")),
}  # fmt: skip


@pytest.mark.parametrize("name", EACH)
def test_each_limit(engine: Engine, name: str) -> None:
    """By hand: what stands, who starts all the same, and who does not."""
    held, where, waiting, policy, starts, stands = EACH[name]
    runs = [running(held, where)]
    plan = solved(engine, [held, *waiting], runs, policy, machines=[machine(cpu_millicores=8000)])
    assert [placed.job for placed in plan.placements] == ["held", *starts]
    assert plan.facts["gpu_milli_capacity"] == 4000
    assert [part.gpus.keys() for part in plan.placements[0].assignments] == [{*map(str, gpus)} for _, gpus in where]
    assert {(one.job, one.rule, one.node) for one in plan.standing} == {stands}
    if name == "quota":
        assert (
            plan.standing[0].detail == "queue 'q': 2000 of 1000 gpu_milli (quota 1000, 0 borrowed) held by job 'held'"
        )


HALVES = [job(name, gpu_milli=500) for name in ("a", "b", "new")]


def test_a_policy_that_lets_fewer_share_a_gpu(engine: Engine) -> None:
    """Two halves of a GPU stand under a policy of one job a GPU; a third job gets another GPU."""
    runs = [running(one, [("n0", [0])], milli=500) for one in HALVES[:2]]
    plan = solved(engine, HALVES, runs, {"share_mode": "exclusive"})
    assert plan.placements[2].assignments[0].gpus.keys() == {"1"}
    assert [(one.job, one.rule, one.node) for one in plan.standing] == [(None, "gpu_exclusive", "n0")]


def test_what_stands_within_its_limits_is_not_listed(engine: Engine) -> None:
    assert solved(engine, [NONE], [running(NONE, [("n0", [0])])], {}).standing == ()


@pytest.mark.parametrize("mode", ["fraction", "exclusive"])
def test_what_contradicts_itself_is_bad_input(engine: Engine, mode: str) -> None:
    """Two jobs cannot each hold all of one GPU without sharing it, in whatever mode shares bind."""
    jobs = [job("a"), job("b")]
    with pytest.raises(BadInput, match=r"running placements: gpu_(share|exclusive)"):
        solved(engine, jobs, [running(one, [("n0", [0])]) for one in jobs], {"share_mode": mode})


@pytest.mark.parametrize(("cores", "stopped"), [(3000, ["a"]), (4000, [])])
def test_a_stopped_job_makes_room_within_the_limit(engine: Engine, cores: int, stopped: list[str]) -> None:
    """Held are 10 of 8 cores in two halves. Stopping one leaves 5, so a job of 3 cores starts, and none of 4."""
    a, b = (job(name, cpu_millicores=5000, value=1) for name in "ab")
    runs = [running(a, [("n0", [0])], preemptible=True), running(b, [("n0", [1])])]
    jobs = [a, b, job("new", cpu_millicores=cores, value=9)]
    policy = {"changes": Changes(preemptions_max=1)}
    plan = solved(engine, jobs, runs, policy, machines=[machine(cpu_millicores=8000)])
    assert [one.job for one in plan.preempted] == stopped
    assert bool(plan.standing) is not bool(stopped)


def test_jobs_beyond_what_may_share_a_gpu_stay(engine: Engine) -> None:
    """No model has a form for leaving such a GPU, so the referee refuses what the engine cannot offer."""
    a, b = (job(name, gpu_milli=500, value=1) for name in "ab")
    runs = [running(one, [("n0", [0])], milli=500, preemptible=True) for one in (a, b)]
    new = job("new", options=(option(gpus=4, value=100),))
    plan = solved(engine, [a, b, new], runs, {"share_mode": "exclusive", "changes": Changes(preemptions_max=2)})
    assert plan.preempted == ()


@pytest.mark.parametrize("name", ["GPU", "node"])
def test_a_tracked_cluster_names_what_is_gone_as_the_reading_does(engine: Engine, name: str) -> None:
    """Inside, a GPU that is gone has another number."""
    held, where, waiting, policy, _, stands = EACH[name]
    round_ = instance(
        [node("n0")],
        [held, *waiting],
        running=[running(held, where)],
        policy=NO_COST.model_copy(update=policy),
        machines=[machine(cpu_millicores=8000)],
    )
    engine.load(round_)
    plan = engine.place(time_limit_s=10)
    assert [(one.job, one.rule, one.node) for one in plan.standing] == [stands]
    assert plan.facts["gpu_milli_capacity"] == 4000
    assert [part.gpus.keys() for part in plan.placements[0].assignments] == [{*map(str, gpus)} for _, gpus in where]
