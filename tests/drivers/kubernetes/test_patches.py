"""What a lift adds to the rules of a pod can be taken out again for the next reading."""

import pytest

from helpers.kubernetes_cluster import node, pod
from placeopt.importers import read_kubernetes

ZONE = {"key": "zone", "operator": "In", "values": ["a", "b"]}
NAMES = {"key": "metadata.name", "operator": "NotIn", "values": ["n7"]}
HERE = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
PREFERRED = [{"weight": 1, "preference": {"matchExpressions": [ZONE]}}]
APART = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}


def required(*terms):
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
def test_the_rules_of_the_owner_come_back(world, affinity):
    for name, labels in (("n0", {"zone": "a"}), ("n1", {"zone": "b"}), ("n7", {})):
        world.api.add("nodes", node(name, **labels))
    before = world.api.add("pods", pod("a", **({} if affinity is None else {"affinity": affinity})))
    driven = world.connect()
    assert driven.turn().started == 1
    terms = world.pod("a")["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    last = [term["matchFields"][-1] for term in terms["nodeSelectorTerms"] if term]
    chosen = last[0]["values"][0]
    assert last == [{**HERE, "values": [chosen]}] * len(last)
    driven.turn()  # of a pod that is lifted and not bound: it is read as one that its owner submitted, on that node
    spec = {key: value for key, value in before["spec"].items() if key != "schedulingGates"}
    bound = {**before, "spec": {**spec, "nodeName": chosen}, "status": {"phase": "Running"}}
    (expected,) = read_kubernetes([*world.api.all("nodes"), bound]).jobs
    (read,) = driven.engine.snapshot.jobs
    for field in ("conditions", "options"):
        assert getattr(read, field) == getattr(expected, field)
