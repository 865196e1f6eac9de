"""Differences of two readings, applied to the first, give the second."""

import copy
import json
import random
from pathlib import Path

import pytest

from placeopt import Engine
from placeopt.formats.snapshots import read_kubernetes, read_slurm
from placeopt.live_cluster.changes import ClusterChanges, changes_between
from placeopt.model import Instance, Job, Node, Running

SNAPSHOTS = Path(__file__).parent.parent / "data" / "snapshots"
KUBERNETES = json.loads((SNAPSHOTS / "kubernetes.json").read_text())


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
    folder = SNAPSHOTS / "slurm-22.05"
    slurm = [read_slurm(folder / "nodes.json.gz", folder / "jobs.json.gz") for _ in range(2)]
    assert not changes_between(*slurm)


def test_a_live_cluster_takes_what_ended_and_what_came() -> None:
    folder = SNAPSHOTS / "slurm-22.05"
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
        assert kept.cluster.nodes == alone.cluster.nodes
