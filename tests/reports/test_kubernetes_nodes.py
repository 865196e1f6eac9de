"""Nodes of Kubernetes that are full of something other than GPUs, from public reports, with the right answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.imported_rounds import notes_of
from placeopt import Plan, solve
from placeopt.importers import read_kubernetes
from placeopt.whatif import Limits, add

REPORTS = Path(__file__).parents[1] / "data" / "reports" / "kubernetes"


def objects(name: str) -> list[dict[str, Any]]:
    """Return the objects of one of the lists."""
    items: list[dict[str, Any]] = json.loads((REPORTS / f"{name}.json").read_text(encoding="utf-8"))["items"]
    return items


def some(items: list[dict[str, Any]], kind: str, *, waits: bool | None = None) -> list[dict[str, Any]]:
    """Return the objects of a kind; of pods those that wait, or run."""
    found = [item for item in items if item["kind"] == kind]
    return [item for item in found if waits is None or ("nodeName" not in item["spec"]) == waits]


def placed_on(plan: Plan, jobs: set[str]) -> list[str]:
    """Return the nodes of the workers of these jobs."""
    return [part.node for one in plan.placements if one.job in jobs for part in one.assignments for _ in part.workers]


def test_a_node_with_two_pod_slots_left_takes_two_pods() -> None:
    """Forty pods of a GPU: all are read and placed, at most two of them on the node that runs 27 of its 29 pods."""
    for name, full in (("c03a", {"n0"}), ("c03b", set())):
        found = read_kubernetes(objects(name))
        plan = solve(found)
        waiting = {job.id for job in found.jobs} - {one.job for one in found.running}
        nodes = placed_on(plan, waiting)
        assert (len(waiting), len(nodes), plan.status) == (40, 40, "optimal")
        assert all(nodes.count(node) <= 2 for node in full)


def test_three_hundred_small_pods_beside_a_node_with_one_slot() -> None:
    """Ten nodes of 110 pods each, of which one runs 109: all are placed, at most one of them there."""
    items = objects("c03a")
    one, runs = some(items, "Node")[0], some(items, "Pod", waits=False)[0]
    waits = some(items, "Pod", waits=True)[0]
    cpu = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    nodes = [
        {**one, "metadata": {**one["metadata"], "name": f"n{i}", "uid": f"u{i}", "labels": {}}, "status": status}
        for i, status in enumerate(
            [{**one["status"], "allocatable": {**one["status"]["allocatable"], "pods": "110"}}] * 10
        )
    ]
    pods = [{**runs, "metadata": {**runs["metadata"], "name": f"r{i}"}} for i in range(109)]
    pods += [
        {
            **waits,
            "metadata": {**waits["metadata"], "name": f"p{i}", "uid": f"p{i}"},
            "spec": {**waits["spec"], "containers": [{"name": "main", "resources": cpu}]},
        }
        for i in range(300)
    ]
    found = read_kubernetes([*nodes, *pods])
    waiting = {job.id for job in found.jobs} - {held.job for held in found.running}
    on = placed_on(solve(found), waiting)
    assert (len(waiting), len(on)) == (300, 300)
    assert on.count("n0") <= 1


def test_a_gang_is_placed_elsewhere() -> None:
    """Four workers of a GPU beside a node with three slots left."""
    items = objects("c03a")
    gang = some(items, "Pod", waits=True)[:4]
    for pod in gang:
        pod["metadata"]["labels"] = {"jobset.sigs.k8s.io/jobset-name": "g"}
    found = read_kubernetes([*some(items, "Node"), *some(items, "Pod", waits=False)[1:], *gang])
    (waiting,) = {job.id for job in found.jobs} - {held.job for held in found.running}
    on = placed_on(solve(found), {waiting})
    assert len(on) == 4
    assert on.count("n0") <= 3


def test_replicas_that_exclude_each_other_need_a_node_each() -> None:
    """Ten replicas, one node: nine more, proven."""
    found = read_kubernetes(objects("c01g"))
    assert len(found.jobs) == 10
    (answer,) = add(found, found.cluster.machines[0].id, limits=Limits(time_limit_s=20)).types
    assert (answer.found, answer.proven) == (9, True)


@pytest.mark.parametrize(
    ("name", "held", "free"),
    [
        ("c07b", 2000, 14_000),  # a resize that its node cannot make: what the node keeps for the container
        ("c07c", 12_000, 4000),  # a sidecar that was made larger holds what was allocated to it
        ("c07e", 4250, 11_750),  # the pod as a whole, and the overhead of its runtime
        ("c07f", 0, 10_000),  # a daemon that was made smaller holds what it had until its node has resized it
    ],
)
def test_a_container_holds_what_its_node_keeps_for_it(name: str, held: int, free: int) -> None:
    found = read_kubernetes(objects(name))
    taken = sum(part.cpu_millicores for one in found.running for part in one.assignments)
    assert (taken, found.cluster.machines[0].cpu_millicores - taken) == (held, free)


@pytest.mark.parametrize("name", ["c10a", "c10c", "c11a", "c11b", "c29a", "c29b"])
def test_claims_for_other_things_stop_no_pod(name: str) -> None:
    """GPUs that a driver of DRA serves, network cards, IMEX channels, volumes made on the node of their pod."""
    found = read_kubernetes(objects(name))
    (node,) = placed_on(solve(found), {"ml/w"})
    assert node == "n1" if name == "c10c" else node in {"n0", "n1"}
    assert len(found.cluster.machines[0].gpus) == 8


def test_a_claim_that_may_be_for_gpus_is_left_out_in_words() -> None:
    """Neither the template of the claim nor the class of the slices' devices is listed: nothing is proven about it."""
    found = read_kubernetes(objects("c10b"))
    assert [job.id for job in found.jobs] == ["ml/r"]
    assert "devices that are not read: a ResourceClaim: 1 (ml/w)." in notes_of(found)
