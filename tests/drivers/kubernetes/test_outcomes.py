"""Started pods are followed until they are bound; what nodes refuse is kept from them for a while."""

import pytest

from helpers.kubernetes_api import Refusal
from helpers.kubernetes_cluster import gang, pod


def started(world, *pods, **options):
    """Start pods on n0; returns the driver."""
    world.add_nodes("n0")
    world.submit(*pods)
    driven = world.connect(**options)
    assert driven.turn().started == 1
    return driven


@pytest.mark.parametrize("seen_bound", [False, True])
def test_a_node_that_refuses_is_closed_and_the_gang_starts_elsewhere(world, seen_bound):
    """The kubelet of n0 admits nobody: the other pods of the gang are evicted, and all start on n1."""
    world.cluster.refusing.add("n0")
    driven = started(world, *gang("g", 2, 4))
    world.cluster.turn()
    if seen_bound:
        driven.turn()
    world.cluster.turn()
    world.add_nodes("n1")
    assert driven.turn().remarks[0].startswith("n0 closed for 30 s to pods as g-")
    world.turns(driven, 4)
    assert list(world.running().values()) == ["n1", "n1"]


def test_a_pod_that_every_node_refuses_closes_none_to_other_pods(world):
    """pytorch/ci-infra #696: the pod comes again and again, and is kept from the nodes that have refused it."""
    world.cluster.refused_gpus.add(3)
    driven = started(world, pod("bad", 3))
    world.add_nodes("n1")
    world.settle()
    for _ in range(3):
        world.turns(driven, 2)
    bad = [where for of in world.cluster.bindings.values() for where in of]
    assert sorted(bad) == ["n0", "n1"]  # each has refused it once
    world.submit(*(pod(f"good-{i}", 8) for i in range(2)))
    world.turns(driven, 2)
    assert sorted(world.running().values()) == ["n0", "n1"]


def test_a_pod_that_nobody_binds_in_time_is_evicted_and_placed_anew(world):
    world.cluster.blind.add("n0")
    driven = started(world, pod("a"), bind_s=0.0)
    world.cluster.turn()
    world.add_nodes("n1")
    (outcome,) = driven.turn().outcomes
    assert (outcome.kind, outcome.planned, outcome.why) == ("not-started", ("n0",), "kube-scheduler has not said why")
    world.cluster.turn()
    world.turns(driven, 2)  # the turn that evicted it may have seen the new one already, or not
    world.settle()
    assert world.running() == {"a.0": "n1"}


@pytest.mark.parametrize(
    "refusal", [ConnectionResetError(), Refusal(429, "TooManyRequests", "busy")], ids=["lost", "refused"]
)
def test_the_eviction_of_a_pod_that_cannot_be_bound_is_tried_until_it_is_done(world, refusal):
    """Its node is gone, and the first eviction is lost or refused: the driver that started it does not forget it."""
    driven = started(world, pod("a"), bind_s=0.0)
    world.api.remove("nodes", "n0")
    world.add_nodes("n1")
    world.at("eviction", None, refusal, always=True)
    driven.turn()
    world.calm()
    world.turns(driven, 3)
    assert world.running() == {"a.0": "n1"}


def test_a_pod_that_is_bound_while_it_is_given_up_stays(world):
    """Its eviction names the version without a node, and is refused."""
    driven = started(world, pod("a"), bind_s=0.0)
    world.at("eviction", "a", world.cluster.turn)
    assert any("a stays: 409" in note for note in driven.turn().remarks)
    world.cluster.turn()
    assert world.running() == {"a": "n0"}


def test_a_pod_without_a_controller_waits_for_kube_scheduler(world):
    world.cluster.blind.add("n0")
    driven = started(world, pod("a", owned=False), bind_s=0.0)
    assert "a stays: it has no controller, so nothing creates it again" in driven.turn().remarks
    world.cluster.blind.clear()
    world.settle()
    assert world.running() == {"a": "n0"}


def test_a_driver_that_starts_anew_goes_on_following(world):
    world.cluster.refusing.add("n0")
    started(world, *gang("g", 2))
    second = world.connect()
    second.turn()
    world.settle()
    assert second.turn().remarks[0].startswith("n0 closed for 30 s to pods as g-")


def test_a_member_that_fails_later_does_not_end_its_gang(world):
    """All have run: one is lost, and the one made instead joins the others."""
    driven = started(world, *gang("g", 3))
    world.settle()
    driven.turn()
    world.api.remove("pods", "g-1")
    driven.turn()
    for one in (driven, world.connect()):
        world.turns(one, 1)
    world.cluster.turn()
    assert world.running() == {"g-0": "n0", "g-1.0": "n0", "g-2": "n0"}
    assert world.written("eviction") == []
