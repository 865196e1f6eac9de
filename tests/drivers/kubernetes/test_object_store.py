"""The mirror of the cluster: lists in parts, watches, and what happens when a watch ends."""

import time

import pytest

from drivers.conftest import until
from helpers.kubernetes_cluster import pod
from placeopt.drivers import Unreachable


@pytest.fixture
def api(world):
    return world.api


@pytest.fixture
def store(world, monkeypatch):
    """The pods of a driver's mirror, which lists three objects at a time."""
    monkeypatch.setattr("placeopt.drivers.kubernetes.api.PAGE", 3)
    for i in range(10):
        world.api.add("pods", pod(f"p{i}"))
    mirror = world.connect().driver.mirror
    assert mirror.wait(60)
    return mirror.pods


@pytest.fixture
def listed(api, store):
    """How many lists were read at the beginning."""
    return api.lists


def names(store):
    return [found["metadata"]["name"] for found in store.objects]


def labels(store, name):
    return store.get("default", name)["metadata"].get("labels")


def set_label(api, name):
    api.change("pods", name, lambda found: found["metadata"].update(labels={"a": "b"}))


def test_a_list_is_read_in_parts_and_then_watched(api, store, listed):
    assert names(store) == [f"p{i}" for i in range(10)]
    assert listed == 4 + 6 + 5  # ten pods, three at a time, each other kind, and whether those of every cluster may be
    api.add("pods", pod("q"))
    api.remove("pods", "p3")
    set_label(api, "p4")
    until(lambda: names(store) == ["p0", "p1", "p2", *(f"p{i}" for i in range(4, 10)), "q"])
    until(lambda: labels(store, "p4") == {"a": "b"})
    assert api.lists == listed
    assert {found["kind"] for found in store.objects} == {"Pod"}


def test_a_watch_that_ends_goes_on_where_it_stood(api, store, listed):
    for i in range(3):
        api.cut_watches()
        api.add("pods", pod(f"q{i}"))
    until(lambda: len(names(store)) == 13)
    assert api.lists == listed


def test_a_server_that_does_not_answer_is_a_fault_and_then_none(api, store):
    api.down = True
    api.cut_watches()
    until(lambda: isinstance(store.fault, Unreachable))
    assert len(names(store)) == 10
    api.down = False
    until(lambda: store.fault is None)


def test_after_410_all_is_listed_anew_and_what_is_gone_leaves(api, store, listed):
    api.down = True
    api.cut_watches()
    until(lambda: store.fault is not None)
    api.remove("pods", "p0")
    api.add("pods", pod("q"))
    api.compact()
    api.down = False
    until(lambda: api.lists >= listed + 4)
    until(lambda: names(store) == [*(f"p{i}" for i in range(1, 10)), "q"])
    until(lambda: store.fault is None)  # the list is there before the watch that follows it


def test_bookmarks_move_the_version_from_which_a_watch_goes_on(api, store, listed):
    """Other kinds change, history is forgotten up to the bookmark: no new list is needed."""
    api.add("nodes", {"metadata": {"name": "n0"}, "spec": {}, "status": {}})
    time.sleep(0.3)  # the bookmark arrives
    api.compact()
    api.add("pods", pod("q"))
    until(lambda: "q" in names(store))
    assert api.lists == listed


def test_an_older_version_does_not_replace_a_later_one(api, store):
    """The answer to a patch may come after the event of a later change, or of the deletion."""
    old = store.get("default", "p0")
    set_label(api, "p0")
    until(lambda: labels(store, "p0") is not None)
    store.put(old)
    assert labels(store, "p0") == {"a": "b"}
    api.remove("pods", "p0")
    until(lambda: store.get("default", "p0") is None)
    store.put(old)
    assert store.get("default", "p0") is None


def test_kinds_that_the_cluster_lacks_are_not_watched(api, store):
    """Of each group the version that the cluster prefers."""
    until(lambda: len({resource for verb, _, resource in api.requests if verb == "watch"}) >= 6)
    assert {(group, resource) for verb, group, resource in api.requests if verb == "watch"} == {
        *(("", name) for name in ("nodes", "pods", "namespaces", "persistentvolumeclaims", "persistentvolumes")),
        ("scheduling.x-k8s.io", "podgroups"),
    }


def test_a_server_that_forbids_lists_for_seconds_is_asked_again(world, monkeypatch):
    """Else kinds that it forbids at first would not be watched as long as the driver runs."""
    with monkeypatch.context() as patch:
        patch.setattr("placeopt.drivers.kubernetes.kinds._may_list", lambda api, path: False)
        with pytest.raises(Unreachable, match="does not let this user list Node, Pod, "):
            world.connect()
    world.connect()
    watched = {("", "pods"), ("scheduling.x-k8s.io", "podgroups")}
    until(lambda: watched <= {(group, name) for verb, group, name in world.api.requests if verb == "watch"})


def test_who_set_which_field_is_not_kept(api, store):
    api.change(
        "pods", "p0", lambda found: found["metadata"].update(labels={"a": "b"}, managedFields=[{"manager": "m"}])
    )
    until(lambda: labels(store, "p0") == {"a": "b"})
    assert "managedFields" in api.get("pods", "p0")["metadata"]
    assert "managedFields" not in store.get("default", "p0")["metadata"]
