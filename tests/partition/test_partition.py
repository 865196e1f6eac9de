"""A round in parts: every job and node in one, running jobs where they are, one checked plan of the whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.counted_clock import counted_clock
from made_rounds import generate
from placeopt import BadInput, Engine, Instance, Interrupted, audit, solve, solve_in_parts, violations
from placeopt.build import instance, job, machine, node, running
from placeopt.model import Domain, Gpu, Policy, Queue, Quota
from placeopt.parallel import run_parallel
from placeopt.partition import WAYS, split
from strategies import rounds

RACKS = (Domain(id="r0"), Domain(id="r1"))


def racked(*jobs: object, **fields: object) -> Instance:
    """Four nodes of two GPUs in two racks."""
    nodes = [node(f"n{i}", domain=f"r{i % 2}") for i in range(4)]
    return instance(nodes, jobs, machines=[machine(gpus=2)], domains=RACKS, **fields)


def test_a_share_of_the_cluster_is_one_of_the_whole() -> None:
    """Four of eight GPUs, all on one side: half of the cluster, all of its part, which was refused."""
    held = [job(f"h{i}", gpus=2, queue="q") for i in range(2)]
    queue = Queue(id="q", dominant_share_percent=40, borrow_percent=10, quota=Quota(memory_mib=5))
    round_ = racked(
        *held,
        job("w", queue="q"),
        job("x", gpus=2),
        running=[running(one, [(f"n{2 * i}", [0, 1])]) for i, one in enumerate(held)],
        policy=Policy(queues=(queue,)),
    )
    whole = Queue(id="q", quota=Quota(gpu_milli=4000, cpu_millicores=64_000, memory_mib=5))
    assert [part.policy.queues for part in split(round_, 2, "rack")] == [(whole,), (whole,)]
    plan = solve_in_parts(round_, parts=2, by="rack", jobs=1, time_limit_s=5)
    assert violations(round_, plan) == []
    assert [one.job for one in plan.unplaced] == ["w"]


@pytest.mark.parametrize("by", WAYS)
@given(round_=rounds(), seed=st.integers(0, 9))
def test_every_job_and_node_is_in_one_part(by: Any, round_: Instance, seed: int) -> None:
    """Running jobs where they are; the parts are lawful instances."""
    parts = split(round_, 2, by, seed)
    assert sorted(n.id for p in parts for n in p.cluster.nodes) == sorted(n.id for n in round_.cluster.nodes)
    assert sorted(j.id for p in parts for j in p.jobs) == sorted(j.id for j in round_.jobs)
    assert sorted(r.job for p in parts for r in p.running) == sorted(r.job for r in round_.running)
    for part in parts:
        Instance.model_validate(part.model_dump())


def test_jobs_go_where_they_may_run() -> None:
    """A list of allowed nodes is followed."""
    jobs = [job(f"j{i}", nodes_allowed=("n1",)) for i in range(3)]
    parts = split(racked(*jobs), 2, "rack")
    assert {j.id for p in parts for j in p.jobs if any(n.id == "n1" for n in p.cluster.nodes)} == {"j0", "j1", "j2"}
    assert all(j.conditions.nodes_allowed == ("n1",) for p in parts for j in p.jobs)


def test_types_are_dealt_evenly() -> None:
    """Two nodes of a type that all jobs need, two that none does: a part gets one of each."""
    kinds = [machine("dear", gpus=[Gpu(model="A")]), machine("idle", gpus=[Gpu(model="B")])]
    nodes = [node("a0", "dear"), node("a1", "dear"), node("b0", "idle"), node("b1", "idle")]
    round_ = instance(nodes, [job(f"j{i}", gpu_models=("A",)) for i in range(2)], machines=kinds)
    for seed in range(5):
        parts = split(round_, 2, seed=seed)
        assert [sorted(n.machine for n in p.cluster.nodes) for p in parts] == [["dear", "idle"]] * 2
        assert [len(p.jobs) for p in parts] == [1, 1]


def test_alike_parts_have_as_many_jobs_of_every_class() -> None:
    """Idle nodes of one kind: of each class no part has more than one job more than another."""
    idle = [node(f"n{i}") for i in range(8)]
    waiting = [job(f"j{size}-{i}", gpus=size, value=size) for size, n in ((1, 13), (2, 7), (4, 2)) for i in range(n)]
    parts = split(instance(idle, waiting, machines=[machine(gpus=4)]), 4, seed=3)
    assert [len(part.cluster.nodes) for part in parts] == [2] * 4
    for size, most, least in ((1, 4, 3), (2, 2, 1), (4, 1, 0)):
        counts = [sum(one.options[0].demand.gpus == size for one in part.jobs) for part in parts]
        assert sorted({most, least} | set(counts)) == [least, most], (size, counts)


def test_a_part_gets_jobs_in_proportion_to_what_is_free_for_them() -> None:
    """One rack has twice the free GPUs of the other; a job that is allowed in one rack only goes there."""
    nodes = [node(f"n{i}", domain="r0" if i < 4 else "r1") for i in range(6)]
    jobs = [job(f"j{i}") for i in range(30)] + [job("there", nodes_allowed=("n5",))]
    round_ = instance(nodes, jobs, machines=[machine(gpus=2)], domains=RACKS)
    parts = {len(part.cluster.nodes): {one.id for one in part.jobs} for part in split(round_, 2, "rack")}
    assert {size: len(ids - {"there"}) for size, ids in parts.items()} == {4: 20, 2: 10}
    assert "there" in parts[2]


def test_bad_arguments_are_reported_with_what_was_expected() -> None:
    """Before anything is built."""
    with pytest.raises(BadInput, match="parts: 0; expected 1 or more"):
        split(racked(), 0)
    with pytest.raises(BadInput, match="by: 'colour'; expected one of random, rack"):
        split(racked(), 2, "colour")
    with pytest.raises(BadInput, match="jobs: 0"):
        solve_in_parts(racked(), parts=2, jobs=0)


@pytest.mark.parametrize("by", WAYS)
def test_the_plan_is_checked_as_a_whole_and_never_far_below_greedy(by: Any) -> None:
    """Gangs of which few fit into a part: greedy on the whole runs then, too."""
    round_ = generate("gangs", jobs=12, nodes=8, gpus=4, seed=2)
    plan = solve_in_parts(round_, parts=2, by=by, jobs=1, mend="stranding", time_limit_s=20, deterministic=True)
    greedy = solve(round_, method="stranding", deterministic=True, time_limit_s=20)
    assert violations(round_, plan) == []
    assert audit(round_, plan) == []
    assert plan.levels[0].objective >= greedy.levels[0].objective
    assert plan.levels[0].bound is not None


@given(round_=rounds())
def test_small_rounds_with_all_features(engine: Engine, round_: Instance) -> None:
    """Queues, uplinks, look-ahead, changes and lost nodes as drawn; a bound never lies below an optimum."""
    by_work = {"time_limit_s": 1, "deterministic": True}
    plan = solve_in_parts(round_, parts=2, jobs=1, method="stranding", mend="fillings", **by_work)
    assert violations(round_, plan) == []
    assert audit(round_, plan) == []
    best = engine.solve(round_, **by_work)
    if best.status == "optimal":
        assert plan.levels[0].objective <= best.levels[0].objective <= plan.levels[0].bound


def test_the_policy_given_counts_in_parts_and_whole() -> None:
    """A queue that may hold one GPU; the round's own policy has none."""
    round_ = racked(*(job(f"j{i}", queue="q") for i in range(4)))
    policy = Policy(name="narrow", queues=(Queue(id="q", quota=Quota(gpu_milli=1000)),))
    plan = solve_in_parts(round_, parts=2, jobs=1, policy=policy, time_limit_s=20)
    assert (len(plan.placements), plan.policy.name) == (1, "narrow")
    assert violations(round_, plan) == []


def test_what_fits_in_no_part_is_placed_in_the_whole() -> None:
    """A gang over all nodes."""
    round_ = racked(job("wide", workers=8))
    plan = solve_in_parts(round_, parts=2, by="rack", jobs=1)
    assert [p.job for p in plan.placements] == ["wide"]


def test_parts_run_in_processes_of_their_own() -> None:
    """With two jobs at a time."""
    round_ = generate("uniform", jobs=8, nodes=4, gpus=4, seed=1)
    plan = solve_in_parts(round_, parts=2, jobs=2, time_limit_s=60)
    assert violations(round_, plan) == []
    assert any(stage.name == "joined" for stage in plan.stages)


def test_no_part_begins_once_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part began all the same, and took what a first plan takes; the rest does not depend on their number."""
    round_ = generate("varied", jobs=100, nodes=16, gpus=4, seed=5)
    readings = []
    for parts in (4, 16):
        with counted_clock(0.01) as clock:
            monkeypatch.setattr(time, "time", clock)
            plan = solve_in_parts(round_, parts=parts, jobs=1, method="stranding", mend="stranding", time_limit_s=0.5)
        readings.append(clock.readings)
        assert plan.limit == "time"
        assert violations(round_, plan) == []
    assert readings[1] < 1.5 * readings[0]


def test_nobody_waits_for_a_process_beyond_it() -> None:
    """Processes that took eleven seconds to start were waited for, whatever the limit."""
    assert list(run_parallel(time.sleep, [600, 600], 2, due=time.monotonic())) == []


ROUND = generate("varied", jobs=60, nodes=8, gpus=4, seed=5)


def bytes_of(**options: object) -> str:
    """Parts by patterns, whose linear programs are many; the limit is far off, so that work ends them."""
    fields = {"parts": 4, "method": "fillings", "mend": "fillings", "time_limit_s": 120.0, **options}
    plan = solve_in_parts(ROUND, seed=1, deterministic=True, **fields)
    assert plan.limit != "time"
    return plan.model_dump_json()


def test_on_one_and_on_two_processes() -> None:
    """Four parts on two processes end in any order."""
    assert bytes_of(jobs=1) == bytes_of(jobs=2)


def test_the_parts_that_have_ended_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C after the first of two."""

    def one_only(task: object, items: Iterator[object], width: int, *, ahead: bool, due: float) -> Iterator[object]:
        yield task(next(items))
        raise KeyboardInterrupt

    monkeypatch.setattr("placeopt.partition.solve.run_parallel", one_only)
    round_ = generate("uniform", jobs=20, nodes=8, gpus=4, seed=1)
    with pytest.raises(Interrupted) as caught:
        solve_in_parts(round_, parts=2, time_limit_s=20)
    plan = caught.value.plan
    assert violations(round_, plan) == []
    assert plan.limit == "user"
    assert plan.facts["jobs_placed"] > plan.facts["jobs_running"]
