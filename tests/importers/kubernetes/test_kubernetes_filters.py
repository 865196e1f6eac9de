"""
What each filter of Kubernetes' scheduler looks at, one case or more for every line of docs/import.md.

Filters: NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, VolumeRestrictions,
VolumeBinding, VolumeZone, PodTopologySpread, DynamicResources (test_kubernetes_devices), and gates; what is counted on
nodes stands in test_kubernetes_amounts, InterPodAffinity in test_kubernetes_affinity.
"""

from typing import Any

import pytest

from helpers.imported_rounds import drained, left_out, notes_of
from helpers.kubernetes_objects import HOSTNAME, node, on_nodes, pod, read
from helpers.node_conditions import chosen_nodes
from placeopt.model import Taint

ZONE, RACK, ROW = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack", "example.com/row"
WEB = {"app": "web"}


def zoned(*names: str) -> list[dict[str, Any]]:
    """Return nodes ``a1``, ``b2`` in the zones of their first letters."""
    return [node(name, labels={ZONE: name[0], HOSTNAME: name}) for name in names]


def gang(name: str, **more: Any) -> dict[str, Any]:
    """Return a pod of the gang ``g``."""
    return pod(name, **{**more, "labels": {"jobset.sigs.k8s.io/jobset-name": "g", **more.get("labels", {})}})


def port(number: int = 8080, **more: Any) -> dict[str, Any]:
    """Return containers with a port of the node."""
    return {"containers": [{"name": "c", "ports": [{"containerPort": number, "hostPort": number, **more}]}]}


def claim(name: str = "data", volume: str | None = "pv", mode: str = "ReadWriteMany") -> dict[str, Any]:
    """Return a volume claim."""
    spec = {"accessModes": [mode], **({"volumeName": volume} if volume else {})}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def volume(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a volume."""
    return {"kind": "PersistentVolume", "metadata": {"name": "pv", "labels": labels or {}}, "spec": spec}


def mounts(name: str, node: str | None = None, **source: Any) -> dict[str, Any]:
    """Return a pod with a volume; by default of a claim."""
    return pod(name, node, volumes=[{"name": "v", **(source or {"persistentVolumeClaim": {"claimName": "data"}})}])


def spread(rule: str) -> dict[str, Any]:
    """Return a pod that is to be spread over zones."""
    return pod("p", topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": rule}])


def named(operator: str, value: str, key: str = "metadata.name") -> dict[str, Any]:
    """Return node affinity by a field of the node."""
    return {"affinity": on_nodes({"key": key, "operator": operator, "values": [value]}, fields=True)}


AB, ABC = zoned("a", "b"), zoned("a1", "a2", "b1")
NUMBERED = [node("x", labels={"n": "7"}), node("y", labels={"n": ""}), node("z")]
SAME_RACKS = [node(zone, labels={ZONE: zone, RACK: "r1"}) for zone in "ab"]
IN_A = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]}
ONLY_A, ALONE = volume(nodeAffinity={"required": IN_A}), claim(mode="ReadWriteOncePod")


@pytest.mark.parametrize(
    ("said", "objects"),
    [  # the nodes on which the pod p, or the gang g, may run (None: all), or why it is left out
        # NodeAffinity: numbers are compared, an absent label has no value; matchFields knows a node's name alone
        (("x",), [*NUMBERED, pod("p", affinity=on_nodes({"key": "n", "operator": "Gt", "values": ["5"]}))]),
        (("y",), [*NUMBERED, pod("p", affinity=on_nodes({"key": "n", "operator": "In", "values": ["5", ""]}))]),
        (("z",), [*NUMBERED, pod("p", affinity=on_nodes({"key": "n", "operator": "DoesNotExist"}))]),
        (("b",), [*AB, pod("p", **named("NotIn", "a"))]),
        ("operator", [*AB, pod("p", **named("In", "a", "metadata.uid"))]),
        # what runs stays where it is, whatever its conditions say by now; elsewhere they hold
        (("b",), [*zoned("a", "b", "c"), pod("p", "a", **named("In", "b"))]),
        # NodePorts, NodeResourcesFit: test_kubernetes_amounts
        # VolumeBinding: a bound volume's nodes; claims that are not bound, or not listed
        (("a",), [*AB, mounts("p"), claim(), ONLY_A]),
        (None, [*AB, mounts("p"), claim(), volume()]),
        ("not listed", [*AB, mounts("p")]),
        ("volumes that are not listed", [*AB, mounts("p"), claim()]),
        ("not bound", [*AB, mounts("p"), claim(volume=None)]),
        (("a",), [*AB, mounts("p", ephemeral={"volumeClaimTemplate": {}}), claim("p-v"), ONLY_A]),
        (None, [*AB, pod("p", volumes=[{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}}])]),
        # VolumeZone: of one value or several; nodes without any zone are not held to it
        (("a1", "b1", "bare"), [*zoned("a1", "b1", "c1"), node("bare"), mounts("p"), claim(), volume({ZONE: "a__b"})]),
        # VolumeRestrictions: a claim for one pod alone that another holds; disks named in the pod itself
        ("ReadWriteOncePod", [node("a"), mounts("p"), mounts("r", "a"), ALONE, volume()]),
        (None, [node("a"), mounts("p"), ALONE, volume()]),
        ("awsElasticBlockStore", [node(), mounts("p", awsElasticBlockStore={"volumeID": "vol-1"})]),
        # PodTopologySpread: test_kubernetes_spread; a soft one is a preference
        ("topology spread constraint", [node(), spread("DoNotSchedule")]),
        (None, [node(), spread("ScheduleAnyway")]),
        # gates: Kueue's say that a pod waits for room; any other is about something else
        (None, [node(), pod("p", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])]),
        (None, [node(), pod("p", schedulingGates=[{"name": "kueue.x-k8s.io/topology"}])]),
        ("behind a scheduling gate", [node(), pod("p", schedulingGates=[{"name": "a.b/c"}])]),
    ],
)
def test_where_a_pod_may_run(said: object, objects: list[dict[str, Any]]) -> None:
    found = read(*objects)
    may_run = [chosen_nodes(found, job) for job in found.jobs if job.id.endswith(("/p", "/g"))]
    if isinstance(said, str):
        assert not may_run
        (line,) = [line for line in left_out(found) if "/p" in line or "/g" in line]
        assert said in line
    else:
        assert may_run == [tuple(one.id for one in found.cluster.nodes) if said is None else said]
    gates = any("kueue" in str(one) for one in objects)
    assert ("its quotas are not read" in notes_of(found)) == gates


def test_node_unschedulable_and_conditions() -> None:
    """Cordoned, not ready, not heard of, being deleted: drained. Without conditions, a node's taints decide."""

    def with_ready(status: str, name: str) -> dict[str, Any]:
        found = node(name)
        found["status"]["conditions"] = [{"type": "Ready", "status": status}]
        return found

    leaving = node("leaving")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-22T02:41:55Z"
    closed = [node("cordoned", unschedulable=True), with_ready("False", "down"), with_ready("Unknown", "lost"), leaving]
    found = read(*closed, with_ready("True", "up"), node("new"))
    assert drained(found) == ["cordoned", "down", "lost", "leaving"]


def test_a_taint_that_uncordoning_left_behind_still_counts() -> None:
    """``unschedulable`` is gone from the spec, its taint is not: the scheduler goes by the taint."""
    taint = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    assert read(node(taints=taint)).cluster.nodes[0].taints == (Taint(key="node.kubernetes.io/unschedulable"),)


def test_node_name() -> None:
    """A pod with a node runs there, whatever its phase says."""
    found = read(node(), pod("p", "n", status={"phase": "Pending"}))
    assert found.running[0].assignments[0].node == "n"


FIVE, NO_EXECUTE = "k=5:NoSchedule", "b:NoExecute"


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, [FIVE, NO_EXECUTE]),
        ({"key": "k", "operator": "Exists"}, [FIVE]),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, [FIVE]),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, []),
        ({"key": "b", "operator": "Exists", "effect": "NoExecute"}, [NO_EXECUTE]),
        ({"key": "b", "operator": "Exists", "effect": "NoSchedule"}, []),
        ({"key": "k", "value": "5"}, [FIVE]),
        ({"key": "k", "operator": "Equal", "value": "4"}, []),
        ({"key": "other", "operator": "Exists"}, []),
        ({"key": "k", "operator": "Gt", "value": "4"}, [FIVE]),
        ({"key": "k", "operator": "Gt", "value": "5"}, []),
        ({"key": "k", "operator": "Lt", "value": "6"}, [FIVE]),
        ({"key": "k", "operator": "Lt", "value": "5"}, []),
    ],
)
def test_taint_toleration(toleration: dict[str, str], tolerated: list[str]) -> None:
    """Operators and effects; Gt and Lt compare the taint's value with the toleration's; preferences are no taints."""
    taints = [{"key": "k", "value": "5", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]
    taints.append({"key": "c", "effect": "PreferNoSchedule"})
    elsewhere = {"key": "elsewhere", "operator": "Exists"}
    found = read(node(taints=taints), pod("p", tolerations=[elsewhere, toleration]))
    covered = [
        one
        for one in found.cluster.nodes[0].taints
        if any(t.tolerates(one) for t in found.jobs[0].conditions.tolerations)
    ]
    assert sorted(one.text for one in covered) == sorted(tolerated)


def test_ports_inside_a_gang() -> None:
    """One worker a node."""
    assert read(*AB, gang("p", **port()), gang("q", **port())).jobs[0].options[0].workers_per_node_max == 1


def test_the_class_of_a_runtime_is_in_the_pod() -> None:
    """Overhead and node selector of a runtime class: the API server writes both into the pod."""
    runtime = {"runtimeClassName": "kata", "overhead": {"cpu": "250m"}, "nodeSelector": {"kata": "yes"}}
    job = read(node(), pod("p", asks={"cpu": "1"}, **runtime)).jobs[0]
    assert (job.options[0].demand.cpu_millicores, job.conditions.node_selector) == (1250, {"kata": "yes"})
