"""
Whatever happens to a resident cluster, it is what a fresh load of its snapshot would be.

Random sequences of reports (updates, releases, failures, starts elsewhere), plans and commits on small random clusters.
After each step it decides as an engine does that has just loaded its snapshot, and the referee agrees.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator

from placeopt import Engine, Instance, PlaceoptError, Plan, audit, violations
from placeopt.build import placement
from placeopt.live_cluster import FLAGS
from placeopt.model import Domain, Job, Node
from placeopt.model import Placement as PlacementRecord
from strategies import rounds

STEPS = 6


def borrowed_jobs(rng: Generator, instance: Instance, taken: set[str]) -> list[Job]:
    """Jobs of the cluster's own kinds and some of new ones, under new names."""
    out = []
    for i in range(int(rng.integers(1, 3))):
        model = instance.jobs[int(rng.integers(len(instance.jobs)))] if instance.jobs else Job(id="plain")
        changed: dict[str, Any] = {"id": f"new-{len(taken) + i}-{rng.integers(10**6)}"}
        if rng.random() < 0.3:
            changed["arrival_ms"] = int(rng.integers(100))
            changed["tolerations"] = ("old",)
        if rng.random() < 0.2:
            changed["nodes_allowed"] = (instance.cluster.nodes[int(rng.integers(len(instance.cluster.nodes)))].id,)
        out.append(model.model_copy(update=changed))
    return out


def changed_node(rng: Generator, instance: Instance) -> dict[str, Node | str | None]:
    """A change of one node: drained, replaced, added or taken away."""
    nodes, machines = instance.cluster.nodes, instance.cluster.machines
    node = nodes[int(rng.integers(len(nodes)))]
    match int(rng.integers(6)):
        case 0:
            return {node.id: "drain"}
        case 1:
            return {node.id: "undrain"}
        case 2:
            return {node.id: None}
        case 3:
            return {node.id: node.model_copy(update={"machine": machines[int(rng.integers(len(machines)))].id})}
        case 4:
            domains = [None, *(domain.id for domain in instance.cluster.domains)]
            return {node.id: node.model_copy(update={"domain": domains[int(rng.integers(len(domains)))]})}
        case _:
            name = f"extra-{rng.integers(10**6)}"
            return {name: node.model_copy(update={"id": name, "drained": False})}


def stolen_place(rng: Generator, instance: Instance) -> tuple[PlacementRecord, Job]:
    """Where a job might run that someone else started, be there room or not, and its record, sometimes of a new one."""
    nodes = {node.id: node.machine for node in instance.cluster.nodes}
    gpus = {machine.id: len(machine.gpus) for machine in instance.cluster.machines}
    running = {held.job for held in instance.running}
    jobs = [job for job in instance.jobs if job.id not in running] or [Job(id="plain")]
    job = jobs[int(rng.integers(len(jobs)))]
    option = job.options[int(rng.integers(len(job.options)))]
    where = []
    for _ in range(option.workers):
        node = str(rng.choice(list(nodes)))
        where.append((node, rng.permutation(gpus[nodes[node]])[: option.demand.gpus].tolist()))
    if rng.random() < 0.5:
        job = job.model_copy(update={"id": f"adopted-{rng.integers(10**6)}"})
    return placement(job, where, option=option.id), job


def new_types(rng: Generator, instance: Instance) -> dict[str, Any]:
    """A new machine type, a domain and a node that has both."""
    name = f"new-{rng.integers(10**6)}"
    old = instance.cluster.machines[int(rng.integers(len(instance.cluster.machines)))]
    parent = rng.choice([None, *(domain.id for domain in instance.cluster.domains)])
    return {
        "machines": [old.model_copy(update={"id": name, "memory_mib": old.memory_mib + 1024})],
        "domains": [Domain(id=name, level=str(rng.choice(["pod", "rack"])), parent=parent)],
        "nodes": {name: Node(id=name, machine=name, domain=name)},
        "add_jobs": borrowed_jobs(rng, instance, {job.id for job in instance.jobs}),
    }


def step(rng: Generator, engine: Engine) -> None:
    """Do something to the cluster; what is refused must change nothing."""
    snapshot, revision = engine.snapshot, engine.revision
    waiting = [job.id for job in snapshot.jobs if job.id not in {held.job for held in snapshot.running}]
    work = [held for held in snapshot.running if not held.job.startswith("failed-gpu:")]
    try:
        match int(rng.integers(13)):
            case 0:
                engine.update(add_jobs=borrowed_jobs(rng, snapshot, {job.id for job in snapshot.jobs}))
            case 1:
                engine.update(remove_jobs=[job for job in waiting if rng.random() < 0.3])
            case 2:
                engine.update(nodes=changed_node(rng, snapshot))
            case 3:
                engine.update(
                    nodes=changed_node(rng, snapshot),
                    add_jobs=borrowed_jobs(rng, snapshot, {job.id for job in snapshot.jobs}),
                    remove_jobs=waiting[:1],
                    now_ms=snapshot.now_ms + 5,
                )
            case 4:
                for held in snapshot.running:
                    if rng.random() < 0.4:
                        engine.release(held.job)
            case 5:
                asked = [job for job in waiting if rng.random() < 0.6]
                engine.commit(judged(engine, engine.place(asked)), movable=True, shrinkable=True)
            case 6:
                for held in work:
                    if rng.random() < 0.3:
                        engine.undo(held.job)
            case 7:
                nodes = snapshot.cluster.nodes
                failed = nodes[int(rng.integers(len(nodes)))].id
                there = [h.job for h in work if failed in {a.node for a in h.assignments}]
                back = engine.fail_node(failed, remove=bool(rng.integers(2)))
                assert sorted(job.id for job in back) == sorted(there)
            case 8:
                where, job = stolen_place(rng, snapshot)
                new = None if job.id in waiting else job
                engine.adopt(where, job=new, started_ms=3, movable=True)
            case 9:
                held_jobs = [held.job for held in work]
                flags = {name: {flag: bool(rng.integers(2)) for flag in FLAGS} for name in held_jobs}
                engine.update(flags=flags, priority={name: int(rng.integers(-3, 4)) for name in [*waiting, *held_jobs]})
            case 10:
                engine.update(**new_types(rng, snapshot))
            case 11:
                changes = snapshot.policy.changes.model_copy(update={"moves_max": int(rng.integers(3))})
                mode, most = [("exclusive", None), ("fraction", None), ("overcommit", 3)][int(rng.integers(3))]
                update = {"changes": changes, "share_mode": mode, "jobs_per_gpu_max": most}
                engine.set_policy(snapshot.policy.model_copy(update=update))
            case _:
                plan = engine.place(method="stranding", deterministic=True)
                engine.commit(plan, preemptible=True, movable=[job for job in waiting if rng.random() < 0.5])
    except PlaceoptError:
        assert engine.revision == revision
        assert engine.snapshot.model_dump() == snapshot.model_dump()


def judged(engine: Engine, plan: Plan) -> Plan:
    """A plan for some jobs must pass the whole referee and the audit, too."""
    assert violations(engine.snapshot, plan) == []
    assert audit(engine.snapshot, plan) == []
    return plan


def decisions(engine: Engine) -> object:
    """Return what an engine decides: about each waiting job beside the others, and a whole round."""
    runs = {held.job for held in engine.snapshot.running}
    waiting = [job.id for job in engine.snapshot.jobs if job.id not in runs]
    found: list[object] = []
    for jobs, options in ((waiting, {}), (None, {"deterministic": True, "warm": False, "prove": False})):
        try:
            plan = engine.place(jobs, method="best-fit", **options)  # type: ignore[arg-type]
            found.append((plan.placements, plan.unplaced, plan.standing, plan.levels))
        except PlaceoptError as refused:
            found.append(str(refused))
    return found


def assert_as_if_fresh(engine: Engine) -> None:
    """The snapshot can be written and read, and an engine that loads it decides the same."""
    snapshot = engine.snapshot
    again = Instance.model_validate_json(snapshot.model_dump_json())
    assert again.digest == snapshot.digest
    with Engine(isolation="thread") as fresh:
        fresh.load(again)
        assert decisions(engine) == decisions(fresh)


@pytest.mark.parametrize("resources", [False, True])
@given(st.data(), st.integers(0, 2**32))
def test_a_changed_cluster_equals_a_fresh_one(resources: bool, data: st.DataObject, seed: int) -> None:
    """The promise of ``load``, of all reports, ``place`` and ``commit`` together."""
    rng = np.random.default_rng(seed)
    with Engine(isolation="thread") as engine:
        engine.load(data.draw(rounds(resources=resources)))
        for _ in range(STEPS):
            step(rng, engine)
            assert_as_if_fresh(engine)
