"""Conditions of pods are judged on every node, imagined ones too; what is not read about moving is unknown."""

import json
from pathlib import Path
from typing import Any

import pytest

from placeopt import Instance, solve, violations
from placeopt.documents import dumps, loads
from placeopt.explain import explain_all
from placeopt.importers import read_kubernetes
from placeopt.whatif import Limits, NodesOfType, add, compare, defrag, fail, fit, parse_job, parse_variants

REPORTS = Path(__file__).parents[1] / "data" / "reports" / "kubernetes"
LIMITS = Limits(time_limit_s=20)


def report(name: str) -> dict[str, Any]:
    """Return the objects of a report."""
    objects: dict[str, Any] = json.loads((REPORTS / f"{name}.json").read_text())
    return objects


def read(name: str) -> Instance:
    """Read a report."""
    return read_kubernetes(report(name))


def asking(*terms: dict[str, Any], **spec: Any) -> Instance:
    """
    Return c01 with other required node affinity, or other fields, of the pod that waits.

    ``a1`` (pool train) is full, ``a2`` (pool serve) is free; a2 has a fifth label, of 64 cores.
    """
    objects = report("c01")
    objects["items"][1]["metadata"]["labels"]["cores"] = "64"
    pod = objects["items"][-1]["spec"]
    pod["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    }
    pod.update(spec)
    return read_kubernetes(objects)


def labels(*expressions: tuple[str, ...]) -> dict[str, Any]:
    """Return a term of label expressions: key, operator, values."""
    return {"matchExpressions": [{"key": key, "operator": op, "values": values} for key, op, *values in expressions]}


def named(operator: str, name: str) -> dict[str, Any]:
    """Return a term about the name of a node."""
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}


def needed(round_: Instance, like: str) -> NodesOfType:
    """Return what is needed of nodes like one."""
    (one,) = add(round_, like, limits=LIMITS).types
    return one


TRAIN = ("pool", "In", "train")


@pytest.mark.parametrize("name", ["c01", "c01b"])
def test_one_more_node_like_a1_whoever_asks(name: str) -> None:
    """The pod asks for the pool of a1, by affinity or by selector: one more such node, proven."""
    round_ = read(name)
    found = needed(round_, "a1")
    assert (found.at_least, found.found) == (1, 1)
    assert needed(round_, "a2").impossible
    variants = parse_variants("nodes:a1=0,1", round_)
    none, one = (each.outcome for each in compare(round_, variants, limits=LIMITS).variants)
    assert (none.jobs_waiting, one.jobs_waiting) == (1, 0)
    kind = round_.cluster.machines[0].id  # its nodes are in two pools, so a node of the type is in neither
    assert needed(round_, kind).never == ("ml/new",)
    (node,) = compare(round_, parse_variants("more=node", round_), limits=LIMITS).variants
    assert (node.gain_low, node.gain_high) == (0, 0)
    queue = explain_all(round_, solve(round_, isolation="thread", time_limit_s=20))
    assert f"one more node of type {kind!r}" not in {freed.change for freed in queue.changes}


def test_a_new_node_is_in_no_state() -> None:
    """Not ready, to be deleted, under pressure: a copy has none of these taints of the node, but all others."""
    objects = report("c01b")
    states = ("node.kubernetes.io/not-ready", "ToBeDeletedByClusterAutoscaler", "node.kubernetes.io/disk-pressure")
    objects["items"][0]["spec"]["taints"] = [{"key": key, "effect": "NoSchedule"} for key in states]
    assert needed(read_kubernetes(objects), "a1").found == 1
    objects["items"][0]["spec"]["taints"].append({"key": "team", "value": "a", "effect": "NoSchedule"})
    assert needed(read_kubernetes(objects), "a1").never == ("ml/new",)


@pytest.mark.parametrize(
    ("terms", "waits", "like_a1", "like_a2"),
    [  # whether it waits now, and then the nodes like a1 and like a2 that let it start: None, no number
        ((labels(("pool", "NotIn", "serve")),), True, 1, None),
        ((labels(("pool", "NotIn", "train")),), False, 0, 0),
        ((labels(("cores", "DoesNotExist")),), True, 1, None),
        ((labels(("cores", "Exists"), TRAIN),), True, None, None),
        ((labels(("cores", "Gt", "63")),), False, 0, 0),
        ((labels(("cores", "Lt", "64")),), True, None, None),
        ((labels(("cores", "Exists"), TRAIN), labels(("gone", "DoesNotExist"), TRAIN)), True, 1, None),
        ((labels(TRAIN), labels(("pool", "In", "other", "serve"))), False, 0, 0),
        ((named("In", "a1"),), True, None, None),
        ((named("NotIn", "a2"),), True, 1, 1),
        ((named("In", "a1"), named("In", "a7")), True, None, None),
        (({**labels(TRAIN), **named("NotIn", "a1")},), True, 1, None),
        ((labels(TRAIN), named("In", "a2")), False, 0, 0),
        ((labels(("pool", "In", "gone")), named("NotIn", "a2")), True, 1, 1),
        (
            ({**labels(TRAIN), **named("NotIn", "a2")}, {**labels(("cores", "Exists")), **named("NotIn", "a2")}),
            True,
            1,
            1,
        ),
        ((labels(("kubernetes.io/hostname", "In", "a1", "a9")),), True, None, None),
        ((labels(("kubernetes.io/hostname", "NotIn", "a2")),), True, 1, 1),
        ((), True, None, None),
    ],
)
def test_other_conditions(terms: tuple[Any, ...], waits: bool, like_a1: int | None, like_a2: int | None) -> None:
    """Other operators, terms joined by or, names; what is added has a name and a hostname of its own."""
    round_ = asking(*terms)
    plan = solve(round_, isolation="thread", time_limit_s=20)
    assert [one.job for one in plan.unplaced] == ["ml/new"] * waits
    assert [needed(round_, node).found for node in ("a1", "a2")] == [like_a1, like_a2]


@pytest.mark.parametrize("term", [("zone", "In", "z1"), ("zone", "Exists")])
def test_a_label_that_only_the_name_of_a_level_resembles(term: tuple[str, ...]) -> None:
    """Nodes say topology.kubernetes.io/zone; a pod that asks for the label zone, which none has, waits."""
    objects = report("c01")
    for node in objects["items"][:2]:
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = "z1"
    affinity = objects["items"][-1]["spec"]["affinity"]["nodeAffinity"]
    affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = [labels(term)]
    found = needed(read_kubernetes(objects), "a2")
    assert found.never == ("ml/new",)


@pytest.mark.parametrize("spec", [{}, {"nodeSelector": {"kubernetes.io/hostname": "host-1"}}])
def test_a_copy_never_helps_a_pod_that_names_the_host(spec: dict[str, Any]) -> None:
    """Also where the hostname differs from the name of the node; by the type, too."""
    objects = report("c01h")
    if spec:
        objects["items"][0]["metadata"]["labels"]["kubernetes.io/hostname"] = "host-1"
        objects["items"][-1]["spec"].update(spec)
    round_ = read_kubernetes(objects)
    for kind in ("a1", "a2", round_.cluster.machines[0].id):
        found = needed(round_, kind)
        assert (found.impossible, found.never) == (True, ("ml/new",))
    round_ = round_.model_copy(
        update={"jobs": tuple(j.with_conditions(node_selector={}, nodes_allowed=("a1",)) for j in round_.jobs)}
    )
    assert needed(round_, "a1").never == ("ml/new",)


def test_a_pool_whose_nodes_share_a_taint() -> None:
    """c13c: labels and taints that all nodes of a type share go with the type, whoever asks."""
    round_ = read("c13c")
    assert needed(round_, "type0-8xH100").found == 1
    queue = explain_all(round_, solve(round_, isolation="thread", time_limit_s=20))
    assert "one more node of type 'type0-8xH100'" in {freed.change for freed in queue.changes}
    gains = [(one.gain_low, one.gain_high) for one in compare(round_, parse_variants("more=node", round_)).variants]
    assert sum(low == high > 0 for low, high in gains) == 1


def test_an_imagined_job_tolerates_what_every_job_there_must() -> None:
    """c13e: the taint of the whole pool is assumed to be tolerated, and named; another one is not."""
    objects = report("c13e")
    round_ = read_kubernetes(objects)
    found = fit(round_, parse_job("2x4", round_), limits=LIMITS)
    assert (found.found, found.most, found.tolerated) == (2, 2, ("nvidia.com/gpu=present:NoSchedule",))
    none = fit(round_, parse_job("2x4", round_, tolerates=()), limits=LIMITS)
    assert (none.found, none.most, none.tolerated) == (0, 0, ())
    taints = objects["items"][0]["spec"]["taints"]
    objects["items"][0]["spec"] = {"taints": [*taints, {"key": "team", "value": "a", "effect": "NoExecute"}]}
    round_ = read_kubernetes(objects)
    for keys, copies in ((None, 1), (("nvidia.com/gpu", "team"), 2)):
        assert fit(round_, parse_job("2x4", round_, tolerates=keys), limits=LIMITS).found == copies


@pytest.mark.parametrize("name", ["c02a", "c02b"])
def test_a_pod_with_a_volume_that_may_be_anywhere_can_move(name: str) -> None:
    """The claim is on NFS: without node affinity, so whichever node fails, the pod finds a place."""
    assert fail(read(name), "node", limits=LIMITS).answer == "yes"


@pytest.mark.parametrize(
    ("volume", "answer"),
    [
        ({}, "yes"),
        ({"nodeAffinity": {"required": {"nodeSelectorTerms": [labels(("kubernetes.io/hostname", "In", "a1"))]}}}, "no"),
        ({"nodeAffinity": {"required": {"nodeSelectorTerms": [labels(("zone", "DoesNotExist"))]}}}, "yes"),
        ({"nodeAffinity": {"required": {"nodeSelectorTerms": [labels(("zone", "Exists"))]}}}, "no"),
        (None, "unknown"),
    ],
)
def test_what_a_volume_asks_of_nodes(volume: dict[str, Any] | None, answer: str) -> None:
    """A local volume keeps its pod; of a volume that is not listed nothing is known, so it is not said that it does."""
    objects = report("c02b")
    *others, last = objects["items"]
    last["spec"].update(volume or {})
    objects["items"] = others if volume is None else [*others, last]
    assert fail(read_kubernetes(objects), "node", limits=LIMITS).answer == answer


def test_unknown_only_where_it_matters() -> None:
    """Were it free to go anywhere, a pod whose volume is not listed would still find no place: then it is known."""
    objects = report("c02b")
    objects["items"].pop()
    objects["items"][1]["status"]["allocatable"]["nvidia.com/gpu"] = "0"
    assert fail(read_kubernetes(objects), "node", limits=LIMITS).answer == "no"


@pytest.mark.parametrize("name", ["c31a", "c31b"])
def test_pods_with_such_volumes_make_room(name: str) -> None:
    """One of two nodes can be emptied."""
    (point,) = defrag(read(name), "node", everyone=True, limits=LIMITS).front
    assert (point.freed, len(point.moves)) == (1, 1)


def test_many_pods_with_one_affinity() -> None:
    """2,500 nodes and 10,000 pods: what all say is said once in memory, and shortly in the file."""
    node, pod = report("c01")["items"][0], report("c01")["items"][-1]
    nodes = [
        {**node, "metadata": {"name": f"node-{i:05}.pool.example.org", "labels": {"pool": ("serve", "train")[i % 2]}}}
        for i in range(2500)
    ]
    pod["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    pods = [{**pod, "metadata": {"name": f"p{i}", "namespace": "ml"}} for i in range(10_000)]
    round_ = read_kubernetes({"kind": "List", "items": [*nodes, *pods]})
    assert len(text := dumps(round_)) < 20 * 2**20
    assert len({id(job.conditions) for job in loads(Instance, text).jobs}) == 1
    plan = solve(round_, time_limit_s=60, isolation="thread", method="stranding")
    assert len(plan.placements) == 10_000
    assert not violations(round_, plan)
