"""Steps on a cluster that stays: what `apply` makes of its snapshot in one revision, or errors that name the step."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given

from helpers.live_engine import assert_as_if_fresh, engine_of, refuses, runs
from placeopt import BadInput, Engine, Instance, PlaceoptError, StaleSnapshot
from placeopt.build import instance, job, machine, node, running
from placeopt.documents import loads
from placeopt.edits import AnyStep, Patch, apply, displaced
from placeopt.model import Domain, Hold, Policy, Queue
from strategies import Choice, choices

GANG, SMALL, LATE = job("gang", workers=2, gpus=4), job("small", gpus=1), job("late", gpus=2, queue="q")


def steps(*records: dict[str, Any]) -> tuple[AnyStep, ...]:
    """Return steps as a client sends them."""
    return loads(Patch, json.dumps({"steps": records})).steps


def racks() -> Instance:
    """Four nodes of 4 GPUs in two racks: a gang on the first two, a small job on the third, one waits in a queue."""
    held = [running(GANG, [("n0", range(4)), ("n1", range(4))]), running(SMALL, [("n2", [0])], started_ms=3)]
    return instance(
        [node(f"n{i}", domain=f"rack-{i // 2}") for i in range(4)],
        [GANG, SMALL, LATE],
        domains=[Domain(id="rack-0"), Domain(id="rack-1")],
        running=held,
        holds=(Hold(id="kept", node="n3", gpus=(0,)),),
        policy=Policy(queues=(Queue(id="q"),)),
    )


EACH: dict[str, dict[str, Any]] = {
    "add jobs": {"do": "add_jobs", "jobs": ({"id": "more"}, {"id": "yet-more"})},
    "remove one that runs and one that waits": {"do": "remove_jobs", "jobs": ("late", "gang")},
    "change a job": {"do": "change_job", "job": "late", "fields": {"user": "ann"}},
    "change a running job": {"do": "change_job", "job": "small", "fields": {"user": "ann"}},
    "priority": {"do": "change_job", "job": "gang", "fields": {"priority": 7}},
    "stop": {"do": "stop", "jobs": ("small", "gang")},
    "flags": {"do": "change_running", "job": "small", "fields": {"movable": True, "protected_until_ms": 9}},
    "time": {"do": "set_time", "now_ms": 7},
    "policy": {"do": "set_policy", "fields": {"name": "other", "share_mode": "exclusive"}},
    "queue": {"do": "change_queue", "queue": "q", "fields": {"quota": {"gpu_milli": 1000}}},
    "holds": {"do": "remove_holds", "holds": ("kept",)},
    "add nodes": {"do": "add_nodes", "like": "n3", "count": 2},
    "put nodes": {"do": "put_nodes", "nodes": ({"id": "n0", "machine": "m"}, {"id": "n9", "machine": "m"})},
    "remove nodes": {"do": "remove_nodes", "nodes": ("n1", "n2")},
    "a rack fails": {"do": "fail", "level": "rack", "domains": ("rack-0",)},
    "a GPU fails": {"do": "fail", "level": "gpu", "domains": ("n2/gpu0",)},
    "drain": {"do": "drain", "nodes": ("n0",)},
    "drain and stop": {"do": "drain", "nodes": ("n0", "n2"), "stop": True},
    "taint": {"do": "taint", "taint": {"key": "old"}, "nodes": ("n3",)},
    "label": {"do": "label", "labels": {"new": "yes"}},
    "an amount": {"do": "set_amount", "resource": "licence", "amount": 3, "at": "cluster"},
    "domains": {"do": "add_domains", "domains": ({"id": "rack-2"},)},
    "another machine type": {"do": "add_machines", "machines": [machine("big", gpus=8).model_dump(mode="json")]},
    "demand": {"do": "scale_demand", "percent": 200},
}


@pytest.mark.parametrize("what", EACH)
def test_a_step_does_what_it_does_to_a_round(what: str) -> None:
    """The same jobs, nodes, policy and running placements, and the same jobs wait again; one revision."""
    with engine_of(racks()) as engine:
        before, some = engine.snapshot, steps(EACH[what])
        expected = apply(before, some)
        assert set(engine.edit(some)) == set(displaced(before, expected))
        now = engine.snapshot
        assert now.model_dump(exclude={"revision"}) == expected.model_dump(exclude={"revision"})
        assert now.revision == before.revision + 1
        assert_as_if_fresh(engine)


@given(choices)
def test_random_steps_do_the_same_together(choice: Choice) -> None:
    """As one revision; where one of them is refused, all are, and `apply` refuses them, too."""
    some = steps(*choice.some(list(EACH.values()), 0.2))
    with engine_of(racks()) as engine:
        before = engine.snapshot
        try:
            expected = apply(before, some)
        except BadInput:
            with pytest.raises(PlaceoptError, match="steps"):
                engine.edit(some)
            assert engine.snapshot.model_dump() == before.model_dump()
            return
        engine.edit(some)
        assert engine.snapshot.model_dump(exclude={"revision"}) == expected.model_dump(exclude={"revision"})
        assert engine.revision == before.revision + bool(some)


def test_waiting_jobs_start_where_another_system_started_them() -> None:
    """With all that the record says; a plan of before is stale, and says by what step."""
    held = running(LATE, [("n3", (1, 2))], started_ms=2, preemptible=True, protected_until_ms=8)
    with engine_of(racks()) as engine:
        old = engine.place(["late"])
        engine.edit(steps({"do": "start", "running": (held.model_dump(mode="json", by_alias=True),)}))
        assert engine.snapshot.running[-1] == held
        assert_as_if_fresh(engine)
        assert engine.edit(steps({"do": "label", "labels": {"a": "b"}}, {"do": "stop", "jobs": ("late",)})) == ("late",)
        with pytest.raises(StaleSnapshot, match="label; stop 'late'"):
            engine.commit(old)
        assert runs(engine) == ["gang", "small"]


REFUSED: dict[str, dict[str, Any]] = {
    r"steps.0. .add_jobs.: .*'late'": {"do": "add_jobs", "jobs": ({"id": "late"},)},
    r"steps.0. .stop.: jobs: no running job 'late'": {"do": "stop", "jobs": ("late",)},
    r"steps.0. .change_running.: job: no running job 'late'": {"do": "change_running", "job": "late", "fields": {}},
    r"steps.0. .set_time.: .*time goes forward": {"do": "set_time", "now_ms": 0},
    r"steps.0. .drain.: nodes: no node 'n9'": {"do": "drain", "nodes": ("n9",)},
    r"steps.0. .change_job.: .*priority": {"do": "change_job", "job": "late", "fields": {"priority": 10**7}},
    r"(?s)steps.0. .set_policy.: .*share_mode": {"do": "set_policy", "fields": {"share_mode": "none"}},
    r"steps.0. .fail.: .*no node would be left": {"do": "fail", "level": "rack", "domains": ("rack-0", "rack-1")},
}


def test_a_step_that_is_refused_changes_nothing() -> None:
    """And says which field of which step it is, in the words of a patch."""
    with engine_of(racks().model_copy(update={"now_ms": 5})) as engine:

        def edit(record: dict[str, Any]) -> Any:
            return lambda one: one.edit(steps(record))

        refuses(engine, [(words, edit(record)) for words, record in REFUSED.items()])
        with pytest.raises(BadInput) as refused:
            engine.edit(steps({"do": "undrain"}, {"do": "stop", "jobs": ("late",)}))
        assert refused.value.faults[0].where == "steps[1].jobs"
        with pytest.raises(BadInput, match="steps"):
            Engine.edit(engine, cast("Any", ["drain"]))
