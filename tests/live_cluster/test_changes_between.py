"""Differences of two readings, applied to the first, give the second."""

import copy
import dataclasses
import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_random_changes import assert_as_if_fresh, step

from placeopt import BadInput, Engine, StaleSnapshot
from placeopt.formats import read_kubernetes, read_slurm
from placeopt.live_cluster import ClusterChanges, changes_between
from placeopt.model import Instance, Job, Node, Running
from strategies import rounds

EXAMPLES = Path(__file__).parents[2] / "examples"
KUBERNETES = json.loads((EXAMPLES / "kubernetes.json").read_text())


def applied(before: Instance, changes: ClusterChanges) -> tuple[dict[str, Job], dict[str, Running], dict[str, Node]]:
    jobs = {job.id: job for job in before.jobs}
    running = {record.job: record for record in before.running}
    nodes = {node.id: node for node in before.cluster.nodes}
    for job in changes.release:
        del jobs[job], running[job]
    for job in changes.remove_jobs:
        assert job not in running
        del jobs[job]
    for name, node in changes.nodes.items():
        if node is None:
            del nodes[name]
        else:
            nodes[name] = node
    for record in changes.add_jobs:
        assert record.id not in jobs
        jobs[record.id] = record
    for held in changes.adopt:
        assert held.job in jobs
        assert held.job not in running
        running[held.job] = held
    for job, priority in changes.priorities.items():
        jobs[job] = jobs[job].model_copy(update={"priority": priority})
    for job, end in changes.expected_end_ms.items():
        running[job] = running[job].model_copy(update={"expected_end_ms": end})
    return jobs, running, nodes


def changed(seed: int) -> dict:
    """Return the snapshot after random events."""
    draw = random.Random(seed)
    document = copy.deepcopy(KUBERNETES)
    items = document["items"]
    pods = [item for item in items if item["kind"] == "Pod"]
    nodes = [item["metadata"]["name"] for item in items if item["kind"] == "Node"]
    for pod in draw.sample(pods, 4):
        event = draw.choice(["gone", "start", "wait", "priority", "new", "resize"])
        if event == "gone":
            items.remove(pod)
        elif event == "start":
            pod["spec"]["nodeName"] = draw.choice(nodes)
            pod["status"] = {"phase": "Running", "startTime": "2026-11-22T05:00:00Z"}
        elif event == "wait":
            pod["spec"].pop("nodeName", None)
            pod["status"] = {"phase": "Pending"}
        elif event == "priority":
            pod["spec"]["priority"] = draw.randrange(-5, 5)
        elif event == "new":
            again = copy.deepcopy(pod)
            again["metadata"]["name"] += f"-{seed}"
            items.append(again)
        else:
            pod["spec"]["containers"][0].setdefault("resources", {})["requests"] = {"cpu": f"{draw.randrange(1, 9)}"}
    for item in items:
        if item["kind"] == "Node" and draw.random() < 0.2:
            item["spec"]["unschedulable"] = not item["spec"].get("unschedulable", False)
    return document


@pytest.mark.parametrize("previous", [False, True])
def test_changes_lead_from_one_reading_to_the_next(previous: bool) -> None:
    seen: set[str] = set()
    before = read_kubernetes(KUBERNETES)
    for seed in range(60):
        after = read_kubernetes(changed(seed), previous=before if previous else None)
        changes = changes_between(before, after)
        seen |= {name for name, value in vars(changes).items() if value}
        jobs, running, nodes = applied(before, changes)
        assert jobs == {job.id: job for job in after.jobs}
        assert nodes == {node.id: node for node in after.cluster.nodes}
        assert {job: (record.option, record.assignments) for job, record in running.items()} == {
            record.job: (record.option, record.assignments) for record in after.running
        }
        before = after
    assert seen >= {"release", "remove_jobs", "nodes", "add_jobs", "adopt", "priorities", "now_ms"}


def test_nothing_changed_between_two_equal_readings() -> None:
    first, second = read_kubernetes(KUBERNETES), read_kubernetes(KUBERNETES)
    assert not changes_between(first, second)
    folder = Path(__file__).parents[1] / "data" / "snapshots" / "slurm-22.05"
    slurm = [read_slurm(folder / "nodes.json.gz", folder / "jobs.json.gz") for _ in range(2)]
    assert not changes_between(*slurm)


def test_a_live_cluster_takes_what_ended_and_what_came() -> None:
    folder = Path(__file__).parents[1] / "data" / "snapshots" / "slurm-22.05"
    before = read_slurm(folder / "nodes.json.gz", folder / "jobs.json.gz")
    after = read_slurm(folder / "nodes_later.json.gz", folder / "jobs_later.json.gz", previous=before)
    changes = changes_between(before, after)
    assert changes
    assert not changes.reload
    with Engine(isolation="thread") as engine:
        engine.load(before)
        for job in changes.release:
            engine.release(job)
        engine.update(
            add_jobs=changes.add_jobs, remove_jobs=changes.remove_jobs, nodes=changes.nodes, now_ms=changes.now_ms
        )
        state = engine.snapshot
    assert {job.id for job in state.jobs} == {job.id for job in after.jobs}
    assert {node.id: node for node in state.cluster.nodes} == {node.id: node for node in after.cluster.nodes}
    starts = {record.job for record in changes.adopt}
    assert {record.job for record in state.running} | starts == {record.job for record in after.running}


def agrees(engine: Engine, after: Instance) -> None:
    """An engine holds what a reading states, whatever the order, and is what a fresh load of it would be."""
    state = engine.snapshot
    assert {job.id: job for job in state.jobs} == {job.id: job for job in after.jobs}
    assert {node.id: node for node in state.cluster.nodes} == {node.id: node for node in after.cluster.nodes}
    assert {held.job: held.model_copy(update={"started_ms": 0}) for held in state.running} == {
        held.job: held.model_copy(update={"started_ms": 0}) for held in after.running
    }
    assert_as_if_fresh(engine)


def marked(seed: int) -> dict:
    """Return the snapshot after random events, some pods with other marks and priorities."""
    draw = random.Random(seed)
    document = changed(seed)
    daemons = {item["metadata"]["name"]: item for item in KUBERNETES["items"] if "exporter" in item["metadata"]["name"]}
    items = [item for item in document["items"] if "exporter" not in item["metadata"]["name"]]
    document["items"] = [*items, *daemons.values()]  # another daemon would make another machine type
    for pod in items:
        if pod["kind"] == "Pod" and draw.random() < 0.2:
            pod["metadata"].setdefault("annotations", {})["placeopt.io/movable"] = draw.choice(["true", "false"])
            pod["spec"]["priority"] = draw.choice([-100, 0, 1000])
    if draw.random() < 0.2:
        nodes = [item for item in document["items"] if item["kind"] == "Node"]
        document["items"].remove(draw.choice(nodes))
    return document


def test_an_engine_takes_random_differences() -> None:
    """Applied, they make of it what loading the later reading would."""
    before, seen, loads = read_kubernetes(KUBERNETES), set(), 0
    with Engine(isolation="thread") as engine:
        engine.load(before)
        for seed in range(40):
            after = read_kubernetes(marked(seed), previous=engine.snapshot if seed % 8 else None)
            changes = changes_between(engine.snapshot, after, flags=True)
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
    assert seen >= {"release", "remove_jobs", "nodes", "add_jobs", "adopt", "priorities", "flags", "reload"}
    assert loads < 20


@given(rounds(changes=True), st.integers(0, 2**32))
def test_two_states_of_random_rounds(one: Instance, seed: int) -> None:
    """From any state of a cluster to any other of it: jobs of several shapes, gangs, shares, racks."""
    rng = np.random.default_rng(seed)
    with Engine(isolation="thread") as other, Engine(isolation="thread") as engine:
        other.load(one)
        engine.load(one)
        for _ in range(6):
            step(rng, other)
        after = other.snapshot
        changes = changes_between(engine.snapshot, after, flags=True)
        if changes.reload or after.policy != one.policy:
            return
        engine.apply(changes)
        agrees(engine, after)


def test_differences_that_do_not_fit_change_nothing() -> None:
    """Half of them is possible: a later part is refused, and the former state, with its history, is there again."""
    before = read_kubernetes(KUBERNETES)
    candidates = (read_kubernetes(marked(seed), previous=before) for seed in range(80))
    found = (changes_between(before, after) for after in candidates)
    changes = next(one for one in found if one.release and one.remove_jobs and one.adopt and not one.reload)
    held = before.running[0]
    odd = held.model_copy(update={"job": "nobody"})
    with Engine(isolation="thread") as engine:
        engine.load(before)
        engine.update(now_ms=before.now_ms + 1)
        plan = engine.place(method="stranding")
        engine.update(now_ms=before.now_ms + 2)
        state, revision = engine.snapshot.model_dump(), engine.revision
        with pytest.raises(BadInput, match="no job 'nobody'"):
            engine.apply(dataclasses.replace(changes, adopt=(*changes.adopt, odd)))
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
    pod = next(item for item in document["items"] if item["metadata"]["name"] == "serve-0")
    document["items"] = [i for i in document["items"] if i["metadata"]["name"] != pod["spec"]["nodeName"]]
    after = read_kubernetes(document, previous=before)
    assert any("no longer listed" in reason for reason in changes_between(before, after).reload)
    held = after.running[0]
    start = held.assignments[0].model_copy(update={"node": "elsewhere"})
    odd = after.model_copy(update={"running": (held.model_copy(update={"assignments": (start,)}),)})
    assert any("'elsewhere'" in reason for reason in changes_between(after, odd).reload)


def test_jobs_keep_their_gpus_when_others_end() -> None:
    """The API does not say which GPUs a pod has: without the earlier reading, the lowest free ones are taken."""

    def pod(name: str) -> dict:
        resources = {"requests": {"nvidia.com/gpu": "1"}}
        spec = {"nodeName": "n", "containers": [{"name": "c", "resources": resources}]}
        return {"kind": "Pod", "metadata": {"name": name}, "spec": spec, "status": {"phase": "Running"}}

    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": "4", "cpu": "8"}}}
    before = read_kubernetes({"kind": "List", "items": [node, pod("a"), pod("b")]})
    items = {"kind": "List", "items": [node, pod("b"), pod("c")]}
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
        document = changed(seed)
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
