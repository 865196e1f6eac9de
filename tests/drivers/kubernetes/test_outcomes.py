"""Started pods are followed until they are bound; nodes that refuse them are closed for a while."""

from collections.abc import Callable

import pytest

from drivers.conftest import Driven
from helpers.kubernetes_api import KubernetesApi, Refusal
from helpers.kubernetes_cluster import Cluster, gang, node, pod

Connect = Callable[..., Driven]


def places(api: KubernetesApi) -> dict[str, str | None]:
    running = [p for p in api.all("pods") if p["status"]["phase"] == "Running"]
    return {p["metadata"]["name"]: p["spec"]["nodeName"] for p in running}


@pytest.mark.parametrize("seen_bound", [False, True])
def test_a_node_that_refuses_is_closed_and_the_gang_starts_elsewhere(
    api: KubernetesApi, cluster: Cluster, connect: Connect, seen_bound: bool
) -> None:
    """The kubelet of n0 admits nobody: the other pods of the gang are evicted, and all start on n1."""
    api.add("nodes", node("n0"))
    cluster.refusing.add("n0")
    cluster.submit(*gang("g", 2, 4))
    driven = connect()
    assert driven.turn().started == 1
    cluster.turn()
    if seen_bound:
        driven.turn()
    cluster.turn()
    api.add("nodes", node("n1"))
    report = driven.turn()
    assert report.notes[0].startswith("n0 closed for 30 s: pod g-")
    for _ in range(4):
        driven.turn()
        cluster.turn()
    assert set(places(api).values()) == {"n1"}
    assert len(places(api)) == 2


def test_a_pod_that_nobody_binds_in_time_is_evicted_and_placed_anew(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    api.add("nodes", node("n0"))
    cluster.blind.add("n0")
    cluster.submit(pod("a"))
    driven = connect(bind_s=0.0)
    assert driven.turn().started == 1
    cluster.turn()
    api.add("nodes", node("n1"))
    report = driven.turn()
    assert "kube-scheduler has not said why" in report.notes[0]
    for _ in range(3):  # the turn that evicted it may have seen the new one already, or not
        cluster.turn()
        driven.turn()
    assert places(api) == {"a.0": "n1"}


@pytest.mark.parametrize(
    "refusal", [ConnectionResetError(), Refusal(429, "TooManyRequests", "busy")], ids=["lost", "refused"]
)
def test_the_eviction_of_a_pod_that_cannot_be_bound_is_tried_until_it_is_done(
    api: KubernetesApi, cluster: Cluster, connect: Connect, refusal: Exception
) -> None:
    """Its node is gone, and the first eviction is lost or refused: the driver that started it does not forget it."""
    api.add("nodes", node("n0"))
    cluster.submit(pod("a"))
    driven = connect(bind_s=0.0)
    assert driven.turn().started == 1
    api.remove("nodes", "n0")
    api.add("nodes", node("n1"))

    def before(method: str, path: str, body: object) -> None:
        if path.endswith("eviction"):
            raise refusal

    api.before = before
    driven.turn()
    api.before = lambda method, path, body: None
    for _ in range(3):
        driven.turn()
        cluster.turn()
    assert places(api) == {"a.0": "n1"}


def test_a_pod_that_is_bound_while_it_is_given_up_stays(api: KubernetesApi, cluster: Cluster, connect: Connect) -> None:
    """Its eviction names the version without a node, and is refused."""
    api.add("nodes", node("n0"))
    cluster.submit(pod("a"))
    driven = connect(bind_s=0.0)
    driven.turn()
    api.before = lambda method, path, body: cluster.turn() if path.endswith("eviction") else None
    report = driven.turn()
    assert any("a stays: 409" in note for note in report.notes)
    api.before = lambda method, path, body: None
    cluster.turn()
    assert places(api) == {"a": "n0"}


def test_a_pod_without_a_controller_waits_for_kube_scheduler(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    api.add("nodes", node("n0"))
    cluster.blind.add("n0")
    cluster.submit(pod("a", owned=False))
    driven = connect(bind_s=0.0)
    driven.turn()
    assert "a stays: it has no controller, so nothing creates it again" in driven.turn().notes
    cluster.blind.clear()
    cluster.turn()
    cluster.turn()
    assert places(api) == {"a": "n0"}


def test_a_driver_that_starts_anew_goes_on_following(api: KubernetesApi, cluster: Cluster, connect: Connect) -> None:
    api.add("nodes", node("n0"))
    cluster.refusing.add("n0")
    cluster.submit(*gang("g", 2))
    connect().turn()
    second = connect()
    second.turn()
    cluster.turn()
    cluster.turn()
    assert second.turn().notes[0].startswith("n0 closed for 30 s")


def test_a_member_that_fails_later_does_not_end_its_gang(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    """All have run: one is lost, and the one made instead joins the others."""
    api.add("nodes", node("n0"))
    cluster.submit(*gang("g", 3))
    driven = connect()
    driven.turn()
    cluster.turn()
    cluster.turn()
    driven.turn()
    api.remove("pods", "g-1")
    driven.turn()
    for one in (driven, connect()):
        one.turn()
        cluster.turn()
    cluster.turn()
    assert places(api) == {"g-0": "n0", "g-1.0": "n0", "g-2": "n0"}
    assert not [path for _, path, _ in api.writes if path.endswith("eviction")]
