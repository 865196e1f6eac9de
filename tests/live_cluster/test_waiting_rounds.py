"""
Rounds over the waiting jobs alone: what runs is a load, and nothing else about the round differs.

Small random clusters change step by step. After each step the plan is compared with the best of all allocations, and
read by the referee.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given

from helpers.brute_force import combinations_up_to, optimum
from helpers.live_engine import engine_of, runs, step
from placeopt import Engine, Instance, PlaceoptError, Plan, Policy, Unsupported, audit, violations
from placeopt.build import instance, job, machine, node, running
from placeopt.model import Changes, Interference, Postpone, Queue, Quota
from placeopt.problem import State, compile_problem
from placeopt.terms import value
from strategies import Choice, choices, rounds

MOST = 3000
"""Combinations of placements up to which a round is compared with all of its allocations."""


def compare(engine: Engine, plan: Plan) -> None:
    """Judge a plan by the referee and the audit, and by all allocations where they are few."""
    snapshot = engine.snapshot
    assert violations(snapshot, plan) == []
    assert audit(snapshot, plan) == []
    stated = {entry.job for entry in (*plan.placements, *plan.unplaced)}
    assert set(plan.asked or ()) == stated == {one.id for one in snapshot.jobs} - set(runs(engine))
    problem = compile_problem(snapshot)
    if combinations_up_to(problem, 40) > MOST:
        return
    held = value(problem, State(problem).allocation())
    best = optimum(problem)[0] - held
    (level,) = plan.levels
    assert level.bound is not None
    assert level.objective <= best <= level.bound


@pytest.mark.parametrize("method", ["auto", "node-patterns", "stranding"])
@given(rounds() | rounds(changes=False, minima=False, resources=True), choices)
def test_plans_and_bounds_hold_for_the_whole_round(method: str, loaded: Instance, choice: Choice) -> None:
    """Whatever has happened before, and whatever the policy; rounds that need what runs are refused in words."""
    with engine_of(loaded) as engine:
        for turn in range(3):
            try:
                plan = engine.place(waiting_only=True, method=method, time_limit_s=0.3, deterministic=True)
            except Unsupported as refused:
                assert "waiting_only" in str(refused)  # noqa: PT017 - which rounds: test_rounds_that_need_running_jobs
                return
            compare(engine, plan)
            event(f"round {turn}")
            engine.commit(plan)
            assert set(runs(engine)) >= {entry.job for entry in plan.placements}
            step(choice, engine)


def crowded(seed: int) -> Instance:
    """Four nodes of four GPUs, two thirds busy, and more waiting jobs than room; CPU binds as well."""
    rng = np.random.default_rng(seed)
    jobs, held = [], []
    for n in range(4):
        free = list(range(4))
        while free and rng.random() < 0.8:
            count = int(rng.integers(1, min(len(free), 2) + 1))
            jobs.append(job(f"run-{len(jobs)}", gpus=count, value=int(rng.integers(1, 9)), cpu_millicores=count * 900))
            held.append(running(jobs[-1], [(f"n{n}", free[:count])]))
            free = free[count:]
    for i in range(9):
        count, workers = int(rng.integers(1, 3)), 1 + int(rng.random() < 0.2)
        cpu = int(rng.integers(3, 15)) * 100 * count
        jobs.append(job(f"w{i}", gpus=count, workers=workers, value=int(rng.integers(1, 9)), cpu_millicores=cpu))
    return instance(4, jobs, machines=[machine(gpus=4, cpu_millicores=4000)], running=held)


@pytest.mark.parametrize("seed", range(12))
def test_it_finds_the_value_of_the_whole_round(seed: int) -> None:
    """Both are proven optimal: an exact method over the waiting jobs, and over all."""
    with engine_of(crowded(seed)) as engine:
        problem = compile_problem(engine.snapshot)
        held = value(problem, State(problem).allocation())
        for _ in range(2):
            plan = engine.place(waiting_only=True, method="counts", time_limit_s=120)
            whole = engine.place(method="counts", warm=False, time_limit_s=120)
            assert whole.levels[0].objective == whole.levels[0].bound
            assert plan.levels[0].objective == plan.levels[0].bound == whole.levels[0].objective - held
            assert plan.status == "feasible"  # costs count under the policy and are not stated
            assert plan.gap is None
            engine.commit(plan)
            held += plan.levels[0].objective
            ends = engine.snapshot.running[seed % len(engine.snapshot.running)]
            record = engine.release(ends.job)
            held -= record.options[0].value


def test_the_same_changes_give_the_same_plans() -> None:
    """In deterministic mode a sequence of calls decides the same each time."""

    def told() -> list[str]:
        plans = []
        with engine_of(crowded(5)) as engine:
            for _ in range(3):
                plan = engine.place(waiting_only=True, deterministic=True)
                plans.append(plan.model_dump_json())
                engine.commit(plan)
                engine.release(engine.snapshot.running[1].job)
                engine.update(nodes={"n2": "drain"})
        return plans

    assert told() == told()


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (Policy(changes=Changes(moves_max=1)), "may be changed"),
        (Policy(postpone=Postpone(rule="utility")), "utility"),
        (Policy(postpone=Postpone(rule="lookahead")), "lookahead"),
        (Policy(interference=Interference(model="curve")), "curve"),
    ],
)
def test_rounds_that_need_running_jobs(policy: Policy, why: str) -> None:
    """They are refused, and say why."""
    held = job("r")
    of = instance(1, [held, job("w")], running=[running(held, [("n0", [0])], movable=True)], policy=policy)
    with engine_of(of) as engine, pytest.raises(Unsupported, match=why):
        engine.place(waiting_only=True)


def test_running_jobs_that_none_may_change_are_no_obstacle() -> None:
    """A policy that allows moves, where no running job does."""
    held = job("r")
    policy = Policy(changes=Changes(moves_max=1))
    with engine_of(1, [held, job("w")], running=[running(held, [("n0", [0])])], policy=policy) as engine:
        plan = engine.place(waiting_only=True)
        assert [entry.job for entry in plan.placements] == ["w"]


def test_a_limit_that_running_jobs_exceed_does_not_lower_the_bound() -> None:
    """A node shrank below what runs on it: nothing fits there, and that takes nothing from the node that is alike."""
    held = [job(f"r{i}", cpu_millicores=3000) for i in range(2)]
    machines = [machine(gpus=4, cpu_millicores=8000), machine("small", gpus=4, cpu_millicores=4000)]
    runs = [running(one, [("n0", [i])]) for i, one in enumerate(held)]
    waiting = [job(f"w{i}", cpu_millicores=3000, value=5) for i in range(4)]
    nodes = [node("n0"), node("n1", machine="small")]
    with engine_of(nodes, [*held, *waiting], machines=machines, running=runs) as engine:
        engine.update(nodes={"n0": engine.snapshot.cluster.nodes[0].model_copy(update={"machine": "small"})})
        plan = engine.place(waiting_only=True, time_limit_s=60)
        assert plan.levels[0].objective == 5
        assert plan.levels[0].bound is not None
        assert plan.levels[0].bound >= 5
        assert violations(engine.snapshot, plan) == []


@pytest.mark.parametrize("method", ["stranding", "node-patterns", "search"])
def test_a_quota_that_running_jobs_exceed_binds_no_other_queue(method: str) -> None:
    """One queue runs three GPUs of one: its jobs wait, and the bound is what those of the other queue are worth."""
    held = [job(f"r{i}", queue="full") for i in range(3)]
    runs = [running(one, [("n0", [i])]) for i, one in enumerate(held)]
    waiting = [job(f"{queue}{i}", value=5, queue=queue) for i in range(4) for queue in ("full", "open")]
    policy = Policy(queues=(Queue(id="full", quota=Quota(gpu_milli=1000)), Queue(id="open")))
    with engine_of(2, [*held, *waiting], running=runs, policy=policy) as engine:
        plan = engine.place(waiting_only=True, method=method, time_limit_s=60)
        assert {entry.job for entry in plan.placements} == {f"open{i}" for i in range(4)}
        assert (plan.levels[0].objective, plan.levels[0].bound) == (20, 20)


def test_only_nodes_with_room_are_used() -> None:
    """
    Five nodes are full; half a GPU is room for the smaller job; a node without CPU and a drained one take nothing.
    """
    held, runs = [], []
    for n in range(5):
        held.append(job(f"full{n}", gpus=2, cpu_millicores=10))
        runs.append(running(held[-1], [(f"n{n}", [0, 1])]))
    half, heavy = job("half", gpu_milli=500, cpu_millicores=10), job("heavy", gpus=1, cpu_millicores=4000)
    whole = job("whole", gpus=1, cpu_millicores=10)
    runs += [running(half, [("n5", [0])]), running(whole, [("n5", [1])]), running(heavy, [("n6", [0])])]
    nodes = [*(node(f"n{n}") for n in range(7)), node("n7", drained=True), node("n8")]
    waiting = [job("w0", gpu_milli=500, cpu_millicores=10), job("w1", gpus=2, cpu_millicores=20)]
    machines = [machine(gpus=2, cpu_millicores=4000)]
    with engine_of(nodes, [*held, half, whole, heavy, *waiting], machines=machines, running=runs) as engine:
        plan = engine.place(waiting_only=True, time_limit_s=60)
        assert {entry.job: entry.assignments[0].node for entry in plan.placements} == {"w0": "n5", "w1": "n8"}
        assert violations(engine.snapshot, plan) == []
        engine.commit(plan)
        assert engine.place(warm=False).unplaced == ()


def test_errors_are_those_of_other_rounds() -> None:
    """Wrong arguments, and plans that are stale."""
    with engine_of(crowded(1)) as engine:
        with pytest.raises(PlaceoptError):
            engine.place(waiting_only=True, method="nothing")
        plan = engine.place(waiting_only=True)
        engine.update(add_jobs=[job("late")])
        with pytest.raises(PlaceoptError, match="revision"):
            engine.commit(plan)
