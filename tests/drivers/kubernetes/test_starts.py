"""Gates are lifted in one patch a pod, for whole gangs or for none, whatever happens between two patches."""

from collections.abc import Callable
from typing import Any

import pytest

from drivers.conftest import Driven
from helpers.kubernetes_api import KubernetesApi
from helpers.kubernetes_cluster import GATE, Cluster, gang, node, pod
from helpers.kubernetes_updates import Refusal

Connect = Callable[..., Driven]


def lifted(api: KubernetesApi) -> set[str]:
    return {p["metadata"]["name"] for p in api.all("pods") if not p["spec"].get("schedulingGates")}


def lifts(api: KubernetesApi) -> list[str]:
    """Names of pods in the order of the accepted patches that removed their gates."""
    return [path.rpartition("/")[2] for method, path, body in api.writes if method == "PATCH" and "spec" in body]


def on(found: dict[str, Any]) -> list[list[str]]:
    required = found["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return [[v for f in t.get("matchFields", []) for v in f["values"]] for t in required["nodeSelectorTerms"]]


def test_one_patch_lifts_the_gate_requires_the_node_and_leaves_a_mark(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    api.add("nodes", node("n0"))
    cluster.submit(pod("a", 2))
    report = connect().turn()
    assert (report.placed, report.started, report.refused) == (1, 1, 0)
    found = api.get("pods", "a")
    assert found is not None
    assert "schedulingGates" not in found["spec"]
    assert on(found) == [["n0"]]
    notes = found["metadata"]["annotations"]
    assert notes["placeopt.io/round"] == report.round_id
    assert notes["placeopt.io/plan"] == report.plan
    assert (notes["placeopt.io/node"], notes["placeopt.io/pods"]) == ("n0", "1")
    assert [method for method, _, _ in api.writes] == ["PATCH"]


def test_every_term_of_the_pods_own_affinity_gets_the_node(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    for name in ("n0", "n1", "n2"):
        api.add("nodes", node(name, zone=name))
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["n1"]}]},
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["nowhere"]}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    cluster.submit(pod("a", affinity={"nodeAffinity": required}))
    assert connect().turn().started == 1
    found = api.get("pods", "a")
    assert found is not None
    assert on(found) == [["n1"], ["n1"]]
    cluster.turn()
    assert list(cluster.bindings.values()) == [["n1"]]


def test_pods_without_the_gate_or_behind_others_are_left_alone(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    api.add("nodes", node("n0"))
    cluster.submit(
        pod("theirs", gated=False),
        pod("quota", gated=False, schedulingGates=[{"name": GATE}, {"name": "kueue.x-k8s.io/admission"}]),
        pod("other", gated=False, schedulingGates=[{"name": "example.com/other"}]),
    )
    report = connect().turn()
    assert report.placed == 0
    assert not api.writes
    assert "3 pods wait for others" in report.notes


def test_room_that_is_promised_and_not_yet_bound_is_not_given_twice(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    api.add("nodes", node("n0"))
    cluster.submit(pod("a", 5))
    driven = connect()
    assert driven.turn().started == 1
    cluster.submit(pod("b", 5))
    assert (driven.turn().placed, driven.turn().placed) == (0, 0)
    assert lifted(api) == {"a"}
    assert connect().turn().placed == 0  # nor by a driver that starts now


def test_a_gang_is_recorded_before_its_first_gate_is_lifted(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    api.add("nodes", node("n0"))
    cluster.submit(*gang("g", 3))
    assert connect().turn().started == 1
    assert ["spec" in body for _, _, body in api.writes] == [False] * 3 + [True] * 3
    assert lifts(api) == ["g-0", "g-1", "g-2"]
    assert len({p["metadata"]["annotations"]["placeopt.io/round"] for p in api.all("pods")}) == 1


def test_a_gang_that_lacks_a_pod_stays_gated(api: KubernetesApi, cluster: Cluster, connect: Connect) -> None:
    api.add("nodes", node("n0"))
    cluster.submit(*gang("g", 3)[:2])
    assert connect().turn().placed == 0
    assert not api.writes


def test_a_gang_of_unknown_size_waits_until_no_pods_come(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    api.add("nodes", node("n0"))
    labels = {"jobset.sigs.k8s.io/jobset-name": "s"}
    cluster.submit(pod("s-0", labels=labels))
    patient, hasty = connect(settle_s=3600.0), connect()
    assert patient.turn().placed == 0
    cluster.submit(pod("s-1", labels=labels))
    assert hasty.turn().placed == 1
    assert lifted(api) == {"s-0", "s-1"}


@pytest.mark.parametrize("moment", ["record", "lift"])
def test_another_writer_between_reading_and_patching_is_followed(
    api: KubernetesApi, cluster: Cluster, connect: Connect, moment: str
) -> None:
    """409: the pod is read again, and patched as it is now."""
    api.add("nodes", node("n0"))
    cluster.submit(*gang("g", 3))
    hit: list[str] = []

    def before(method: str, path: str, body: Any) -> None:
        if path.endswith("g-1") and ("spec" in body) == (moment == "lift") and not hit:
            hit.append(path)
            api.change("pods", "g-1", lambda found: found["metadata"].setdefault("labels", {}).update(seen="yes"))

    api.before = before
    assert connect().turn().started == 1
    assert hit
    assert lifted(api) == {"g-0", "g-1", "g-2"}
    found = api.get("pods", "g-1")
    assert found is not None
    assert found["metadata"]["labels"]["seen"] == "yes"


def test_a_pod_that_goes_between_two_lifts_takes_its_gang_back(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    """g-0 is lifted, g-1 is deleted: g-0 is evicted and made anew behind the gate, g-2 is never lifted."""
    api.add("nodes", node("n0"))
    cluster.submit(*gang("g", 3))
    gone: list[str] = []

    def before(method: str, path: str, body: Any) -> None:
        if path.endswith("g-1") and "spec" in body and not gone:
            gone.append(path)
            api.remove("pods", "g-1")

    api.before = before
    driven = connect()
    report = driven.turn()
    assert (report.started, report.refused) == (0, 1)
    assert lifted(api) == set()
    assert len(api.all("pods")) == 3
    assert driven.turn().started == 1  # two of them are new
    assert len(lifted(api)) == 3
    assert "g-0" not in lifted(api)


def test_a_gang_that_changes_before_the_first_lift_is_not_touched(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    api.add("nodes", node("n0"))
    cluster.submit(*gang("g", 3, owned=False))

    def before(method: str, path: str, body: Any) -> None:
        if path.endswith("g-2") and api.get("pods", "g-2"):
            api.remove("pods", "g-2")

    api.before = before
    report = connect().turn()
    assert (report.started, report.refused) == (0, 1)
    assert lifted(api) == set()


def test_a_patch_that_the_server_forbids_takes_the_gang_back(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    api.add("nodes", node("n0"))
    cluster.submit(*gang("g", 3))

    def before(method: str, path: str, body: Any) -> None:
        if path.endswith("g-2") and "spec" in body:
            raise Refusal(403, "Forbidden", "an admission webhook denied the request")

    api.before = before
    report = connect().turn()
    assert report.started == 0
    assert "denied the request" in report.notes[-1]
    assert lifted(api) == set()


def test_pods_without_a_controller_are_not_evicted(api: KubernetesApi, cluster: Cluster, connect: Connect) -> None:
    """Nothing would make g-0 anew, so it stays; the report says so."""
    api.add("nodes", node("n0"))
    cluster.submit(*gang("g", 2, owned=False))

    def before(method: str, path: str, body: Any) -> None:
        if path.endswith("g-1") and "spec" in body:
            raise Refusal(403, "Forbidden", "no")

    api.before = before
    report = connect().turn()
    assert "g-0 stays: it has no controller" in report.notes[-1]
    assert lifted(api) == {"g-0"}


@pytest.mark.parametrize("answered", [False, True], ids=["lost before", "lost after"])
@pytest.mark.parametrize("number", range(6))
def test_a_driver_that_ends_between_two_patches_is_followed_by_another(
    api: KubernetesApi, cluster: Cluster, connect: Connect, number: int, answered: bool
) -> None:
    """The connection breaks at the n-th of six patches, done or not; a new driver finishes, and lifts nothing twice."""
    api.add("nodes", node("n0"))
    api.add("nodes", node("n1"))
    cluster.submit(*gang("g", 3, 4))
    seen: list[str] = []

    def cut(method: str, path: str, body: Any) -> None:
        seen.append(path)
        if len(seen) == number + 1:
            raise ConnectionResetError

    setattr(api, "after" if answered else "before", cut)
    first = connect()
    report = first.turn()
    assert "the API server" in report.notes[0]
    first.close()
    api.before = api.after = lambda method, path, body: None
    second = connect()
    second.turn()
    cluster.turn()
    assert lifted(api) == {"g-0", "g-1", "g-2"}
    assert sorted(lifts(api)) == ["g-0", "g-1", "g-2"]
    assert all(len(nodes) == 1 for nodes in cluster.bindings.values())
    assert len(cluster.bindings) == 3


def test_a_half_lifted_gang_whose_node_is_gone_begins_anew(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    api.add("nodes", node("n0"))
    cluster.submit(*gang("g", 2))

    def cut(method: str, path: str, body: Any) -> None:
        if path.endswith("g-1") and "spec" in body:
            raise ConnectionResetError

    api.before = cut
    driven = connect()
    driven.turn()
    api.before = lambda method, path, body: None
    api.remove("nodes", "n0")
    api.add("nodes", node("n1"))
    report = driven.turn()
    assert "node n0 cannot be used any more" in report.notes[0]
    driven.turn()
    cluster.turn()
    assert sorted(nodes for nodes in cluster.bindings.values()) == [["n1"], ["n1"]]
    assert "g-0" not in lifted(api)
