"""
What a node counts by name, as NodeResourcesFit, NodePorts and InterPodAffinity by hostname do: all pods are read.

Each case says by hand how many of the waiting pods ``p*`` Kubernetes' scheduler could start, and where.
"""

from typing import Any

import pytest

from helpers.imported_rounds import drained, notes_of
from helpers.kubernetes_objects import HOSTNAME, apart, node, pod, read, term
from placeopt import solve
from placeopt.check import violations
from placeopt.model import Instance

SMALL: dict[str, Any] = {"asks": {"cpu": "1m"}}
WEB = {"app": "web"}
DAEMON = {"ownerReferences": [{"kind": "DaemonSet", "name": "d"}]}


def hosts(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [node(name, labels={HOSTNAME: name}, **more) for name in names]


def many(count: int, **more: Any) -> list[dict[str, Any]]:
    """Return waiting pods without GPUs."""
    return [pod(f"p{i}", **{**SMALL, **more}) for i in range(count)]


def port(number: int = 8080, **more: Any) -> dict[str, Any]:
    """Return containers with a port of the node."""
    return {"containers": [{"name": "c", "ports": [{"containerPort": number, "hostPort": number, **more}]}]}


def disk(amount: str, **more: Any) -> dict[str, Any]:
    return {"asks": {"cpu": "1m", "ephemeral-storage": amount}, **more}


def started(found: Instance) -> dict[str, int]:
    """Return how many of the waiting pods the best plan starts on each node."""
    plan = solve(found, time_limit_s=60, isolation="thread")
    assert plan.status == "optimal"
    assert violations(found, plan) == []
    count: dict[str, int] = {}
    for placed in plan.placements:
        for part in placed.assignments if placed.job.startswith(("default/p", "default/g")) else ():
            count[part.node] = count.get(part.node, 0) + len(part.workers)
    return count


FULL = node("full", has={"pods": "1"})
LOCAL, OTHER = port(hostIP="10.0.0.1"), port(hostIP="10.0.0.2")
REPLICA: dict[str, Any] = {**SMALL, "labels": WEB, "affinity": apart(term(WEB))}


@pytest.mark.parametrize(
    ("expected", "objects"),
    [
        # pods: a node has its number of them, less daemons; a full node is closed by that amount alone
        ({"free": 3}, [FULL, node("free", has={"pods": "3"}), pod("r", "full"), *many(5)]),
        ({"n": 1}, [node(has={"pods": "3"}), pod("r", "n"), pod("d", "n", **SMALL, **DAEMON), *many(3)]),
        ({"n": 4}, [node(has={"pods": "10"}), *(pod(f"p{i}") for i in range(100))]),
        ({"n": 2}, [node(has={"pods": "2"}), node("none"), *many(4)]),  # nothing stated is none, where others state it
        ({"n": 9}, [node(), *many(9)]),  # nowhere stated: not counted
        # it has more pods than it takes: those stay, and nothing starts there
        ({}, [node(has={"pods": "1"}), pod("r", "n"), pod("s", "n"), *many(2)]),
        # storage and huge pages, in MiB: waiting pods rounded up, what runs counted to the byte
        (
            {"a": 1, "b": 1},
            [*(node(name, has={"ephemeral-storage": "100Gi"}) for name in "ab"), *many(4, **disk("60Gi"))],
        ),
        ({"a": 2}, [node("a", has={"ephemeral-storage": "100Gi"}), node("b"), *many(4, **disk("50Gi"))]),
        ({"n": 1}, [node(has={"ephemeral-storage": "3Mi"}), pod("r", "n", **disk("1.5Mi")), *many(3, **disk("1Mi"))]),
        ({"n": 2}, [node(has={"hugepages-2Mi": "2Gi"}), *many(3, asks={"cpu": "1m", "hugepages-2Mi": "1Gi"})]),
        # more storage is held than the node has: closed to what asks for some, open to the rest
        ({"n": 2}, [node(has={"ephemeral-storage": "1Gi"}), pod("r", "n", **disk("2Gi")), *many(2)]),
        ({}, [node(has={"ephemeral-storage": "1Gi"}), pod("r", "n", **disk("2Gi")), *many(2, **disk("1Mi"))]),
        # other devices and network cards
        (
            {"n": 2},
            [
                node(has={"rdma/hca": "5"}),
                pod("d", "n", asks={"rdma/hca": "1"}, **DAEMON),
                *many(3, asks={"rdma/hca": "2"}),
            ],
        ),
        ({"n": 1}, [node(has={"habana.ai/gaudi": "8"}), *many(3, asks={"habana.ai/gaudi": "8"})]),
        # ports, by address and protocol
        ({"a": 1, "b": 1, "c": 1}, [*hosts(*"abc"), *many(4, **port())]),
        ({"b": 1}, [*hosts(*"ab"), pod("r", "a", **port()), *many(2, **port())]),
        ({"b": 1}, [*hosts(*"ab"), pod("r", "a", **port(), **DAEMON), *many(2, **port())]),
        ({"a": 2}, [*hosts("a"), pod("p", **port(protocol="UDP")), pod("p2", **port())]),
        ({"a": 2}, [*hosts("a"), pod("p", **LOCAL), pod("p2", **OTHER)]),
        ({"a": 1}, [*hosts("a"), pod("r", "a", **LOCAL), pod("p", **OTHER), pod("p2", **LOCAL)]),
        ({"a": 1}, [*hosts("a"), *many(2, **port(hostIP="")), pod("p", **port(hostIP="::"))]),
        ({}, [*hosts("a"), pod("r", "a", **LOCAL), pod("p", **port())]),
        ({"a": 1}, [*hosts("a"), pod("r", "a", **port(9090)), pod("p", **port())]),
        ({"a": 2}, [*hosts("a"), pod("p", **LOCAL), pod("p1", **OTHER), pod("p2", **OTHER)]),
        # a sidecar's port counts as a container's
        (
            {"b": 1},
            [
                *hosts(*"ab"),
                pod("r", "a", **port()),
                *many(2, initContainers=[{"restartPolicy": "Always", **port()["containers"][0]}]),
            ],
        ),
        # replicas that exclude each other by hostname: one a node; others whom they exclude only share with their like
        ({"a": 1, "b": 1, "c": 1}, [*hosts(*"abc"), *many(4, **REPLICA)]),
        ({"b": 1}, [*hosts(*"ab"), pod("r", "a", **REPLICA), *many(3, **REPLICA)]),
        ({"b": 1}, [*hosts(*"ab"), pod("r", "a", **SMALL, labels=WEB), *many(2, **REPLICA)]),
        (
            {"a": 1, "b": 2},
            [*hosts(*"ab"), pod("r", "b", **SMALL, labels=WEB), *many(2, labels=WEB), pod("pr", **REPLICA)],
        ),
        ({"a": 3}, [*hosts(*"a"), *many(3, labels=WEB), pod("r", "a", **SMALL, labels=WEB)]),
    ],
)
def test_how_many_start(expected: dict[str, int], objects: list[dict[str, Any]]) -> None:
    found = read(*objects)
    assert started(found) == expected
    assert "Left out" not in notes_of(found)
    assert drained(found) == []
    assert len(found.jobs) == sum(one["kind"] == "Pod" and "ownerReferences" not in one["metadata"] for one in objects)


def test_a_gang_goes_elsewhere_while_a_node_has_few_slots() -> None:
    """Four workers start on the node with room for them; the other's last slots close nothing."""
    gang = [pod(f"p{i}", labels={"jobset.sigs.k8s.io/jobset-name": "g"}) for i in range(4)]
    few = node("few", has={"pods": "3"})
    assert started(read(few, node("free", has={"pods": "9"}), *gang)) == {"free": 4}
    assert started(read(few, *gang)) == {}


def test_names_are_those_that_some_pod_asks_for() -> None:
    """Machine types that differ in storage alone are one, while no pod asks for storage."""
    nodes = [node(name, has={"pods": "110", "ephemeral-storage": size}) for name, size in (("a", "1Gi"), ("b", "2Gi"))]
    assert [kind.resources for kind in read(*nodes, *many(1)).cluster.machines] == [{"pods": 110}]
    with_disk = read(*nodes, pod("r", "a", **disk("1Mi"))).cluster.machines
    assert [kind.resources["ephemeral-storage"] for kind in with_disk] == [1024, 2048]


def test_a_port_is_an_amount_whoever_has_it() -> None:
    """So a pod that runs may be moved, but not beside another one with the port, nor beside a daemon that has it."""
    daemon = pod("d", "b", **port(), asks={}, ownerReferences=[{"kind": "DaemonSet"}])
    found = read(*hosts(*"abc"), pod("r", "a", **port()), daemon)
    assert found.jobs[0].conditions.nodes_allowed is None
    (option,) = found.jobs[0].options
    assert option.demand.resources["hostPort:8080/TCP"] == 1
    room = {node.id: found.cluster.machine_of(node).resources.get("hostPort:8080/TCP") for node in found.cluster.nodes}
    assert room == {"a": 1, "b": None, "c": 1}
