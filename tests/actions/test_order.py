"""Actions of a plan: in every order that ``after`` allows no limit is broken on the way, and the end is the plan."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from helpers.brute_force import placements
from helpers.plan_records import plan_of
from helpers.small_rounds.draw import random_round
from placeopt import BadInput, plan_actions
from placeopt.actions import Action
from placeopt.check import judge, violations
from placeopt.check.case import workers_by_rank
from placeopt.model import (
    Assignment,
    Changes,
    Cluster,
    Gpu,
    Instance,
    InstanceRef,
    Job,
    JobOrigin,
    Level,
    Machine,
    Moved,
    Node,
    Option,
    Origin,
    Placement,
    Plan,
    PolicyRef,
    Preempted,
    Running,
    Shrunk,
    Unplaced,
    WorkerGpus,
)
from placeopt.problem import Move, State, compile_problem
from placeopt.terms.rules import fits

ROUNDS = 80


def changeable(instance: Instance) -> Instance:
    """Allow every change of what runs."""
    running = tuple(
        held.model_copy(update={"movable": True, "shrinkable": True, "preemptible": True}) for held in instance.running
    )
    changes = Changes(moves_max=9, shrinks_max=9, preemptions_max=9)
    policy = instance.policy.model_copy(update={"changes": changes})
    return instance.model_copy(update={"running": running, "policy": policy})


def any_plan(instance: Instance, rng: np.random.Generator) -> Plan | None:
    """Place jobs at random, wherever they run now; None if a rule about changes refuses it."""
    problem = compile_problem(instance)
    state = State(problem, (None,) * problem.num_jobs)
    for job in rng.permutation(problem.num_jobs).tolist():
        open_to = [placement for placement in placements(problem, job) if fits(state, job, placement)]
        if open_to and rng.random() < 0.9:
            state.apply(Move(job, open_to[int(rng.integers(len(open_to)))]))
    plan = plan_of(problem, tuple(state.placements))
    return None if violations(instance, plan) else plan


def order_of(actions: tuple[Action, ...], rng: np.random.Generator) -> list[int]:
    """Return the numbers of the actions in some order in which each comes after those that it names."""
    order: list[int] = []
    while len(order) < len(actions):
        ready = [n for n, action in enumerate(actions) if n not in order and set(action.after) <= set(order)]
        order.append(ready[int(rng.integers(len(ready)))])
    return order


def at_requests(instance: Instance, running: Iterable[Running]) -> Instance:
    """Let these jobs run, with what they request: grants above it give way to whatever starts beside them."""
    milli = {(job.id, option.id): option.demand.gpu_milli for job in instance.jobs for option in job.options}
    held = []
    for one in running:
        share = milli[one.job, one.option]
        assignments = tuple(at.model_copy(update={"gpus": dict.fromkeys(at.gpus, share)}) for at in one.assignments)
        held.append(one.model_copy(update={"assignments": assignments}))
    return instance.model_copy(update={"running": tuple(held)})


def standing(instance: Instance) -> set[tuple[str | None, str, str | None]]:
    """Return the limits that what runs breaks; the referee finds nothing else wrong."""
    problem = compile_problem(instance)
    judged = judge(instance, plan_of(problem, tuple(problem.running.get(job) for job in range(problem.num_jobs))))
    assert judged.violations == []
    return {(entry.job, entry.rule, entry.node) for entry in judged.standing}


def test_room_is_free_before_it_is_used() -> None:
    rng = np.random.default_rng(20)
    seen = {"start": 0, "move": 0, "shrink": 0, "preempt": 0, "ring": 0, "after": 0}
    for _ in range(ROUNDS):
        instance = changeable(random_round(rng, changes=True, minima=False, named=bool(rng.random() < 0.3)))
        plan = any_plan(instance, rng)
        if plan is None:
            continue
        actions = plan_actions(instance, plan)
        then = {placement.job: placement for placement in plan.placements}
        before = standing(at_requests(instance, instance.running))
        for _ in range(3):
            running = {held.job: held for held in instance.running}
            for number in order_of(actions, rng):
                action = actions[number]
                if action.do == "preempt":
                    del running[action.job]
                else:
                    assert (action.do == "start") == (action.job not in running)
                    placement = then[action.job]
                    running[action.job] = Running(**{name: getattr(placement, name) for name in Placement.model_fields})
                assert standing(at_requests(instance, running.values())) <= before
            assert {job: workers_by_rank(held) for job, held in running.items()} == {
                job: workers_by_rank(placement) for job, placement in then.items()
            }
        for action in actions:
            seen[action.do] += 1
            seen["after"] += bool(action.after)
        seen["ring"] += len(actions) > len({action.job for action in actions})
    assert min(seen.values()) > 0, seen


def two_jobs() -> Instance:
    """Two jobs of two workers run on two nodes of two GPUs, and every change is allowed."""
    machine = Machine(id="m", gpus=(Gpu(model="a"), Gpu(model="a")), cpu_millicores=1000, memory_mib=100)
    nodes = tuple(Node(id=name, machine="m") for name in ("n0", "n1"))
    pods = tuple(Origin(name=f"team/pod-{rank}", id=f"uid-{rank}") for rank in range(2))
    jobs = tuple(
        Job(
            id=name,
            options=(Option(workers=2, workers_min=1),),
            origin=JobOrigin(name="train", id=str(number), workers=pods),
        )
        for number, name in enumerate(("a", "b"))
    )
    running = tuple(
        Running(job=job.id, option="default", assignments=(assignment(node, (0, 0), (1, 1)),))
        for job, node in zip(jobs, ("n0", "n1"), strict=True)
    )
    cluster = Cluster(machines=(machine,), nodes=nodes)
    return changeable(Instance(cluster=cluster, jobs=jobs, running=running))


def assignment(node: str, *workers: tuple[int, int]) -> Assignment:
    """Return what workers of one GPU, given by rank and GPU, hold on a node."""
    return Assignment(
        node=node,
        gpus={str(gpu): 1000 for _, gpu in workers},
        workers=tuple(WorkerGpus(rank=rank, gpus=(gpu,)) for rank, gpu in workers),
    )


def plan_for(instance: Instance, placed: dict[str, Assignment], **changes: object) -> Plan:
    """Return a plan in which jobs stand on one node each."""
    policy = instance.policy
    return Plan(
        instance=InstanceRef(name=instance.name, digest=instance.digest, revision=instance.revision),
        policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
        status="feasible",
        limit="none",
        levels=(Level(name="value", sense="max", objective=2, bound=None),),
        gap=None,
        placements=tuple(Placement(job=job, option="default", assignments=(at,)) for job, at in placed.items()),
        **changes,
    )


def test_a_ring_is_broken_by_a_stop() -> None:
    """Two jobs change places: one stops, the other moves, the first starts."""
    instance = two_jobs()
    moved = tuple(
        Moved(**{"job": job, "from": (a,), "to": (b,)}) for job, a, b in (("a", "n0", "n1"), ("b", "n1", "n0"))
    )
    placed = {"a": assignment("n1", (0, 0), (1, 1)), "b": assignment("n0", (0, 0), (1, 1))}
    actions = plan_actions(instance, plan_for(instance, placed, moved=moved))
    assert [(action.do, action.job, action.after) for action in actions] == [
        ("preempt", "b", ()),
        ("move", "a", (0,)),
        ("start", "b", (0, 1)),
    ]
    assert [part.node for part in actions[1].leaves] == ["n0", "n0"]
    assert [part.node for part in actions[1].parts] == ["n1", "n1"]


def test_workers_that_stay_keep_their_names() -> None:
    """Job a keeps one of its workers, and b stops: what goes is named by the rank that it had."""
    instance = two_jobs()
    plan = plan_for(
        instance,
        {"a": assignment("n0", (0, 0))},
        shrunk=(Shrunk(job="a", workers=1),),
        preempted=(Preempted(job="b", freed_gpu_milli=2000),),
        unplaced=(Unplaced(job="b", reason="outvoted", detail="stopped"),),
    )
    stop, shrink = plan_actions(instance, plan)
    assert (stop.do, stop.job, stop.parts, len(stop.leaves)) == ("preempt", "b", (), 2)
    assert (shrink.do, shrink.job, shrink.origin) == ("shrink", "a", Origin(name="train", id="0"))
    (stays,), (goes,) = shrink.parts, shrink.leaves
    assert (stays.rank, stays.gpus, stays.origin) == (0, (0,), Origin(name="team/pod-0", id="uid-0"))
    assert (goes.rank, goes.gpus, goes.origin) == (1, (1,), Origin(name="team/pod-1", id="uid-1"))


def test_what_stays_has_no_action() -> None:
    instance = two_jobs()
    placed = {held.job: held.assignments[0] for held in instance.running}
    assert plan_actions(instance, plan_for(instance, placed)) == ()


def test_a_plan_that_breaks_a_rule_is_refused() -> None:
    instance = two_jobs()
    with pytest.raises(BadInput, match="neither in placements nor in unplaced"):
        plan_actions(instance, plan_for(instance, {}))
