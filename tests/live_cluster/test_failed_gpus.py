"""GPUs that fail: a GPU takes no work until it is repaired, in every plan and bound."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from test_host_reports import FIRST, GANG, WIDE, busy

from helpers.kubernetes_objects import node as k8s_node
from helpers.kubernetes_objects import pod
from helpers.live_engine import (
    assert_as_if_fresh,
    engine_of,
    fail_gpu,
    fail_node,
    places,
    refuses,
    repair_gpu,
    runs,
    set_policy,
    update,
)
from helpers.plans import NO_COSTS, plan_for
from placeopt import BadInput, Engine, Instance, Policy, StaleSnapshot, solve, violations
from placeopt.build import instance, job, machine, node
from placeopt.documents import dumps, loads
from placeopt.edits import AddMachines, RemoveJobs
from placeopt.importers import read_kubernetes
from placeopt.live_cluster import changes_between
from strategies import Choice, choices

CROWDED = Policy(share_mode="overcommit", jobs_per_gpu_max=2)


def failed(engine: Engine) -> list[tuple[str, int]]:
    """Return node and index of the failed GPUs."""
    return list(engine.snapshot.failed_gpus)


def test_the_whole_gang_waits_again() -> None:
    """Its other GPUs are free, the failed one is not, and a plan made before says what happened."""
    with engine_of(busy(WIDE)) as engine:
        old = engine.place(["first"])
        assert fail_gpu(engine, "n0", 2) == (GANG,)
        assert engine.revision == 1
        with pytest.raises(StaleSnapshot, match="job 'gang' stopped and hold 'failed-gpu-0' came"):
            engine.commit(old)
        assert_as_if_fresh(engine)
        assert engine.place(["gang"]).unplaced[0].job == "gang"
        plan = engine.place(["first", "wide"])
        where = places(plan)
        assert where["wide"][0][0] == "n1"
        assert ("n0", 2) not in [(node, gpu) for parts in where.values() for node, gpus in parts for gpu in gpus]
        engine.commit(plan)
        repair_gpu(engine, "n0", 2)
        assert_as_if_fresh(engine)
        assert runs(engine) == ["small", "first", "wide"]
        assert failed(engine) == []


def test_what_is_refused_changes_nothing() -> None:
    """Unknown GPUs, and one that failed already."""
    with engine_of(busy()) as engine:
        fail_gpu(engine, "n2", 3)
        refuses(
            engine,
            [
                ("no gpu 'n9/gpu0'", lambda e: fail_gpu(e, "n9", 0)),
                ("no gpu 'n2/gpu4'", lambda e: fail_gpu(e, "n2", 4)),
                ("no gpu 'n2/gpu-1'", lambda e: fail_gpu(e, "n2", -1)),
                ("no gpu 'n2/gpu3'", lambda e: fail_gpu(e, "n2", 3)),
            ],
        )


def test_it_takes_no_job_where_jobs_share_gpus_without_limit() -> None:
    """Also under a policy that comes later."""
    with engine_of(1, [job(name) for name in "abcdefgh"]) as engine:
        fail_gpu(engine, "n0", 3)
        set_policy(engine, CROWDED)
        assert_as_if_fresh(engine)
        plan = engine.place()
        assert sorted(gpus for parts in places(plan).values() for _, gpus in parts) == [[g] for g in (0, 0, 1, 1, 2, 2)]


def test_its_node_fails_goes_or_shrinks() -> None:
    """A failed node keeps its failed GPUs for later; they go with the node, or with hardware that lacks them."""
    with engine_of(busy()) as engine:
        fail_gpu(engine, "n2", 0)
        fail_gpu(engine, "n2", 3)
        assert fail_node(engine, "n2") == ()
        update(engine, nodes={"n2": "undrain"})
        assert places(engine.place(["first"])) == {"first": [("n2", [1, 2])]}
        two = AddMachines(do="add_machines", machines=(machine("two", 2),))
        engine.edit([two, RemoveJobs(do="remove_jobs", jobs=("second",))])
        update(engine, nodes={"n2": node("n2", "two")})
        assert (failed(engine), runs(engine)) == ([("n2", 0)], ["gang"])
        assert_as_if_fresh(engine)
        update(engine, nodes={"n2": None})
        assert runs(engine) == ["gang"]
        assert_as_if_fresh(engine)
        fail_gpu(engine, "n1", 1)
        assert fail_node(engine, "n1", remove=True) == ()
        assert failed(engine) == []
        assert_as_if_fresh(engine)


def test_the_referee_knows_it() -> None:
    """A plan that uses the GPU is refused, in the whole and by the ledger; a file of the snapshot keeps it."""
    with engine_of(1, [FIRST]) as engine:
        fail_gpu(engine, "n0", 1)
        again = loads(Instance, dumps(engine.snapshot), source="file")
        assert again.digest == engine.snapshot.digest
        plan = plan_for(again, {"first": [("n0", [0, 1])]})
        assert {found.rule for found in violations(again, plan)} == {"hold"}
        with pytest.raises(BadInput, match="hold"):
            engine.commit(plan)
        assert violations(again, plan_for(again, {"first": [("n0", [0, 2])]})) == []


@settings(max_examples=12)
@given(choices)
def test_value_and_bound_are_those_without_the_gpus(choice: Choice) -> None:
    """Against the same round on machines that lack the failed GPUs; the value is proven, and no GPU of them is used."""
    policy = Policy(weights=NO_COSTS)
    lost = {f"n{n}": choice.shuffled(range(4))[: choice.number(1, 3)] for n in range(3)}
    sizes = [1, 2, 2, 3, 4, 1, 2]
    jobs = [job(f"j{i}", gpus=size, value=choice.number(1, 8) * size) for i, size in enumerate(sizes)]
    with engine_of(3, jobs, policy=policy) as engine:
        for name, gpu in [(name, gpu) for name, gpus in lost.items() for gpu in gpus]:
            fail_gpu(engine, name, gpu)
        assert_as_if_fresh(engine)
        plan = engine.place(time_limit_s=20)
    less = [node(name, f"of{4 - len(gpus)}") for name, gpus in lost.items()]
    machines = [machine(f"of{k}", k) for k in range(1, 4)]
    fewer = solve(instance(less, jobs, machines=machines, policy=policy), time_limit_s=20)
    assert (plan.status, fewer.status) == ("optimal", "optimal")
    assert (plan.levels[0].objective, plan.levels[0].bound) == (fewer.levels[0].objective, fewer.levels[0].bound)
    for name, parts in places(plan).items():
        assert not any(set(gpus) & set(lost[at]) for at, gpus in parts), name


def test_a_reading_does_not_repair_it() -> None:
    """The API server lists no GPUs of pods: a new pod gets another; where all GPUs are in use, it works again."""
    objects = [k8s_node("n", gpus="2"), pod("a", "n")]
    with engine_of(read_kubernetes(objects)) as engine:
        fail_gpu(engine, "n", 1)
        before = engine.snapshot
        assert not changes_between(before, read_kubernetes(objects))
        assert not changes_between(before, read_kubernetes(objects, previous=before))
        moved = read_kubernetes([objects[0], pod("b", "n")], previous=before)
        engine.apply(changes_between(before, moved))
        assert (failed(engine), places(engine.snapshot)) == ([("n", 1)], {"default/b": [("n", [0])]})
        engine.apply(changes_between(engine.snapshot, read_kubernetes([*objects, pod("b", "n")])))
        assert failed(engine) == []
        assert_as_if_fresh(engine)


def test_long_names() -> None:
    """The id of the hold is one, whatever the length of the node's."""
    nodes = [node("n" * length) for length in (253, 252)]
    with engine_of(nodes, [FIRST]) as engine:
        for one, gpu in [(one, gpu) for one in nodes for gpu in range(3)]:
            fail_gpu(engine, one.id, gpu)
        assert len(failed(engine)) == 6
        repair_gpu(engine, nodes[0].id, 1)
        assert len(failed(engine)) == 5
