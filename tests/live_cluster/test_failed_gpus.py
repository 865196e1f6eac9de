"""``fail_gpu`` and ``repair_gpu``: a GPU takes no work until it is repaired, in every plan and bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_random_changes import assert_as_if_fresh, step

from helpers.kubernetes_objects import node as k8s_node
from helpers.kubernetes_objects import pod
from helpers.plans import plan_for
from placeopt import BadInput, Engine, Instance, StaleSnapshot, Unsupported, solve, violations
from placeopt.build import instance, job, machine, node, running
from placeopt.formats import dumps, loads, read_kubernetes
from placeopt.live_cluster import changes_between
from strategies import rounds

GANG = job("gang", workers=2, gpus=4)
SMALL, FIRST, WIDE = job("small", gpus=1), job("first", gpus=2), job("wide", gpus=4)


def busy(**fields: Any) -> Instance:
    """Three nodes of 4 GPUs; a gang runs on the first two, a small job on the third, two jobs wait."""
    runs = [running(GANG, [("n0", range(4)), ("n1", range(4))]), running(SMALL, [("n2", [0])])]
    return instance(3, [GANG, SMALL, FIRST, WIDE], running=runs, **fields)


def failed_id(node: str, gpu: int) -> str:
    """Id of the job that stands for a failed GPU."""
    return f"failed-gpu:{node}:{gpu}"


def engine_of(loaded: Instance) -> Engine:
    engine = Engine(isolation="thread")
    engine.load(loaded)
    return engine


def test_the_whole_gang_waits_again() -> None:
    """Its other GPUs are free, the failed one is not, and a plan made before says what happened."""
    with engine_of(busy()) as engine:
        old = engine.place(["first"])
        assert engine.fail_gpu("n0", 2) == (GANG,)
        assert engine.revision == old.instance.revision + 1
        with pytest.raises(StaleSnapshot, match="GPU 2 of node 'n0' failed and job 'gang' stopped"):
            engine.commit(old)
        assert_as_if_fresh(engine)
        assert engine.place(["gang"]).unplaced[0].job == "gang"
        plan = engine.place(["first", "wide"])
        assert {p.job: p.assignments[0].node for p in plan.placements}["wide"] == "n1"
        assert all(gpu != "2" for p in plan.placements for a in p.assignments if a.node == "n0" for gpu in a.gpus)
        engine.commit(plan)
        engine.repair_gpu("n0", 2)
        assert_as_if_fresh(engine)
        assert [held.job for held in engine.snapshot.running] == ["small", "first", "wide"]
        assert not any(job.id.startswith("failed-gpu:") for job in engine.snapshot.jobs)


def test_what_is_refused_changes_nothing() -> None:
    """Unknown GPUs, one that failed already; jobs that stand for failed GPUs are changed by repair alone."""
    with engine_of(busy()) as engine:
        engine.fail_gpu("n2", 3)
        name = failed_id("n2", 3)
        for call, words in (
            (lambda: engine.fail_gpu("n9", 0), "no node 'n9'"),
            (lambda: engine.fail_gpu("n2", 4), "no GPU 4 on node 'n2'; it has 4"),
            (lambda: engine.fail_gpu("n2", -1), "no GPU -1"),
            (lambda: engine.fail_gpu("n2", 3), "has failed already"),
            (lambda: engine.repair_gpu("n2", 2), "has not failed"),
            (lambda: engine.undo(name), "repair_gpu ends it"),
            (lambda: engine.update(flags={name: {"movable": True}}), "does not run"),
        ):
            before, revision = engine.snapshot.model_dump(), engine.revision
            with pytest.raises(BadInput, match=words):
                call()
            assert (engine.snapshot.model_dump(), engine.revision) == (before, revision)
        with pytest.raises(Unsupported, match="overcommit"):
            engine.set_policy(
                engine.snapshot.policy.model_copy(update={"share_mode": "overcommit", "jobs_per_gpu_max": 2})
            )
        assert_as_if_fresh(engine)
    policy = busy().policy.model_copy(update={"share_mode": "overcommit", "jobs_per_gpu_max": 2})
    with engine_of(busy(policy=policy)) as engine, pytest.raises(Unsupported, match="drain the node"):
        engine.fail_gpu("n2", 3)


def test_its_node_fails_goes_or_shrinks() -> None:
    """A failed node keeps its failed GPUs for later; they go with the node, or with hardware that lacks them."""
    with engine_of(busy()) as engine:
        engine.fail_gpu("n2", 0)
        engine.fail_gpu("n2", 3)
        assert engine.fail_node("n2") == ()
        engine.update(nodes={"n2": "undrain"})
        assert engine.place(["first"]).placements[0].assignments[0].gpus.keys() == {"1", "2"}
        engine.update(machines=[machine("two", 2)])
        engine.update(nodes={"n2": node("n2", "two")})
        assert [held.job for held in engine.snapshot.running] == ["gang", failed_id("n2", 0)]
        assert_as_if_fresh(engine)
        engine.update(nodes={"n2": None})
        assert [held.job for held in engine.snapshot.running] == ["gang"]
        assert_as_if_fresh(engine)
        engine.fail_gpu("n1", 1)
        assert [job.id for job in engine.fail_node("n1", remove=True)] == []
        assert not any(job.id.startswith("failed-gpu:") for job in engine.snapshot.jobs)
        assert_as_if_fresh(engine)


def test_the_referee_knows_it() -> None:
    """A plan that uses the GPU is refused, in the whole and by the ledger; a file of the snapshot keeps it."""
    with engine_of(instance(1, [FIRST])) as engine:
        engine.fail_gpu("n0", 1)
        again = loads(Instance, dumps(engine.snapshot), source="file")
        assert again.digest == engine.snapshot.digest
        plan = plan_for(again, {"first": [("n0", [0, 1])]})
        assert {found.rule for found in violations(again, plan)} == {"gpu_share"}
        with pytest.raises(BadInput, match="gpu_share"):
            engine.commit(plan)
        assert violations(again, plan_for(again, {"first": [("n0", [0, 2])]})) == []


@pytest.mark.parametrize("seed", range(12))
def test_value_and_bound_are_those_without_the_gpus(seed: int) -> None:
    """Against the same round on machines that lack the failed GPUs; the value is proven, and no GPU of them is used."""
    rng = np.random.default_rng(seed)
    failed = {f"n{n}": sorted(rng.choice(4, int(rng.integers(1, 4)), replace=False).tolist()) for n in range(3)}
    sizes = [1, 2, 2, 3, 4, 1, 2]
    jobs = [job(f"j{i}", gpus=size, value=int(rng.integers(1, 9)) * size) for i, size in enumerate(sizes)]
    with engine_of(instance(3, jobs)) as engine:
        for name, gpus in failed.items():
            for gpu in gpus:
                engine.fail_gpu(name, gpu)
        assert_as_if_fresh(engine)
        plan = engine.place(time_limit_s=20)
    less = [node(name, f"of{4 - len(gpus)}") for name, gpus in failed.items()]
    without = instance(less, jobs, machines=[machine(f"of{k}", k) for k in range(1, 4)])
    fewer = solve(without, time_limit_s=20)
    assert (plan.status, fewer.status) == ("optimal", "optimal")
    assert (plan.levels[0].objective, plan.levels[0].bound) == (fewer.levels[0].objective, fewer.levels[0].bound)
    for placement in plan.placements:
        for held in placement.assignments:
            assert placement.job.startswith("failed-gpu:") or not set(held.gpus) & {
                str(gpu) for gpu in failed[held.node]
            }


@given(rounds(), st.integers(0, 2**32))
def test_random_changes_with_failures(loaded: Instance, seed: int) -> None:
    """Failures and repairs between all other reports: the engine is what a fresh load of its snapshot would be."""
    rng = np.random.default_rng(seed)
    with engine_of(loaded) as engine:
        for _ in range(4):
            step(rng, engine)
            now = engine.snapshot
            sizes = {machine.id: len(machine.gpus) for machine in now.cluster.machines}
            chosen = now.cluster.nodes[int(rng.integers(len(now.cluster.nodes)))]
            gpu = int(rng.integers(max(sizes[chosen.machine], 1)))
            there = {h.job for h in now.running for a in h.assignments if a.node == chosen.id and str(gpu) in a.gpus}
            try:
                if failed_id(chosen.id, gpu) in there:
                    engine.repair_gpu(chosen.id, gpu)
                else:
                    assert {job.id for job in engine.fail_gpu(chosen.id, gpu)} == there
            except (BadInput, Unsupported):
                assert engine.snapshot.model_dump() == now.model_dump()
            assert_as_if_fresh(engine)


def test_a_reading_does_not_repair_it() -> None:
    """The API server lists no GPUs of pods: a new pod gets another; where all GPUs are in use, it works again."""
    objects = [k8s_node("n", gpus="2"), pod("a", "n")]
    with engine_of(read_kubernetes(objects)) as engine:
        engine.fail_gpu("n", 1)
        before = engine.snapshot
        assert not changes_between(before, read_kubernetes(objects))
        assert not changes_between(before, read_kubernetes(objects, previous=before))
        moved = read_kubernetes([objects[0], pod("b", "n")], previous=before)
        engine.apply(changes_between(before, moved))
        held = {run.job: list(run.assignments[0].gpus) for run in engine.snapshot.running}
        assert held == {failed_id("n", 1): ["1"], "default/b": ["0"]}
        both = read_kubernetes([*objects, pod("b", "n")])
        engine.apply(changes_between(engine.snapshot, both))
        assert not any(run.job.startswith("failed-gpu:") for run in engine.snapshot.running)
        assert_as_if_fresh(engine)


def test_long_names() -> None:
    """The id of the job is one, whatever the length of the node's."""
    nodes = [node("n" * length) for length in (253, 252)]
    with engine_of(instance(nodes, [FIRST])) as engine:
        for one in nodes:
            for gpu in range(3):
                engine.fail_gpu(one.id, gpu)
        assert len({held.job for held in engine.snapshot.running}) == 6
        assert engine.repair_gpu(nodes[0].id, 1) is None
        assert len(engine.snapshot.running) == 5
