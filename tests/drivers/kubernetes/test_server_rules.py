"""The API server of the tests keeps the rules that the driver needs; its objects are those of the client's models."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes import client

from drivers.conftest import Driven
from helpers.kubernetes_api import KubernetesApi
from helpers.kubernetes_cluster import Cluster, gang, node, pod
from helpers.kubernetes_updates import Refusal

PATH = "/api/v1/namespaces/default/pods/a"


def terms(*found: dict[str, Any]) -> dict[str, Any]:
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
        ({}, {"metadata": {"uid": "other"}}, "UID"),
        ({"gated": False}, terms({"matchFields": [NAME]}), "only pods with scheduling gates"),
        (terms({"matchExpressions": [ZONE]})["spec"], terms({"matchFields": [NAME]}), "only additions"),
        (terms({"matchExpressions": [ZONE]})["spec"], terms({"matchExpressions": [ZONE]}, {}), "no additions"),
        (terms({})["spec"], terms({"matchFields": [NAME]}), "stays empty"),
    ],
)
def test_what_a_patch_may_not_do(api: KubernetesApi, own: Any, patch: Any, words: str) -> None:
    api.add("pods", pod("a", **own))
    with pytest.raises(Refusal, match=words):
        api.answer("PATCH", PATH, {}, patch)


def test_what_a_patch_may_do(api: KubernetesApi) -> None:
    api.add("pods", pod("a", **terms({"matchExpressions": [ZONE]})["spec"]))
    api.answer("PATCH", PATH, {}, terms({"matchExpressions": [ZONE], "matchFields": [NAME]}))
    lifted = api.answer("PATCH", PATH, {}, {"spec": {"schedulingGates": None}})
    assert "schedulingGates" not in lifted["spec"]


def test_gated_pods_are_not_bound(api: KubernetesApi) -> None:
    api.add("pods", pod("a"))
    with pytest.raises(Refusal):
        api.bind("a", "n0")


def as_model(found: dict[str, Any], model: str) -> dict[str, Any]:
    """Return an object read into the client's model and written again: what the model lacks is missing."""
    api_client = client.ApiClient()
    response = SimpleNamespace(data=json.dumps(found))
    read = api_client.deserialize(response.data, model, "application/json")
    written: dict[str, Any] = api_client.sanitize_for_serialization(read)
    return written


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Return the paths at which two JSON values differ; empty collections and times in other forms are the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = one.keys() | other.keys()
        return [d for key in sorted(keys) for d in differences(one.get(key), other.get(key), f"{path}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [d for i, pair in enumerate(zip(one, other, strict=True)) for d in differences(*pair, f"{path}[{i}]")]
    if (one or None) == (other or None) or "Time" in path:
        return []
    return [f"{path}: {one!r} is {other!r}"]


def test_every_object_and_body_is_one_of_the_clients_models(
    api: KubernetesApi, cluster: Cluster, connect: Callable[..., Driven]
) -> None:
    api.add("nodes", node("n0"))
    cluster.submit(pod("a", 2), *gang("g", 2))
    driven = connect()
    driven.turn()
    cluster.turn()
    cluster.turn()
    driven.driver._calls.evict(api.all("pods")[0])
    models = {"pods": "V1Pod", "nodes": "V1Node"}
    for plural, model in models.items():
        for found in api.all(plural):
            assert differences(found, as_model(found, model)) == []
    bodies = {"eviction": "V1Eviction"}
    checked = set()
    for method, path, body in api.writes:
        model = bodies.get(path.rpartition("/")[2], "V1Pod")
        checked.add((method, model))
        if "spec" in body:
            body = {**body, "spec": {"containers": [], **body["spec"]}}  # which the model of a whole pod requires
        assert differences(body, as_model(body, model)) == [], path
    assert checked == {("PATCH", "V1Pod"), ("POST", "V1Eviction")}


def test_the_lease_is_one_of_the_clients_models(api: KubernetesApi, config: Any) -> None:
    import threading

    from placeopt.drivers.kubernetes import Api, Lease

    lease = Lease(Api(str(config)), "placeopt", "me", threading.Event())
    lease.renew()
    lease.renew()
    assert [method for method, _, _ in api.writes] == ["POST", "PUT"]
    for _, _, body in api.writes:
        assert differences(body, as_model(body, "V1Lease")) == []
