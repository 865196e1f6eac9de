"""Differences of two readings, applied to the first, give the second."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from helpers.kubernetes_objects import node as k8s_node
from helpers.kubernetes_objects import pod
from helpers.live_engine import assert_as_if_fresh, engine_of, step, update
from placeopt import BadInput, Engine, StaleSnapshot, build
from placeopt.importers import read_kubernetes, read_slurm
from placeopt.live_cluster import changes_between, without_groups
from placeopt.model import Instance, Node, ReadingNote
from strategies import Choice, choices, rounds, seeded

KUBERNETES = json.loads((Path(__file__).parents[2] / "examples" / "kubernetes.json").read_text())
SLURM = Path(__file__).parents[1] / "data" / "snapshots" / "slurm-22.05"


def changed(choice: Choice) -> dict[str, Any]:
    """Return the snapshot after random events to pods that are no daemons, which would make another machine type."""
    document = copy.deepcopy(KUBERNETES)
    items = document["items"]
    pods = [item for item in items if item["kind"] == "Pod" and "exporter" not in item["metadata"]["name"]]
    nodes = [item for item in items if item["kind"] == "Node"]
    for one in choice.shuffled(pods)[:4]:
        spec, meta = one["spec"], one["metadata"]
        match choice.number(0, 6):
            case 0:
                items.remove(one)
            case 1:
                spec["nodeName"] = choice.pick(nodes)["metadata"]["name"]
                one["status"] = {"phase": "Running", "startTime": "2026-11-22T05:00:00Z"}
            case 2:
                spec.pop("nodeName", None)
                one["status"] = {"phase": "Pending"}
            case 3:
                spec["priority"] = choice.pick((-100, -5, 0, 4, 1000))
            case 4:
                items.append({**copy.deepcopy(one), "metadata": {**meta, "name": f"new-{choice.number(0, 10**6)}"}})
            case 5:
                meta.setdefault("annotations", {})["placeopt.io/movable"] = choice.pick(("true", "false"))
            case _:
                spec["containers"][0].setdefault("resources", {})["requests"] = {"cpu": f"{choice.number(1, 8)}"}
    for node in choice.some(nodes, 0.2):
        node["spec"]["unschedulable"] = not node["spec"].get("unschedulable", False)
    if choice.chance(0.2):
        items.remove(choice.pick(nodes))
    return document


def test_nothing_changed_between_two_equal_readings() -> None:
    first, second = read_kubernetes(KUBERNETES), read_kubernetes(KUBERNETES)
    assert not changes_between(first, second)
    slurm = [read_slurm(SLURM / "nodes.json.gz", SLURM / "jobs.json.gz") for _ in range(2)]
    assert not changes_between(*slurm)


def test_a_live_cluster_takes_what_ended_and_what_came() -> None:
    """Two readings of a Slurm, one hour apart, but for the heterogeneous job that waits in the first."""
    before, left = without_groups(read_slurm(SLURM / "nodes.json.gz", SLURM / "jobs.json.gz"))
    assert left == ("47",)
    after = read_slurm(SLURM / "nodes_later.json.gz", SLURM / "jobs_later.json.gz", previous=before)
    with engine_of(before) as engine:
        engine.apply(changes_between(before, after))
        agrees(engine, after)


def agrees(engine: Engine, after: Instance) -> None:
    """An engine holds what a reading states, whatever the order, and is what a fresh load of it would be."""
    state = engine.snapshot
    assert {job.id: job for job in state.jobs} == {job.id: job for job in after.jobs}
    assert {node.id: node for node in state.cluster.nodes} == {node.id: node for node in after.cluster.nodes}
    assert ({*state.holds}, state.reading) == ({*after.holds}, after.reading)
    assert {held.job: held.model_copy(update={"started_ms": 0}) for held in state.running} == {
        held.job: held.model_copy(update={"started_ms": 0}) for held in after.running
    }
    assert_as_if_fresh(engine)


def test_notes_follow_the_reading() -> None:
    """What a plan is true of goes by the last reading, not by the first, in plans for some jobs and for all."""
    here = build.instance(build.nodes(2), [build.job("w", gpus=4, workers=2)])
    cluster = here.cluster.model_copy(update={"nodes": (build.node("n0"), build.node("n1", drained=True))})
    note = ReadingNote(kind="drained", reason="state 'odd'", names=("n1",))
    odd = here.model_copy(update={"cluster": cluster, "reading": (note,)})
    left = here.model_copy(update={"reading": (ReadingNote(kind="left out", reason="odd field", names=("v",)),)})
    with engine_of(odd) as engine:
        for after, some, all_ in (
            (odd, ("reading", ("n1",)), ("reading", ("n1",))),
            (here, ("cluster", ()), ("cluster", ())),
            (left, ("cluster", ()), ("reading", ("v",))),
            (odd, ("reading", ("n1",)), ("reading", ("n1",))),
        ):
            engine.apply(changes_between(engine.snapshot, after))
            agrees(engine, after)
            plans = engine.place(["w"]), engine.place()
            assert [(plan.of, plan.unread) for plan in plans] == [some, all_]


def test_an_engine_takes_random_differences() -> None:
    """Applied, they make of it what loading the later reading would."""
    seen, loads = set(), 0
    with engine_of(read_kubernetes(KUBERNETES)) as engine:
        for seed in range(40):
            after, _ = without_groups(
                read_kubernetes(changed(seeded(seed)), previous=engine.snapshot if seed % 8 else None)
            )
            changes = changes_between(engine.snapshot, after, flags=True)
            assert changes_between(engine.snapshot, after) == changes.model_copy(update={"flags": {}})
            seen |= {name for name, value in vars(changes).items() if value}
            if changes.reload:
                loads += 1
                with pytest.raises(BadInput, match="load the later reading as a whole"):
                    engine.apply(changes)
                engine.load(after)
            else:
                revision = engine.revision
                engine.apply(changes)
                assert engine.revision - revision in (0, 1)
                assert not changes_between(engine.snapshot, after, flags=True)
            agrees(engine, after)
    assert seen >= {"release", "remove_jobs", "nodes", "add_jobs", "adopt", "priorities", "flags", "now_ms", "reload"}
    assert loads < 20


@given(rounds(changes=True), choices)
def test_two_states_of_random_rounds(one: Instance, choice: Choice) -> None:
    """From any state of a cluster to any other of it: jobs of several shapes, gangs, shares, racks."""
    with engine_of(one) as other, engine_of(one) as engine:
        for _ in range(6):
            step(choice, other)
        after = other.snapshot
        changes = changes_between(engine.snapshot, after, flags=True)
        if changes.reload or after.policy != one.policy:
            return
        engine.apply(changes)
        agrees(engine, after)


def test_differences_that_do_not_fit_change_nothing() -> None:
    """Half of them is possible: a later part is refused, and the former state, with its history, is there again."""
    before = read_kubernetes(KUBERNETES)
    readings = (read_kubernetes(changed(seeded(seed)), previous=before) for seed in range(80))
    candidates = (without_groups(reading)[0] for reading in readings)
    found = (changes_between(before, after) for after in candidates)
    changes = next(one for one in found if one.release and one.remove_jobs and one.adopt and not one.reload)
    held = before.running[0]
    odd = held.model_copy(update={"job": "nobody"})
    with engine_of(before) as engine:
        update(engine, now_ms=before.now_ms + 1)
        plan = engine.place(method="stranding")
        update(engine, now_ms=before.now_ms + 2)
        state, revision = engine.snapshot.model_dump(), engine.revision
        with pytest.raises(BadInput, match="no job 'nobody'"):
            engine.apply(changes.model_copy(update={"adopt": (*changes.adopt, odd)}))
        assert (engine.snapshot.model_dump(), engine.revision) == (state, revision)
        assert_as_if_fresh(engine)
        with pytest.raises(StaleSnapshot, match="time went on"):
            engine.commit(plan)
        engine.apply(changes)
        assert engine.revision == revision + 1
        with pytest.raises(StaleSnapshot) as stale:
            engine.commit(plan)
        assert set(changes.release) <= set(stale.value.jobs)


def test_what_runs_where_nothing_is_listed_asks_for_a_load() -> None:
    """A node went and its pod is still there; a job began on a GPU that its node lacks."""
    before = read_kubernetes(KUBERNETES)
    document = copy.deepcopy(KUBERNETES)
    there = next(i for i in document["items"] if i["metadata"]["name"] == "serve-0")["spec"]["nodeName"]
    document["items"] = [i for i in document["items"] if i["metadata"]["name"] != there]
    after = read_kubernetes(document, previous=before)
    assert any("no longer listed" in reason for reason in changes_between(before, after).reload)
    held = after.running[0]
    start = held.assignments[0].model_copy(update={"node": "elsewhere"})
    odd = after.model_copy(update={"running": (held.model_copy(update={"assignments": (start,)}),)})
    assert any("'elsewhere'" in reason for reason in changes_between(after, odd).reload)


def test_jobs_keep_their_gpus_when_others_end() -> None:
    """The API does not say which GPUs a pod has: without the earlier reading, the lowest free ones are taken."""
    before = read_kubernetes([k8s_node("n"), pod("a", "n"), pod("b", "n")])
    items = [k8s_node("n"), pod("b", "n"), pod("c", "n")]
    changes = changes_between(before, read_kubernetes(items, previous=before))
    assert changes.release == ("default/a",)
    assert [(record.job, list(record.assignments[0].gpus)) for record in changes.adopt] == [("default/c", ["0"])]
    assert changes_between(before, read_kubernetes(items)).release == ("default/a", "default/b")


def test_other_hardware_asks_for_a_load() -> None:
    before = read_kubernetes(KUBERNETES)
    document = copy.deepcopy(KUBERNETES)
    node = next(item for item in document["items"] if item["kind"] == "Node")
    node["status"]["allocatable"]["cpu"] = "48"
    assert changes_between(before, read_kubernetes(document)).reload


def test_equal_records_are_kept_as_objects() -> None:
    first = read_kubernetes(KUBERNETES)
    again = read_kubernetes(KUBERNETES, previous=first)
    assert all(one is other for one, other in zip(again.jobs, first.jobs, strict=True))
    assert all(one is other for one, other in zip(again.running, first.running, strict=True))
    assert all(one is other for one, other in zip(again.cluster.nodes, first.cluster.nodes, strict=True))
    for seed in range(20):
        document = changed(seeded(seed))
        alone, kept = read_kubernetes(document), read_kubernetes(document, previous=first)
        assert kept.jobs == alone.jobs
        assert hardware(kept) == hardware(alone)
        ids = {machine.id: machine for machine in first.cluster.machines}
        for machine in kept.cluster.machines:  # equal types keep their ids, and others get ids that are new
            assert machine.id not in ids or machine == ids[machine.id]


def hardware(instance: Instance) -> list[tuple[Node, dict]]:
    """Return nodes, without the id of the machine type, and that type."""
    machines = {machine.id: machine.model_dump(exclude={"id"}) for machine in instance.cluster.machines}
    return [(node.model_copy(update={"machine": "any"}), machines[node.machine]) for node in instance.cluster.nodes]
