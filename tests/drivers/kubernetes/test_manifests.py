"""The manifests in docs/ are objects of the client's models, and give the driver the rights that it uses."""

import threading
from itertools import product
from pathlib import Path

import pytest
import yaml

from helpers.kubernetes_cluster import gang, pod
from helpers.kubernetes_models import as_model, differences
from placeopt.drivers.kubernetes import CORE, OPTIONAL, Api, Lease

MANIFESTS = Path(__file__).resolve().parents[3] / "docs" / "manifests"
EXTENDER_FIELDS = {
    *("urlPrefix", "filterVerb", "preemptVerb", "prioritizeVerb", "weight", "bindVerb", "enableHTTPS", "tlsConfig"),
    *("httpTimeout", "nodeCacheCapable", "managedResources", "ignorable"),
}
"""Of ``Extender`` in config/v1/types.go of kubernetes/kube-scheduler at e87dbdd."""
DOCUMENTED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: /etc/kubernetes/scheduler.conf
extenders:
- urlPrefix: "http://127.0.0.1:32766/gpushare-scheduler"
  filterVerb: filter
  bindVerb: bind
  enableHTTPS: false
  nodeCacheCapable: true
  managedResources:
  - name: aliyun.com/gpu-mem
    ignoredByScheduler: false
  ignorable: false
"""
"""config/scheduler-policy-config-v1.28+.yaml of AliyunContainerService/gpushare-scheduler-extender (Apache-2.0)."""


def documents(name):
    return list(yaml.safe_load_all((MANIFESTS / f"{name}.yaml").read_text()))


def granted():
    rules = [rule for one in documents("driver") if one["kind"] in ("ClusterRole", "Role") for rule in one["rules"]]
    return {triple for rule in rules for triple in product(rule["verbs"], rule["apiGroups"], rule["resources"])}


@pytest.mark.parametrize("made", documents("driver"), ids=lambda made: made["kind"])
def test_every_manifest_is_one_of_the_clients_models(made):
    """A field that the model lacks, at any depth, would be a difference."""
    assert differences(made, as_model(made, f"V1{made['kind']}")) == []


def test_the_roles_grant_every_request_of_the_driver_and_little_more(world):
    world.add_nodes("n0")
    world.submit(pod("a", 8), *gang("g", 2))
    driven = world.connect(bind_s=0.0)
    driven.driver.lease = lease = Lease(Api(str(world.config)), "placeopt", "me", threading.Event())
    lease.renew()
    lease.renew()
    driven.turn()
    world.at("record", "g-1.0", lambda: world.api.change("pods", "g-1.0", lambda found: None), always=True)
    driven.turn()
    driven.turn()
    assert ("create", "", "pods/eviction") in world.api.requests
    assert world.api.requests <= granted()
    listed = {("get", "", kind.path.rpartition("/")[2]) for kind in CORE}
    optional = {(verb, group, plural) for group, plural, _ in OPTIONAL for verb in ("get", "list", "watch")}
    assert granted() - world.api.requests <= listed | optional | {("get", "", "pods")}


def test_the_extenders_configuration_is_like_a_documented_one():
    ours, theirs = documents("kube-scheduler")[0], yaml.safe_load(DOCUMENTED)
    assert {key for key in theirs if key not in ours} == set()
    own, other = ours["extenders"][0], theirs["extenders"][0]
    del other["bindVerb"]  # `placeopt serve` creates no Bindings
    assert set(other) <= set(own) <= EXTENDER_FIELDS - {"bindVerb"}
    assert {key: type(value) for key, value in other.items()} == {key: type(own[key]) for key in other}
    assert (ours["apiVersion"], ours["kind"]) == (theirs["apiVersion"], theirs["kind"])
    assert set(own["managedResources"][0]) == set(other["managedResources"][0])
