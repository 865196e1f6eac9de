"""Room that Kubernetes' objects hold without a running pod: reservations of Koordinator, nominated pods."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from helpers.imported_rounds import notes_of
from placeopt import solve
from placeopt.importers import read_kubernetes

REPORTS = Path(__file__).parents[1] / "data" / "reports" / "kubernetes"
Json = dict[str, Any]


def objects(name: str) -> list[Json]:
    items: list[Json] = json.loads((REPORTS / f"{name}.json").read_text())["items"]
    return items


def started(items: list[Json]) -> set[str]:
    """Return the pods that start in the best plan."""
    plan = solve(read_kubernetes({"kind": "List", "items": items}), isolation="thread")
    assert plan.status == "optimal"
    return {placed.job for placed in plan.placements}


OWN = {"matchLabels": {"team": "a"}}
RESERVATIONS: dict[str, tuple[Json, Json, Json, set[str]]] = {
    # status, owner and the pod's fields of a reservation of 8 GPUs and 32 cores on a node of 8 and 64
    "as reported": ({}, {}, {}, set()),
    "its owner by labels": ({}, {}, {"labels": {"team": "a"}}, {"ml/w"}),
    "another's labels": ({}, {}, {"labels": {"team": "b"}}, set()),
    "its owner by an expression": (
        {}, {"labelSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
        {"labels": {"team": "b"}}, {"ml/w"}),
    "not its owner by an expression": (
        {}, {"labelSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}},
        {"labels": {"team": "a"}}, set()),
    "its owner by name": ({}, {"object": {"namespace": "ml", "name": "w"}}, {}, {"ml/w"}),
    "another by name": ({}, {"object": {"namespace": "ml", "name": "v"}}, {}, set()),
    "labels and another namespace": (
        {}, {"labelSelector": OWN, "object": {"namespace": "other"}}, {"labels": {"team": "a"}}, set()),
    "its pods took all": ({"allocated": {"nvidia.com/gpu": "8", "cpu": "32"}}, {}, {}, {"ml/w"}),
    "its pods took one": ({"allocated": {"nvidia.com/gpu": "1"}}, {}, {}, set()),
    "it waits": ({"phase": "Pending"}, {}, {}, {"ml/w"}),
    "it is used up": ({"phase": "Succeeded"}, {}, {}, {"ml/w"}),
    "it failed": ({"phase": "Failed"}, {}, {}, {"ml/w"}),
    "it is elsewhere": ({"nodeName": "gone"}, {}, {}, {"ml/w"}),
    "cores, which the pod leaves": ({"allocatable": {"cpu": "63"}}, {}, {}, {"ml/w"}),
    "cores": ({"allocatable": {"cpu": "63001m"}}, {}, {}, set()),
    "memory": ({"allocatable": {"memory": "512Gi"}}, {}, {}, set()),
}  # fmt: skip


@pytest.mark.parametrize("name", RESERVATIONS)
def test_reservations(name: str) -> None:
    status, owner, pod, expected = RESERVATIONS[name]
    items = objects("c11c")
    items[2]["status"] |= status
    items[2]["spec"]["owners"] = [owner or {"labelSelector": OWN}]
    items[1]["metadata"] |= pod
    assert started(items) == expected


def test_owners_that_are_not_read_and_a_reservation_that_cannot_be() -> None:
    """By controller: the room is kept from its pods, too, and the note says so; a bad quantity holds nothing."""
    items = objects("c11c")
    items[2]["spec"]["owners"] = [{"controller": {"kind": "Job", "name": "w"}}]
    assert started(items) == set()
    assert "by controller" in notes_of(read_kubernetes({"kind": "List", "items": items}))
    items[2]["status"]["allocatable"]["cpu"] = "many"
    assert started(items) == {"ml/w"}
    assert "reservation cannot be read" in notes_of(read_kubernetes({"kind": "List", "items": items}))


@pytest.mark.parametrize(
    ("priority", "gpus", "nominated", "expected"),
    [
        (0, 8, True, {"ml/boss"}),
        (0, 7, True, {"ml/boss", "ml/w"}),
        # of its own priority, the room counts; above it, the other is worth more
        (10, 8, True, {"ml/boss"}),
        (11, 8, True, {"ml/w"}),
        # without a nomination eight GPUs are worth more than one
        (10, 8, False, {"ml/w"}),
    ],
)
def test_nominated_pods(priority: int, gpus: int, nominated: bool, expected: set[str]) -> None:
    """A pod of 8 GPUs beside one of priority 10 that is nominated for one of them."""
    items = objects("c13b")
    boss, other = deepcopy(items[1]), items[2]
    other["spec"]["priority"] = priority
    for amounts in other["spec"]["containers"][0]["resources"].values():
        amounts["nvidia.com/gpu"] = str(gpus)
    if not nominated:
        del boss["status"]["nominatedNodeName"]
    assert started([items[0], boss, other]) == expected
