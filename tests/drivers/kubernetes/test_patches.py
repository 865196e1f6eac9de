"""What a lift adds to the rules of a pod can be taken out again for the next reading."""

from typing import Any

import pytest

from helpers.kubernetes_api import KubernetesApi
from helpers.kubernetes_cluster import pod
from placeopt.drivers.kubernetes.marks import Mark, mark_of
from placeopt.drivers.kubernetes.patches import as_submitted, lift_patch

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
def test_the_rules_of_the_owner_come_back(api: KubernetesApi, affinity: dict[str, Any] | None) -> None:
    before = api.add("pods", pod("a", **({} if affinity is None else {"affinity": affinity})))
    mark = Mark("round", "plan", "default/a", 1, "n0")
    after = api.answer("PATCH", "/api/v1/namespaces/default/pods/a", {}, lift_patch(before, mark))
    assert mark_of(after) == mark
    terms = after["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert all(not term or term["matchFields"][-1] == HERE for term in terms["nodeSelectorTerms"])
    rest = {key: value for key, value in before["spec"].items() if key != "schedulingGates"}
    assert as_submitted(after, mark)["spec"] == rest
