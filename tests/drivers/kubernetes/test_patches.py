"""What a lift adds to the rules of a pod can be taken out again for the next reading."""

from collections.abc import Callable
from typing import Any

import pytest

from drivers.conftest import Driven
from helpers.kubernetes_api import KubernetesApi
from helpers.kubernetes_cluster import node, pod
from placeopt.formats import read_kubernetes

ZONE = {"key": "zone", "operator": "In", "values": ["a", "b"]}
NAMES = {"key": "metadata.name", "operator": "NotIn", "values": ["n7"]}
HERE = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
PREFERRED = [{"weight": 1, "preference": {"matchExpressions": [ZONE]}}]
APART = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}


@pytest.mark.parametrize(
    "affinity",
    [
        None,
        {"nodeAffinity": required({"matchExpressions": [ZONE]})},
        {"nodeAffinity": required({"matchExpressions": [ZONE]}, {"matchFields": [NAMES]}, {})},
        {"nodeAffinity": required({"matchFields": [HERE]}, {"matchExpressions": [ZONE], "matchFields": [HERE]})},
        {"nodeAffinity": {**required({"matchExpressions": [ZONE]}), "preferred": PREFERRED}},
        {"nodeAffinity": {"preferred": PREFERRED}, "podAntiAffinity": APART},
        {"podAntiAffinity": APART},
    ],
)
def test_the_rules_of_the_owner_come_back(
    api: KubernetesApi, connect: Callable[..., Driven], affinity: dict[str, Any] | None
) -> None:
    for name, labels in (("n0", {"zone": "a"}), ("n1", {"zone": "b"}), ("n7", {})):
        api.add("nodes", node(name, **labels))
    before = api.add("pods", pod("a", **({} if affinity is None else {"affinity": affinity})))
    driven = connect()
    assert driven.turn().started == 1
    after = api.get("pods", "a")
    assert after is not None
    terms = after["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (chosen,) = {term["matchFields"][-1]["values"][0] for term in terms["nodeSelectorTerms"] if term}
    assert all(
        not term or term["matchFields"][-1] == {**HERE, "values": [chosen]} for term in terms["nodeSelectorTerms"]
    )
    driven.turn()  # of a pod that is lifted and not bound: it is read as one that its owner submitted, on that node
    spec = {key: value for key, value in before["spec"].items() if key != "schedulingGates"}
    bound = {**before, "spec": {**spec, "nodeName": chosen}, "status": {"phase": "Running"}}
    (expected,) = read_kubernetes([*api.all("nodes"), bound]).jobs
    (read,) = driven.engine.snapshot.jobs
    assert (read.nodes_allowed, read.node_selector, read.options) == (
        expected.nodes_allowed,
        expected.node_selector,
        expected.options,
    )
