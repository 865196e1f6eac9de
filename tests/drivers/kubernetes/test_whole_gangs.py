"""A gang that never ran as a whole begins anew as a whole, whatever is refused or lost; one that ran once goes on."""

import pytest

from helpers.kubernetes_api import Refusal
from helpers.kubernetes_cluster import gang, pod

LOST, BUSY = ConnectionResetError(), Refusal(429, "TooManyRequests", "busy")


def lose_a_pod(world, then=None, eviction=None):
    """g-1 is deleted as its gate is lifted; g-0 cannot be evicted, or something follows before every write."""

    def before(method, path, body):
        if path.endswith("g-1") and "spec" in body and world.pod("g-1"):
            world.api.remove("pods", "g-1")
        elif path.endswith("eviction") and eviction is not None:
            raise eviction
        if then is not None:
            then(method, path, body)

    world.api.before = before


def sizes(world):
    """The size of the start that lifted the gate of each pod."""
    lifts = [(path, body) for method, path, body in world.api.writes if method == "PATCH" and "spec" in body]
    return {path.rpartition("/")[2]: body["metadata"]["annotations"]["placeopt.io/pods"] for path, body in lifts}


@pytest.mark.parametrize("anew", [False, True], ids=["same driver", "new driver"])
@pytest.mark.parametrize("eviction", [LOST, BUSY], ids=["lost", "refused"])
@pytest.mark.parametrize("pods", [2, 3])
def test_a_lifted_pod_without_the_others_is_evicted_also_when_it_runs(world, pods, eviction, anew):
    """Of a gang of two no pod waits under the old mark: only that the start is not whole tells of half a gang."""
    world.add_nodes("n0")
    world.submit(*gang("g", pods))
    lose_a_pod(world, eviction=eviction)
    driven = world.connect()
    assert driven.turn().started == 0
    world.settle()
    assert world.running() == {"g-0": "n0"}
    world.calm()
    world.turns(world.connect() if anew else driven, 4)
    assert world.written("eviction") == ["g-0"]
    assert len(world.running()) == pods
    assert {size for name, size in sizes(world).items() if name != "g-0"} == {str(pods)}


def test_no_pod_starts_alone_while_its_gang_is_to_be_evicted(world):
    """A budget keeps g-0: the pod made in place of g-1 waits for it, turn after turn."""
    world.add_nodes("n0")
    world.submit(*gang("g", 2))
    lose_a_pod(world, eviction=BUSY)
    driven = world.connect()
    world.turns(driven, 4)
    assert list(sizes(world)) == ["g-0"]
    assert "g-0 stays: 429 TooManyRequests: busy" in driven.turn().remarks


def test_a_pod_that_its_kubelet_rejects_takes_its_gang_back_after_a_restart(world):
    """No pod is without a node when the second driver begins: one runs, one was not admitted."""
    world.add_nodes("n0", "n1", gpus=4)
    world.submit(*gang("g", 2, 4))
    assert world.connect().turn().started == 1
    world.cluster.refusing = {"n1"}
    world.settle()
    assert sorted(found["status"]["phase"] for found in world.api.all("pods")) == ["Failed", "Pending", "Running"]
    assert world.connect().turn().remarks[0].startswith("n1 closed for 30 s to pods as g-")
    assert len(world.written("eviction")) == 1


@pytest.mark.parametrize("anew", [False, True], ids=["same driver", "new driver"])
def test_a_gang_without_a_number_waits_for_all_pods_of_its_last_start(world, anew):
    """A Job makes a refused pod anew at once, and those that were evicted for it up to ten minutes later."""
    world.add_nodes("n0", "n1", "n2", "n3", gpus=4)
    labels = {"jobset.sigs.k8s.io/jobset-name": "g"}
    world.submit(*(pod(f"g-{i}", 4, labels=labels) for i in range(3)))
    driven = world.connect()
    assert driven.turn().started == 1
    world.cluster.refusing = {world.pod("g-1")["metadata"]["annotations"]["placeopt.io/node"]}
    world.settle()
    world.cluster.templates.clear()  # the evicted pods come later
    if anew:
        driven = world.connect()
    world.turns(driven, 4)
    assert (sorted(world.written("eviction")), world.running()) == (["g-0", "g-2"], {})
    assert "g-1.0" in {found["metadata"]["name"] for found in world.api.all("pods")}
    world.submit(*(pod(f"g-{i}.late", 4, labels=labels) for i in (0, 2)))
    world.turns(driven, 3)
    assert sorted(world.running()) == ["g-0.late", "g-1.0", "g-2.late"]
    assert set(sizes(world).values()) == {"3"}


@pytest.mark.parametrize("cut", [0, 1, 2, None], ids=lambda cut: f"cut at {cut}")
def test_that_a_gang_was_whole_outlasts_the_driver(world, cut):
    """It is on record with each pod; cut short, with some of them, the next driver completes it."""
    world.add_nodes("n0")
    world.submit(*gang("g", 3))
    driven = world.connect()
    driven.turn()
    world.settle()
    if cut is not None:
        world.at("record", f"g-{cut}", ConnectionResetError(), always=True)
    driven.turn()
    world.calm()
    if cut is not None:
        world.connect().turn()
    marks = [found["metadata"]["annotations"].get("placeopt.io/whole") for found in world.api.all("pods")]
    assert marks == ["true"] * 3
    writes = len(world.api.writes)
    world.connect().turn()
    assert len(world.api.writes) == writes
    world.api.remove("pods", "g-1")
    last = world.connect()
    last.turn()
    last.turn()
    assert world.written("eviction") == []
    assert sizes(world)["g-1.0"] == "1"


@pytest.mark.parametrize("answered", [False, True], ids=["lost before", "lost after"])
@pytest.mark.parametrize("number", range(12))
def test_a_driver_that_ends_at_any_write_while_a_gang_is_taken_back_is_followed_by_another(world, number, answered):
    """A pod goes as its gate is lifted. Marks, lifts, evictions, second start, record: the n-th write breaks."""
    world.add_nodes("n0")
    world.submit(*gang("g", 3))
    world.cut(number, answered=answered)
    lose_a_pod(world, then=world.api.before)
    driven = world.connect()
    for _ in range(8):
        report = driven.turn()
        if report.silent.startswith("the API server"):
            driven.close()
            driven = world.connect()
        world.settle()
    assert len(world.running()) == 3
    assert set(sizes(world).values()) == {"3"}
    assert all(len(nodes) == 1 for nodes in world.cluster.bindings.values())
    assert all("placeopt.io/whole" in world.pod(name)["metadata"]["annotations"] for name in world.running())


def test_a_gang_of_unlike_pods_starts_together_and_gets_back_a_pod_that_it_loses(world):
    """A leader of one GPU and two workers of four; beside them a pod alone."""
    leader, *workers = gang("g", 3, 4)
    leader = pod("g-0", 1, labels=leader["metadata"]["labels"], annotations=leader["metadata"]["annotations"])
    world.add_nodes("n0", "n1", gpus=6)
    world.submit(leader, *workers, pod("alone", 1))
    driven = world.connect()
    assert driven.turn().started == 2
    world.settle()
    assert {size for name, size in sizes(world).items() if name.startswith("g-")} == {"3"}
    assert sorted(world.running()) == ["alone", "g-0", "g-1", "g-2"]
    driven.turn()
    world.api.remove("pods", "g-1")
    world.turns(driven, 3)
    assert sorted(world.running()) == ["alone", "g-0", "g-1.0", "g-2"]
    assert world.written("eviction") == []
