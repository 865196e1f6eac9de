"""The mirror of the cluster: lists in parts, watches, and what happens when a watch ends."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers.conftest import until
from helpers.kubernetes_api import KubernetesApi
from helpers.kubernetes_cluster import pod
from placeopt.drivers import Unreachable
from placeopt.drivers.kubernetes import Api
from placeopt.drivers.kubernetes import api as module
from placeopt.drivers.kubernetes.kinds import PODS, watched_kinds
from placeopt.drivers.kubernetes.object_store import ObjectStore


@pytest.fixture
def store(api: KubernetesApi, config: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    monkeypatch.setattr(module, "PAGE", 3)
    for i in range(10):
        api.add("pods", pod(f"p{i}"))
    stop = threading.Event()
    found = ObjectStore(Api(str(config)), PODS, stop)
    found.start()
    assert found.wait(60)
    yield found
    stop.set()
    api.cut_watches()


def names(store: ObjectStore) -> list[str]:
    return [found["metadata"]["name"] for found in store.objects]


def test_a_list_is_read_in_parts_and_then_watched(api: KubernetesApi, store: ObjectStore) -> None:
    assert names(store) == [f"p{i}" for i in range(10)]
    assert api.lists == 4
    api.add("pods", pod("q"))
    api.remove("pods", "p3")
    api.change("pods", "p4", lambda found: found["metadata"].update(labels={"a": "b"}))
    until(lambda: names(store) == ["p0", "p1", "p2", *(f"p{i}" for i in range(4, 10)), "q"])
    until(lambda: (store.get("default", "p4") or {})["metadata"].get("labels") == {"a": "b"})
    assert api.lists == 4
    assert {found["kind"] for found in store.objects} == {"Pod"}


def test_a_watch_that_ends_goes_on_where_it_stood(api: KubernetesApi, store: ObjectStore) -> None:
    for i in range(3):
        api.cut_watches()
        api.add("pods", pod(f"q{i}"))
    until(lambda: len(names(store)) == 13)
    assert api.lists == 4


def test_after_410_all_is_listed_anew_and_what_is_gone_leaves(api: KubernetesApi, store: ObjectStore) -> None:
    api.down = True
    api.cut_watches()
    until(lambda: store.fault is not None)
    api.remove("pods", "p0")
    api.add("pods", pod("q"))
    api.compact()
    api.down = False
    until(lambda: api.lists >= 8)
    until(lambda: names(store) == [*(f"p{i}" for i in range(1, 10)), "q"])
    until(lambda: store.fault is None)  # the list is there before the watch that follows it


def test_bookmarks_move_the_version_from_which_a_watch_goes_on(api: KubernetesApi, store: ObjectStore) -> None:
    """Other kinds change, history is forgotten up to the bookmark: no new list is needed."""
    api.add("nodes", {"metadata": {"name": "n0"}, "spec": {}, "status": {}})
    time.sleep(0.3)  # the bookmark arrives
    api.compact()
    api.add("pods", pod("q"))
    until(lambda: "q" in names(store))
    assert api.lists == 4


def test_a_server_that_does_not_answer_is_a_fault_and_then_none(api: KubernetesApi, store: ObjectStore) -> None:
    api.down = True
    api.cut_watches()
    until(lambda: isinstance(store.fault, Unreachable))
    assert len(names(store)) == 10
    api.down = False
    until(lambda: store.fault is None)


def test_an_older_version_does_not_replace_a_later_one(api: KubernetesApi, store: ObjectStore) -> None:
    """The answer to a patch may come after the event of a later change, or of the deletion."""
    old = store.get("default", "p0")
    assert old is not None
    api.change("pods", "p0", lambda found: found["metadata"].update(labels={"a": "b"}))
    until(lambda: (store.get("default", "p0") or {})["metadata"].get("labels") is not None)
    store.put(old)
    assert (store.get("default", "p0") or {})["metadata"]["labels"] == {"a": "b"}
    api.remove("pods", "p0")
    until(lambda: store.get("default", "p0") is None)
    store.put(old)
    assert store.get("default", "p0") is None


def test_kinds_that_the_cluster_lacks_are_not_watched(api: KubernetesApi, config: Path) -> None:
    found = {(kind.name, kind.path) for kind in watched_kinds(Api(str(config)))}
    assert ("PodGroup", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups") in found
    assert {name for name, _ in found} == {
        "Node",
        "Pod",
        "Namespace",
        "PersistentVolumeClaim",
        "PersistentVolume",
        "PodGroup",
    }
