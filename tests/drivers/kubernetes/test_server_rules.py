"""The API server of the tests keeps the rules that the driver needs; its objects are those of the client's models."""

import threading

import pytest

from helpers.kubernetes_api import Refusal
from helpers.kubernetes_cluster import gang, pod
from helpers.kubernetes_models import as_model, differences
from placeopt.drivers.kubernetes import Api, Lease

PATH = "/api/v1/namespaces/default/pods/a"


def terms(*found):
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(found)}}
    return {"spec": {"affinity": {"nodeAffinity": required}}}


ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
NAME = {"key": "metadata.name", "operator": "In", "values": ["n0"]}


@pytest.mark.parametrize(
    ("own", "patch", "words"),
    [
        ({}, {"spec": {"schedulingGates": [{"name": "placeopt.io/gate"}, {"name": "more"}]}}, "only deletion"),
        ({}, {"spec": {"priority": 3}}, "may not change"),
        ({}, {"metadata": {"resourceVersion": "1"}}, "modified"),
        ({}, {"metadata": {"uid": "other"}}, "modified: uid"),
        ({"gated": False}, terms({"matchFields": [NAME]}), "only pods with scheduling gates"),
        (terms({"matchExpressions": [ZONE]})["spec"], terms({"matchFields": [NAME]}), "only additions"),
        (terms({"matchExpressions": [ZONE]})["spec"], terms({"matchExpressions": [ZONE]}, {}), "no additions"),
        (terms({})["spec"], terms({"matchFields": [NAME]}), "stays empty"),
    ],
)
def test_what_a_patch_may_not_do(world, own, patch, words):
    world.submit(pod("a", **own))
    with pytest.raises(Refusal, match=words):
        world.api.answer("PATCH", PATH, {}, patch)


def test_what_a_patch_may_do(world):
    world.submit(pod("a", **terms({"matchExpressions": [ZONE]})["spec"]))
    with pytest.raises(Refusal):  # it is gated
        world.api.bind("a", "n0")
    world.api.answer("PATCH", PATH, {}, terms({"matchExpressions": [ZONE], "matchFields": [NAME]}))
    lifted = world.api.answer("PATCH", PATH, {}, {"spec": {"schedulingGates": None}})
    assert "schedulingGates" not in lifted["spec"]


def test_every_object_and_body_is_one_of_the_clients_models(world):
    world.add_nodes("n0")
    world.submit(pod("a", 2), *gang("g", 2))
    lease = Lease(Api(str(world.config)), "placeopt", "me", threading.Event())
    lease.renew()
    lease.renew()
    driven = world.connect()
    driven.turn()
    world.settle()
    driven.driver._calls.evict(world.api.all("pods")[0])
    for plural, model in {"pods": "V1Pod", "nodes": "V1Node"}.items():
        for found in world.api.all(plural):
            assert differences(found, as_model(found, model)) == []
    checked = set()
    for method, path, body in world.api.writes:
        model = "V1Lease" if "/leases" in path else "V1Eviction" if path.endswith("/eviction") else "V1Pod"
        checked.add((method, model))
        if model == "V1Pod" and "spec" in body:
            body = {**body, "spec": {"containers": [], **body["spec"]}}  # which the model of a whole pod requires
        assert differences(body, as_model(body, model)) == [], path
    assert checked == {("PATCH", "V1Pod"), ("POST", "V1Eviction"), ("POST", "V1Lease"), ("PUT", "V1Lease")}
