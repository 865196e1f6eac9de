"""
Rounds over the waiting jobs alone: what runs is a load, and nothing else about the round differs.

Small random clusters change step by step. After each step the plan is compared with the best of all allocations, and
read by the referee.
"""

from __future__ import annotations

import pytest
from hypothesis import event, given

from helpers.brute_force import combinations_up_to, optimum
from helpers.live_engine import engine_of, places, refuses, release, runs, step, update
from helpers.plans import NO_COSTS
from placeopt import Engine, Instance, Plan, Policy, StaleSnapshot, Unsupported, audit, generate, violations
from placeopt.build import instance, job, machine, node, running
from placeopt.model import Changes, Interference, Postpone, Queue, Quota
from placeopt.problem import State, compile_problem
from placeopt.terms import value
from strategies import Choice, choices, policies, rounds

CROWDED = generate("uniform", jobs=12, nodes=4, gpus=4, seed=5)
QUIET = {"changes": False, "minima": False, "policy": policies(interference=Interference())}
MOST = 3000
"""Combinations of placements up to which a round is compared with all of its allocations."""


def compare(engine: Engine, plan: Plan, *, exact: bool) -> None:
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
    if exact:
        assert level.objective == best
        assert plan.status == ("optimal" if snapshot.policy.weights == NO_COSTS else "feasible")  # costs are not stated


def beside_full_nodes(loaded: Instance) -> Instance:
    """Add nodes that are full: most of the cluster has no room, and is left out."""
    cluster, full = loaded.cluster, machine("full", gpus=1, cpu_millicores=0, memory_mib=0)
    nodes, held = [node(f"full{i}", "full") for i in range(8)], [job(f"full{i}", value=0) for i in range(8)]
    runs = [running(one, [(one.id, [0])]) for one in held]
    update = {"machines": (*cluster.machines, full), "nodes": (*cluster.nodes, *nodes)}
    cluster = cluster.model_copy(update=update)
    return loaded.model_copy(
        update={"cluster": cluster, "jobs": (*loaded.jobs, *held), "running": (*loaded.running, *runs)}
    )


@pytest.mark.parametrize("method", ["auto", "fillings", "stranding", "counts"])
@given(rounds() | rounds(**QUIET) | rounds(**QUIET, resources=True), choices)
def test_plans_and_bounds_hold_for_the_whole_round(method: str, loaded: Instance, choice: Choice) -> None:
    """Whatever has happened before, and whatever the policy; rounds that need what runs are refused in words."""
    with engine_of(beside_full_nodes(loaded) if choice.chance(0.5) else loaded) as engine:
        for turn in range(3):
            try:
                plan = engine.place(waiting_only=True, method=method, time_limit_s=0.3, deterministic=True)
            except Unsupported as refused:
                assert "waiting_only" in str(refused)  # noqa: PT017 - which rounds: test_rounds_that_need_running_jobs
                return
            compare(engine, plan, exact=method == "counts")
            event(f"round {turn}")
            engine.commit(plan)
            assert set(runs(engine)) >= {entry.job for entry in plan.placements}
            step(choice, engine)


def test_the_same_changes_give_the_same_plans() -> None:
    """In deterministic mode a sequence of calls decides the same each time."""

    def told() -> list[str]:
        plans = []
        with engine_of(CROWDED) as engine:
            for turn in range(3):
                plan = engine.place(waiting_only=True, deterministic=True)
                plans.append(plan.model_dump_json())
                engine.commit(plan)
                release(engine, runs(engine)[1])
                update(engine, nodes={CROWDED.cluster.nodes[turn].id: "drain"})
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
        update(engine, nodes={"n0": engine.snapshot.cluster.nodes[0].model_copy(update={"machine": "small"})})
        plan = engine.place(waiting_only=True, time_limit_s=60)
        assert plan.levels[0].objective == 5
        assert plan.levels[0].bound is not None
        assert plan.levels[0].bound >= 5
        assert violations(engine.snapshot, plan) == []


@pytest.mark.parametrize("method", ["stranding", "fillings", "search"])
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
    """Five are full; half a GPU and just the CPU left are room for ``w0``; without CPU, or drained, there is none."""
    held = [job(f"full{n}", gpus=2, cpu_millicores=10) for n in range(5)]
    runs = [running(one, [(f"n{n}", [0, 1])]) for n, one in enumerate(held)]
    half, heavy = job("half", gpu_milli=500, cpu_millicores=10), job("heavy", cpu_millicores=30)
    whole = job("whole", cpu_millicores=10)
    runs += [running(half, [("n5", [0])]), running(whole, [("n5", [1])]), running(heavy, [("n6", [0])])]
    nodes = [*(node(f"n{n}") for n in range(7)), node("n7", drained=True), node("n8")]
    waiting = [job("w0", gpu_milli=500, cpu_millicores=10), job("w1", gpus=2, cpu_millicores=20)]
    fields = {"machines": [machine(gpus=2, cpu_millicores=30)], "policy": Policy(jobs_per_gpu_max=2)}
    with engine_of(nodes, [*held, half, whole, heavy, *waiting], running=runs, **fields) as engine:
        plan = engine.place(waiting_only=True, time_limit_s=60)
        assert places(plan) == {"w0": [("n5", [0])], "w1": [("n8", [0, 1])]}
        assert violations(engine.snapshot, plan) == []
        engine.commit(plan)
        assert engine.place(warm=False).unplaced == ()


def test_errors_are_those_of_other_rounds() -> None:
    """Wrong arguments, and plans that are stale."""
    with engine_of(CROWDED) as engine:
        refuses(engine, [("no method", lambda one: one.place(waiting_only=True, method="nothing"))])
        plan = engine.place(waiting_only=True)
        update(engine, add_jobs=[job("late")])
        with pytest.raises(StaleSnapshot, match="revision"):
            engine.commit(plan)
