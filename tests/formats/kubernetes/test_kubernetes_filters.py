"""
What each filter of Kubernetes' scheduler looks at, one test or more for every line of docs/import.md.

Filters: NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, VolumeRestrictions,
VolumeBinding, VolumeZone, PodTopologySpread, InterPodAffinity, DynamicResources (test_kubernetes_devices), and gates.
"""

from pathlib import Path
from typing import Any

import pytest

from helpers.kubernetes_objects import HOSTNAME, apart, near, node, on_nodes, pod, read, term
from placeopt import solve
from placeopt.model import Instance, Job

ZONE = "topology.kubernetes.io/zone"
WEB = {"app": "web"}


def allowed(found: Instance, name: str = "default/p") -> tuple[str, ...] | None:
    """Return the nodes that a job's list allows; None is all."""
    return next(job.nodes_allowed for job in found.jobs if job.id == name)


def zoned(*names: str) -> list[dict[str, Any]]:
    """Return nodes ``a1``, ``b2`` in the zones of their first letters."""
    return [node(name, labels={ZONE: name[0], HOSTNAME: name}) for name in names]


def gang(name: str, **more: Any) -> dict[str, Any]:
    """Return a pod of the gang ``g``."""
    return pod(name, **{**more, "labels": {"ray.io/cluster": "g", **more.get("labels", {})}})


def left_out(found: Instance, words: str, job: str = "default/p") -> bool:
    """Tell whether a job is left out for a reason with these words."""
    lines = [line for line in found.note.splitlines() if line.startswith("Left out") and words in line]
    return job not in {one.id for one in found.jobs} and len(lines) == 1 and job in lines[0]


def test_node_unschedulable_and_conditions(tmp_path: Path) -> None:
    """Cordoned, not ready, not heard of, being deleted: drained. Without conditions, a node's taints decide."""

    def with_ready(status: str, name: str) -> dict[str, Any]:
        found = node(name)
        found["status"]["conditions"] = [{"type": "Ready", "status": status}]
        return found

    leaving = node("leaving")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-22T02:41:55Z"
    nodes = [node("cordoned", unschedulable=True), with_ready("False", "down"), with_ready("Unknown", "lost"), leaving]
    found = read(tmp_path, *nodes, with_ready("True", "up"), node("new"))
    assert {one.id for one in found.cluster.nodes if not one.drained} == {"up", "new"}


def test_a_taint_that_uncordoning_left_behind_still_counts(tmp_path: Path) -> None:
    """``unschedulable`` is gone from the spec, its taint is not: the scheduler goes by the taint."""
    taint = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    found = read(tmp_path, node(taints=taint))
    assert found.cluster.nodes[0].taints == ("node.kubernetes.io/unschedulable=:NoSchedule",)


def test_node_name(tmp_path: Path) -> None:
    """A pod with a node runs there, whatever its phase says."""
    found = read(tmp_path, node(), pod("p", "n", status={"phase": "Pending"}))
    assert found.running[0].assignments[0].node == "n"


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k", "value": "5"}, True),
        ({"key": "k", "operator": "Equal", "value": "4"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Gt", "value": "4"}, True),
        ({"key": "k", "operator": "Gt", "value": "5"}, False),
        ({"key": "k", "operator": "Lt", "value": "6"}, True),
        ({"key": "k", "operator": "Lt", "value": "5"}, False),
    ],
)
def test_taint_toleration(tmp_path: Path, toleration: dict[str, str], tolerated: bool) -> None:
    """Operators and effects; Gt and Lt compare the taint's value with the toleration's."""
    taints = [{"key": "k", "value": "5", "effect": "NoSchedule"}]
    found = read(tmp_path, node(taints=taints), pod("p", tolerations=[toleration]))
    assert bool(found.jobs[0].tolerations) == tolerated


def test_node_affinity_by_fields(tmp_path: Path) -> None:
    """``matchFields`` knows a node's name alone."""
    name = {"key": "metadata.name", "operator": "NotIn", "values": ["a"]}
    assert allowed(read(tmp_path, node("a"), node("b"), pod("p", affinity=on_nodes(name, fields=True)))) == ("b",)
    other = {"key": "metadata.uid", "operator": "In", "values": ["a"]}
    assert left_out(read(tmp_path, node(), pod("p", affinity=on_nodes(other, fields=True))), "operator")


def test_affinity_that_no_longer_holds_lets_pods_stay(tmp_path: Path) -> None:
    """Required during scheduling, ignored during execution: the node lost its label, the pod keeps running."""
    only = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    nodes = [node(name) for name in "abc"]
    assert allowed(read(tmp_path, *nodes, pod("p", "a", affinity=on_nodes(only, fields=True)))) == ("a", "b")


def port(number: int = 8080, **more: Any) -> list[dict[str, Any]]:
    """Return containers with a port of the node."""
    return [{"name": "c", "ports": [{"containerPort": number, "hostPort": number, **more}]}]


def test_node_ports(tmp_path: Path) -> None:
    """A port is taken on a node by address and protocol; a gang has one worker a node; of two that wait one is read."""
    nodes = [node("a"), node("b")]
    runs = pod("r", "a", containers=port())
    assert allowed(read(tmp_path, *nodes, runs, pod("p", containers=port()))) == ("b",)
    assert allowed(read(tmp_path, *nodes, runs, pod("p", containers=port(protocol="UDP")))) is None
    local = pod("r", "a", containers=port(hostIP="10.0.0.1"))
    assert allowed(read(tmp_path, *nodes, local, pod("p", containers=port(hostIP="10.0.0.2")))) is None
    assert allowed(read(tmp_path, *nodes, local, pod("p", containers=port(hostIP="::")))) == ("b",)
    pair = read(tmp_path, *nodes, gang("p", containers=port()), gang("q", containers=port()))
    assert pair.jobs[0].options[0].workers_per_node_max == 1
    found = read(tmp_path, *nodes, pod("o", containers=port()), pod("p", containers=port()))
    assert left_out(found, "a port of the node")


def test_pods_on_a_node(tmp_path: Path) -> None:
    """A node that runs as many pods as it takes is drained; those that complete the number are taken, no more."""
    full = node("full", has={"pods": "1"})
    found = read(tmp_path, full, node("free", has={"pods": "3"}), pod("r", "full"), *(pod(f"p{i}") for i in range(2)))
    assert [one.drained for one in found.cluster.nodes] == [True, False]
    assert len(found.jobs) == 3
    few = {"asks": {"cpu": "1m"}}
    found = read(tmp_path, node(has={"pods": "3"}), *(pod(f"p{i}", **few) for i in range(5)))
    assert len(found.jobs) == 3
    assert "asking for pods, of which nodes could run short: plans do not count it: 2 (default/p3" in found.note


def test_few_gpus_keep_the_number_of_pods_below_the_limit(tmp_path: Path) -> None:
    """A hundred pods of a GPU each: no node of four could run ten at once, so all are read."""
    assert len(read(tmp_path, node(has={"pods": "10"}), *(pod(f"p{i}") for i in range(100))).jobs) == 100


def test_network_cards_and_storage(tmp_path: Path) -> None:
    """
    Extended resources are named ones, counted exactly.

    Of others, nodes with too few are closed; where a node could run short the last ones are left out.
    """
    card = {"nvidia.com/gpu": "1", "rdma/hca": "1"}
    nodes = [node("a", has={"rdma/hca": "2"}), node("b", has={"rdma/hca": "2"}), node("c")]
    runs, daemon = (
        pod("r", "b", asks={"rdma/hca": "1"}),
        pod("d", "a", asks={"rdma/hca": "1"}, ownerReferences=[{"kind": "DaemonSet"}]),
    )
    found = read(tmp_path, *nodes, runs, daemon, *(pod(f"p{i}", asks=card) for i in range(3)))
    machine_of = {kind.id: kind.resources for kind in found.cluster.machines}
    assert [machine_of[one.machine] for one in found.cluster.nodes] == [{"rdma/hca": 1}, {"rdma/hca": 2}, {}]
    assert [job.id for job in found.jobs] == ["default/r", "default/p0", "default/p1", "default/p2"]
    assert all(job.options[0].demand.resources == {"rdma/hca": 1} for job in found.jobs)
    plan = solve(found)
    assert [held.job for held in plan.placements if held.job != "default/r"] == ["default/p0", "default/p1"]
    alone = read(tmp_path, node(), pod("p", asks=card))
    assert "1 rdma/hca" in solve(alone).unplaced[0].detail
    many = [pod(f"p{i}", asks={"cpu": "1m", "hugepages-2Mi": "1Gi"}) for i in range(3)]
    assert left_out(read(tmp_path, node(has={"hugepages-2Mi": "2Gi"}), *many), "asking for hugepages-2Mi", "default/p2")
    disk = {"cpu": "1", "ephemeral-storage": "1Gi"}
    assert allowed(read(tmp_path, node("a", has={"ephemeral-storage": "1G"}), node("b"), pod("p", asks=disk))) == ()


def claim(name: str, volume: str | None = "pv", mode: str = "ReadWriteMany") -> dict[str, Any]:
    """Return a volume claim."""
    spec = {"accessModes": [mode], **({"volumeName": volume} if volume else {})}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def volume(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a volume."""
    return {"kind": "PersistentVolume", "metadata": {"name": "pv", "labels": labels or {}}, "spec": spec}


def mounts(name: str, node: str | None = None, of: str = "data") -> dict[str, Any]:
    """Return a pod with a volume claim."""
    return pod(name, node, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": of}}])


def test_volume_binding(tmp_path: Path) -> None:
    """A bound volume's nodes; claims that are not bound, or not listed, leave their pods out."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]}
    nodes = zoned("a1", "b1")
    local = volume(nodeAffinity={"required": terms})
    assert allowed(read(tmp_path, *nodes, mounts("p"), claim("data"), local)) == ("a1",)
    assert allowed(read(tmp_path, *nodes, mounts("p"), claim("data"), volume())) is None
    assert left_out(read(tmp_path, *nodes, mounts("p")), "not listed")
    assert left_out(read(tmp_path, *nodes, mounts("p"), claim("data")), "volumes that are not listed")
    assert left_out(read(tmp_path, *nodes, mounts("p"), claim("data", None)), "not bound")
    made = pod("p", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}])
    assert allowed(read(tmp_path, *nodes, made, claim("p-scratch"), local)) == ("a1",)
    plain = pod("p", volumes=[{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}}])
    assert allowed(read(tmp_path, *nodes, plain)) is None


def test_volume_zone(tmp_path: Path) -> None:
    """A volume's zone label, of one value or several; nodes without any zone are not held to it."""
    nodes = [*zoned("a1", "b1", "c1"), node("bare")]
    found = read(tmp_path, *nodes, mounts("p"), claim("data"), volume({ZONE: "a__b"}))
    assert allowed(found) == ("a1", "b1", "bare")


def test_volume_restrictions(tmp_path: Path) -> None:
    """A claim for one pod alone that another holds; disks named in the pod itself."""
    alone = claim("data", mode="ReadWriteOncePod")
    assert left_out(read(tmp_path, node(), mounts("p"), mounts("r", "n"), alone, volume()), "ReadWriteOncePod")
    assert allowed(read(tmp_path, node(), mounts("p"), alone, volume())) is None
    disk = pod("p", volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "vol-1"}}])
    assert left_out(read(tmp_path, node(), disk), "awsElasticBlockStore")


def test_pod_topology_spread(tmp_path: Path) -> None:
    """It counts pods as they come, which no rule of a round does; a soft one is a preference."""

    def spread(rule: str) -> dict[str, Any]:
        return pod("p", topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": rule}])

    assert left_out(read(tmp_path, node(), spread("DoNotSchedule")), "topology spread constraint")
    assert allowed(read(tmp_path, node(), spread("ScheduleAnyway"))) is None


def test_anti_affinity_against_what_runs(tmp_path: Path) -> None:
    """By host, by zone, in both directions, in other namespaces."""
    nodes = zoned("a1", "a2", "b1")
    web = pod("w", "a1", labels=WEB)
    assert allowed(read(tmp_path, *nodes, web, pod("p", affinity=apart(term(WEB))))) == ("a2", "b1")
    assert allowed(read(tmp_path, *nodes, web, pod("p", affinity=apart(term(WEB, ZONE))))) == ("b1",)
    repels = pod("r", "a1", affinity=apart(term(WEB, ZONE)))
    assert allowed(read(tmp_path, *nodes, repels, pod("p", labels=WEB))) == ("b1",)
    assert allowed(read(tmp_path, *nodes, repels, pod("p"))) is None
    elsewhere = pod("p", namespace="other", labels=WEB)
    assert allowed(read(tmp_path, *nodes, repels, elsewhere), "other/p") is None
    named = pod("r", "a1", affinity=apart(term(WEB, namespaces=["other"])))
    assert allowed(read(tmp_path, *nodes, named, elsewhere), "other/p") == ("a2", "b1")
    every = pod("r", "a1", affinity=apart(term(WEB, namespaceSelector={})))
    assert allowed(read(tmp_path, *nodes, every, elsewhere), "other/p") == ("a2", "b1")
    nobody = pod("r", "a1", affinity=apart(term(None)))
    assert allowed(read(tmp_path, *nodes, nobody, pod("p", labels=WEB))) is None


def test_pods_that_take_part_in_rules_stay_in_comparisons(tmp_path: Path) -> None:
    """What is closed to others follows from where these run: audit may not move them, and may move the rest."""
    nodes = zoned("a1", "a2")
    items = (pod("w", "a1", labels=WEB), pod("r", "a2", affinity=apart(term({"app": "db"}))), pod("free", "a2"))
    found = read(tmp_path, *nodes, *items, pod("p", affinity=apart(term(WEB))))
    assert [job.nodes_allowed for job in found.jobs] == [("a1",), ("a2",), None, ("a2",)]


def test_anti_affinity_inside_a_gang(tmp_path: Path) -> None:
    """One worker a host, or a zone; elastic gangs by zone, and gangs that only in part exclude themselves, are out."""
    nodes = zoned("a1", "a2", "b1")
    own = {"labels": WEB, "affinity": apart(term(WEB))}
    option = read(tmp_path, *nodes, gang("p", **own), gang("q", **own)).jobs[0].options[0]
    assert option.workers_per_node_max == 1
    zone = {"labels": WEB, "affinity": apart(term(WEB, ZONE))}
    option = read(tmp_path, *nodes, gang("p", **zone), gang("q", **zone)).jobs[0].options[0]
    assert [(one.level, one.domains, one.workers) for one in option.splits] == [("zone", 2, 1)]
    part = {"affinity": apart(term(WEB))}
    assert left_out(read(tmp_path, *nodes, gang("p", labels=WEB, **part), gang("q", **part)), "some pods", "default/g")
    loose = {"affinity": apart(term(WEB, "example.com/row")), "labels": WEB}
    found = read(tmp_path, *nodes, gang("p", **loose), gang("q", **loose))
    assert left_out(found, "by example.com/row", "default/g")


def test_anti_affinity_between_jobs_that_wait(tmp_path: Path) -> None:
    """The round has no such rule: the larger one is read, the other left out, in either direction."""
    big = {"asks": {"nvidia.com/gpu": "2"}}
    holder, met = pod("p", affinity=apart(term(WEB))), pod("w", labels=WEB, **big)
    assert left_out(read(tmp_path, node("a"), node("b"), holder, met), "anti-affinity to pods that wait too")
    holder, met = pod("w", affinity=apart(term(WEB)), **big), pod("p", labels=WEB)
    assert left_out(read(tmp_path, node("a"), node("b"), holder, met), "anti-affinity to pods that wait too")


def test_affinity(tmp_path: Path) -> None:
    """Beside what runs; a first pod that meets its own term goes anywhere with the label; with nobody, nowhere."""
    nodes = [*zoned("a1", "a2", "b1"), node("bare")]
    web = pod("w", "a1", labels=WEB)
    assert allowed(read(tmp_path, *nodes, web, pod("p", affinity=near(term(WEB))))) == ("a1",)
    assert allowed(read(tmp_path, *nodes, web, pod("p", affinity=near(term(WEB, ZONE))))) == ("a1", "a2")
    first = pod("p", labels=WEB, affinity=near(term(WEB, ZONE)))
    assert allowed(read(tmp_path, *nodes, first)) == ("a1", "a2", "b1")
    assert allowed(read(tmp_path, *nodes, pod("p", affinity=near(term(WEB, ZONE))))) == ()
    waits = pod("w", labels=WEB)
    assert left_out(read(tmp_path, *nodes, waits, pod("p", affinity=near(term(WEB)))), "affinity to pods that wait")
    both = pod("p", affinity=near(term(WEB), term(WEB, ZONE)))
    assert left_out(read(tmp_path, *nodes, web, both), "several terms")


def test_affinity_inside_a_gang(tmp_path: Path) -> None:
    """All in one zone, or on one host; by a label that is no level they are left out."""
    nodes = zoned("a1", "a2", "b1")

    def pair(key: str) -> Instance:
        own = {"labels": WEB, "affinity": near(term(WEB, key))}
        return read(tmp_path, *nodes, gang("p", **own), gang("q", **own))

    assert pair(HOSTNAME).jobs[0].options[0].single_node
    assert [one.level for one in pair(ZONE).jobs[0].options[0].splits] == ["zone"]
    assert left_out(pair("example.com/row"), "no level", "default/g")


def test_racks_of_one_name_in_two_zones_are_one_domain_for_affinity(tmp_path: Path) -> None:
    """The round calls domains by their path, so it would take them for two."""
    rack = "topology.kubernetes.io/rack"
    nodes = [node(zone, labels={ZONE: zone, rack: "r1"}) for zone in "ab"]
    own = {"labels": WEB, "affinity": apart(term(WEB, rack))}
    found = read(tmp_path, *nodes, gang("p", **own), gang("q", **own))
    assert left_out(found, f"by {rack}", "default/g")


def test_namespaces_by_their_labels(tmp_path: Path) -> None:
    """Listed, they decide; not listed, a pod that waits is left out, and one that runs closes its domain to all."""
    chosen = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
    space = {"kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "x"}}}
    nodes = [node("a", labels={HOSTNAME: "a"}), node("b", labels={HOSTNAME: "b"})]
    repels = pod("r", "a", namespace="other", affinity=apart(term(WEB, **chosen)))
    assert allowed(read(tmp_path, *nodes, repels, pod("p", labels=WEB), space)) == ("b",)
    space["metadata"] = {"name": "default", "labels": {"team": "y"}}
    assert allowed(read(tmp_path, *nodes, repels, pod("p", labels=WEB), space)) is None
    found = read(tmp_path, *nodes, repels, pod("p", labels=WEB))
    assert allowed(found) == ("b",)
    assert "namespaces that are not listed closes nodes" in found.note
    waits = pod("p", affinity=apart(term(WEB, **chosen)))
    assert left_out(read(tmp_path, *nodes, pod("w", "a", namespace="other", labels=WEB), waits), "namespaces")


@pytest.mark.parametrize(
    ("gate", "waits"), [("kueue.x-k8s.io/admission", True), ("kueue.x-k8s.io/topology", True), ("a.b/c", False)]
)
def test_scheduling_gates(tmp_path: Path, gate: str, waits: bool) -> None:
    """Kueue's say that a pod waits for room; any other is about something else."""
    found = read(tmp_path, node(), pod("p", schedulingGates=[{"name": gate}]))
    assert bool(found.jobs) == waits
    assert ("its quotas are not read" in found.note) == waits


def test_the_class_of_a_runtime_is_in_the_pod(tmp_path: Path) -> None:
    """Overhead and node selector of a runtime class: the API server writes both into the pod."""
    runtime = {"runtimeClassName": "kata", "overhead": {"cpu": "250m"}, "nodeSelector": {"kata": "yes"}}
    job: Job = read(tmp_path, node(), pod("p", asks={"cpu": "1"}, **runtime)).jobs[0]
    assert (job.options[0].demand.cpu_millicores, job.node_selector) == (1250, {"kata": "yes"})
