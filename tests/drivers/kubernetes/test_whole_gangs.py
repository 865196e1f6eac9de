"""A gang that never ran as a whole begins anew as a whole, whatever is refused or lost; one that ran once goes on."""

from collections.abc import Callable
from typing import Any

import pytest

from drivers.conftest import Driven
from helpers.kubernetes_api import KubernetesApi, Refusal
from helpers.kubernetes_cluster import Cluster, Object, gang, node

Connect = Callable[..., Driven]
LOST, BUSY = ConnectionResetError(), Refusal(429, "TooManyRequests", "busy")


def lose_a_pod(api: KubernetesApi, eviction: Exception) -> None:
    """g-1 is deleted as its gate is lifted, and g-0 cannot be evicted."""

    def before(method: str, path: str, body: Any) -> None:
        if path.endswith("g-1") and "spec" in body and api.get("pods", "g-1"):
            api.remove("pods", "g-1")
        elif path.endswith("eviction"):
            raise eviction

    api.before = before


def calm(api: KubernetesApi) -> None:
    api.before = lambda method, path, body: None


def sizes(api: KubernetesApi) -> dict[str, str]:
    """The size of the start that lifted the gate of each pod."""
    lifts = [(path, body) for method, path, body in api.writes if method == "PATCH" and "spec" in body]
    return {path.rpartition("/")[2]: body["metadata"]["annotations"]["placeopt.io/pods"] for path, body in lifts}


def evicted(api: KubernetesApi) -> list[str]:
    return [path.split("/")[-2] for _, path, _ in api.writes if path.endswith("eviction")]


def running(api: KubernetesApi) -> list[Object]:
    return [found for found in api.all("pods") if found["status"]["phase"] == "Running"]


@pytest.mark.parametrize("anew", [False, True], ids=["same driver", "new driver"])
@pytest.mark.parametrize("eviction", [LOST, BUSY], ids=["lost", "refused"])
@pytest.mark.parametrize("pods", [2, 3])
def test_a_lifted_pod_without_the_others_is_evicted_also_when_it_runs(
    api: KubernetesApi, cluster: Cluster, connect: Connect, pods: int, eviction: Exception, anew: bool
) -> None:
    """Of a gang of two no pod waits under the old mark: only that the start is not whole tells of half a gang."""
    api.add("nodes", node("n0"))
    cluster.submit(*gang("g", pods))
    lose_a_pod(api, eviction)
    driven = connect()
    assert driven.turn().started == 0
    cluster.turn()
    cluster.turn()
    assert [found["metadata"]["name"] for found in running(api)] == ["g-0"]
    calm(api)
    driven = connect() if anew else driven
    for _ in range(4):
        driven.turn()
        cluster.turn()
    assert evicted(api) == ["g-0"]
    assert len(running(api)) == pods
    assert {size for name, size in sizes(api).items() if name != "g-0"} == {str(pods)}


def test_no_pod_starts_alone_while_its_gang_is_to_be_evicted(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    """A budget keeps g-0: the pod made in place of g-1 waits for it, turn after turn."""
    api.add("nodes", node("n0"))
    cluster.submit(*gang("g", 2))
    lose_a_pod(api, BUSY)
    driven = connect()
    for _ in range(4):
        driven.turn()
        cluster.turn()
    assert list(sizes(api)) == ["g-0"]
    assert "g-0 stays: 429 TooManyRequests: busy" in driven.turn().notes


def test_a_pod_that_its_kubelet_rejects_takes_its_gang_back_after_a_restart(
    api: KubernetesApi, cluster: Cluster, connect: Connect
) -> None:
    """No pod is without a node when the second driver begins: one runs, one was not admitted."""
    for name in ("n0", "n1"):
        api.add("nodes", node(name, 4))
    cluster.submit(*gang("g", 2, 4))
    assert connect().turn().started == 1
    cluster.refusing = {"n1"}
    cluster.turn()
    cluster.turn()
    assert sorted(found["status"]["phase"] for found in api.all("pods")) == ["Failed", "Pending", "Running"]
    assert connect().turn().notes[0].startswith("n1 closed for 30 s: pod g-")
    assert len(evicted(api)) == 1


@pytest.mark.parametrize("cut", [0, 1, 2, None], ids=lambda cut: f"cut at {cut}")
def test_that_a_gang_was_whole_outlasts_the_driver(
    api: KubernetesApi, cluster: Cluster, connect: Connect, cut: int | None
) -> None:
    """It is on record with each pod; cut short, with some of them, the next driver completes it."""
    api.add("nodes", node("n0"))
    cluster.submit(*gang("g", 3))
    driven = connect()
    driven.turn()
    cluster.turn()
    cluster.turn()

    def before(method: str, path: str, body: Any) -> None:
        if cut is not None and path.endswith(f"g-{cut}"):
            raise ConnectionResetError

    api.before = before
    driven.turn()
    calm(api)
    if cut is not None:
        connect().turn()
    marked = [found["metadata"]["annotations"].get("placeopt.io/whole") for found in api.all("pods")]
    assert marked == ["true"] * 3
    writes = len(api.writes)
    connect().turn()
    assert len(api.writes) == writes
    api.remove("pods", "g-1")
    last = connect()
    last.turn()
    last.turn()
    assert evicted(api) == []
    assert sizes(api)["g-1.0"] == "1"


@pytest.mark.parametrize("answered", [False, True], ids=["lost before", "lost after"])
@pytest.mark.parametrize("number", range(12))
def test_a_driver_that_ends_at_any_write_while_a_gang_is_taken_back_is_followed_by_another(
    api: KubernetesApi, cluster: Cluster, connect: Connect, number: int, answered: bool
) -> None:
    """A pod goes as its gate is lifted. Marks, lifts, evictions, second start, record: the n-th write breaks."""
    api.add("nodes", node("n0"))
    cluster.submit(*gang("g", 3))
    writes = 0

    def cut(method: str, path: str, body: Any) -> None:
        nonlocal writes
        writes += 1
        if writes == number + 1:
            raise ConnectionResetError

    def before(method: str, path: str, body: Any) -> None:
        if path.endswith("g-1") and "spec" in body and api.get("pods", "g-1"):
            api.remove("pods", "g-1")
        if not answered:
            cut(method, path, body)

    api.before = before
    if answered:
        api.after = cut
    driven = connect()
    for _ in range(8):
        report = driven.turn()
        if report.notes and report.notes[0].startswith("the API server"):
            driven.close()
            driven = connect()
        cluster.turn()
        cluster.turn()
    assert len(running(api)) == 3
    assert set(sizes(api).values()) == {"3"}
    assert all(len(nodes) == 1 for nodes in cluster.bindings.values())
    assert all("placeopt.io/whole" in found["metadata"]["annotations"] for found in running(api))
