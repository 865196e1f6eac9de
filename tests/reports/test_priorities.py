"""Priorities that are strict, as Kubernetes and Volcano have them: who starts, and who is stopped for whom."""

import json
from pathlib import Path
from typing import Any

import pytest

from placeopt import solve
from placeopt.importers import read_kubernetes
from placeopt.model import Changes, Instance

REPORTS = Path(__file__).parents[1] / "data" / "reports" / "kubernetes"
Json = dict[str, Any]


def objects(name: str) -> list[Json]:
    items: list[Json] = json.loads((REPORTS / f"{name}.json").read_text())["items"]
    return items


def round_of(items: list[Json], priorities: str = "strict") -> Instance:
    """Read a listing; running pods of any priority may be stopped."""
    round_ = read_kubernetes({"kind": "List", "items": items})
    policy = round_.policy.model_copy(
        update={"priorities": priorities, "changes": Changes(preemptions_max=9, preemption_price=1)}
    )
    running = tuple(held.model_copy(update={"preemptible": True}) for held in round_.running)
    return round_.model_copy(update={"policy": policy, "running": running})


def runs(items: list[Json], priorities: str = "strict") -> set[str]:
    plan = solve(round_of(items, priorities), isolation="thread")
    return {placed.job for placed in plan.placements}


@pytest.mark.parametrize(
    ("name", "pod", "count", "by_price"),
    [("c16b", "serve", 1, {"train"}), ("c16c", "prod", 1, {"prod"}), ("c16d", "prod0", 2, {"b0", "b1"})],
)
def test_a_lower_priority_does_not_start_in_place_of_a_higher(
    name: str, pod: str, count: int, by_price: set[str]
) -> None:
    """A pod of one GPU and of high priority beside larger ones; by value these start, where they are worth more."""
    started = runs(objects(name))
    assert pod in {one.rpartition("/")[2] for one in started}
    assert len(started) == count
    assert {one.rpartition("/")[2] for one in runs(objects(name), "price")} == by_price


def bound(pod: Json, node: str = "n0") -> Json:
    """Return the pod running on a node."""
    spec, status = {**pod["spec"], "nodeName": node}, {"phase": "Running", "startTime": "2026-11-01T00:00:00Z"}
    return {**pod, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("runs_first", "waits", "own", "expected"),
    [
        # of c16c, the pod of priority 0 with all GPUs, or that of priority 1000 with one
        ("batch", "prod", {}, {"prod"}),
        ("prod", "batch", {}, {"prod"}),
        ("batch", "prod", {"preemptionPolicy": "Never"}, {"batch"}),
        ("batch", "prod", {"priority": 0}, {"batch"}),
        ("batch", "prod", {"preemptionPolicy": "PreemptLowerPriority"}, {"prod"}),
    ],
)
def test_who_is_stopped(runs_first: str, waits: str, own: Json, expected: set[str]) -> None:
    items = {item["metadata"]["name"]: item for item in objects("c16c")}
    waiting = {**items[waits], "spec": {**items[waits]["spec"], **own}}
    found = runs([items["n0"], bound(items[runs_first]), waiting])
    assert {pod.rpartition("/")[2] for pod in found} == expected


def test_a_gang_of_low_priority_stops_no_pod_of_high_priority() -> None:
    """Eight pods of priority 10 beside one of 1000, which holds one of their GPUs."""
    items = {item["metadata"]["name"]: item for item in objects("c16c")}
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ml"},
        "spec": {"minMember": 8},
    }
    members = []
    for i in range(8):
        metadata = {**items["prod"]["metadata"], "name": f"g-{i}", "uid": f"g-{i}"}
        metadata["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
        members.append({**items["prod"], "metadata": metadata, "spec": {**items["prod"]["spec"], "priority": 10}})
    found = runs([items["n0"], bound(items["prod"]), group, *members])
    assert {pod.rpartition("/")[2] for pod in found} == {"prod"}
