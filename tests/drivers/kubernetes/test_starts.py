"""Gates are lifted in one patch a pod, for whole gangs or for none, whatever happens between two patches."""

import pytest

from helpers.kubernetes_api import Refusal
from helpers.kubernetes_cluster import GATE, gang, node, pod

DENIED = Refusal(403, "Forbidden", "an admission webhook denied the request")


@pytest.fixture
def submitted(world):
    """Submit pods to a cluster of n0."""

    def submit(*pods):
        world.add_nodes("n0")
        world.submit(*pods)

    return submit


def on(found):
    required = found["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return [[v for f in t.get("matchFields", []) for v in f["values"]] for t in required["nodeSelectorTerms"]]


def test_one_patch_lifts_the_gate_requires_the_node_and_leaves_a_mark(world, submitted):
    submitted(pod("a", 2))
    report = world.connect().turn()
    assert (report.placed, report.started, report.refused) == (1, 1, 0)
    found = world.pod("a")
    assert "schedulingGates" not in found["spec"]
    assert on(found) == [["n0"]]
    marks = {"round": report.id, "plan": report.plan, "node": "n0", "pods": "1", "gpus": "0,1"}
    noted = found["metadata"]["annotations"]
    assert {name: noted[f"placeopt.io/{name}"] for name in marks} == marks
    assert [method for method, _, _ in world.api.writes] == ["PATCH"]


def test_every_term_of_the_pods_own_affinity_gets_the_node(world):
    for name in ("n0", "n1", "n2"):
        world.api.add("nodes", node(name, zone=name))
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in ("n1", "nowhere")]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    world.submit(pod("a", affinity={"nodeAffinity": required}))
    assert world.connect().turn().started == 1
    assert on(world.pod("a")) == [["n1"], ["n1"]]
    world.cluster.turn()
    assert list(world.cluster.bindings.values()) == [["n1"]]


def test_pods_without_the_gate_or_behind_others_are_left_alone(world, submitted):
    submitted(
        pod("theirs", gated=False),
        pod("quota", gated=False, schedulingGates=[{"name": GATE}, {"name": "kueue.x-k8s.io/admission"}]),
        pod("other", gated=False, schedulingGates=[{"name": "example.com/other"}]),
    )
    report = world.connect().turn()
    assert (report.placed, world.api.writes) == (0, [])
    assert "3 pods wait for others" in report.remarks


def test_room_that_is_promised_and_not_yet_bound_is_not_given_twice(world, submitted):
    submitted(pod("a", 5))
    driven = world.connect()
    assert driven.turn().started == 1
    world.submit(pod("b", 5))
    assert (driven.turn().placed, driven.turn().placed) == (0, 0)
    assert world.lifted() == {"a"}
    assert world.connect().turn().placed == 0  # nor by a driver that starts now


def test_a_gang_is_recorded_before_its_first_gate_is_lifted(world, submitted):
    submitted(*gang("g", 3))
    assert world.connect().turn().started == 1
    assert ["spec" in body for _, _, body in world.api.writes] == [False] * 3 + [True] * 3
    assert world.written("lift") == ["g-0", "g-1", "g-2"]
    assert len({p["metadata"]["annotations"]["placeopt.io/round"] for p in world.api.all("pods")}) == 1


def test_a_gang_that_lacks_a_pod_stays_gated(world, submitted):
    submitted(*gang("g", 3)[:2])
    assert (world.connect().turn().placed, world.api.writes) == (0, [])


def test_a_gang_of_unknown_size_waits_until_no_pods_come(world, submitted):
    labels = {"jobset.sigs.k8s.io/jobset-name": "s"}
    submitted(pod("s-0", labels=labels))
    patient, hasty = world.connect(settle_s=3600.0), world.connect()
    assert patient.turn().placed == 0
    world.submit(pod("s-1", labels=labels))
    assert hasty.turn().placed == 1
    assert world.lifted() == {"s-0", "s-1"}


@pytest.mark.parametrize("moment", ["record", "lift"])
def test_another_writer_between_reading_and_patching_is_followed(world, submitted, moment):
    """409: the pod is read again, and patched as it is now."""
    submitted(*gang("g", 3))
    seen = {"seen": "yes"}
    change = lambda found: found["metadata"].setdefault("labels", {}).update(seen)  # noqa: E731
    world.at(moment, "g-1", lambda: world.api.change("pods", "g-1", change))
    assert world.connect().turn().started == 1
    assert world.lifted() == {"g-0", "g-1", "g-2"}
    assert world.pod("g-1")["metadata"]["labels"].items() >= seen.items()


def test_a_pod_that_goes_between_two_lifts_takes_its_gang_back(world, submitted):
    """g-0 is lifted, g-1 is deleted: g-0 is evicted and made anew behind the gate, g-2 is never lifted."""
    submitted(*gang("g", 3))
    world.at("lift", "g-1", lambda: world.api.remove("pods", "g-1"))
    driven = world.connect()
    report = driven.turn()
    assert (report.started, report.refused) == (0, 1)
    assert world.lifted() == set()
    assert len(world.api.all("pods")) == 3
    assert driven.turn().started == 1  # two of them are new
    assert len(world.lifted()) == 3
    assert "g-0" not in world.lifted()


def test_a_gang_that_changes_before_the_first_lift_is_not_touched(world, submitted):
    submitted(*gang("g", 3, owned=False))
    world.at("record", "g-2", lambda: world.api.remove("pods", "g-2"))
    report = world.connect().turn()
    assert (report.started, report.refused) == (0, 1)
    assert world.lifted() == set()


@pytest.mark.parametrize(
    ("owned", "words", "lifted"),
    [
        (True, "denied the request", set()),
        (False, "stays: it has no controller", {"g-0", "g-1"}),  # nothing would make it anew
    ],
)
def test_a_patch_that_the_server_forbids_takes_the_gang_back(world, submitted, owned, words, lifted):
    submitted(*gang("g", 3, owned=owned))
    world.at("lift", "g-2", DENIED, always=True)
    report = world.connect().turn()
    assert report.started == 0
    assert words in report.remarks[-1]
    assert world.lifted() == lifted


@pytest.mark.parametrize("answered", [False, True], ids=["lost before", "lost after"])
@pytest.mark.parametrize("number", range(6))
def test_a_driver_that_ends_between_two_patches_is_followed_by_another(world, submitted, number, answered):
    """The connection breaks at the n-th of six patches, done or not; a new driver finishes, and lifts nothing twice."""
    world.add_nodes("n1")
    submitted(*gang("g", 3, 4))
    world.cut(number, answered=answered)
    first = world.connect()
    assert "the API server" in first.turn().remarks[0]
    first.close()
    world.calm()
    world.connect().turn()
    world.cluster.turn()
    assert world.lifted() == {"g-0", "g-1", "g-2"}
    assert sorted(world.written("lift")) == ["g-0", "g-1", "g-2"]
    assert [len(nodes) for nodes in world.cluster.bindings.values()] == [1] * 3


def not_ready(found):
    found["status"]["conditions"] = [{"type": "Ready", "status": "False"}]


@pytest.mark.parametrize("gone", [True, False])
def test_a_half_lifted_gang_whose_node_is_gone_or_not_ready_begins_anew(world, submitted, gone):
    submitted(*gang("g", 2))
    world.at("lift", "g-1", ConnectionResetError(), always=True)
    driven = world.connect()
    driven.turn()
    world.calm()
    if gone:
        world.api.remove("nodes", "n0")
    else:
        world.api.change("nodes", "n0", not_ready)
    world.add_nodes("n1")
    assert "node n0 cannot be used any more" in driven.turn().remarks[0]
    driven.turn()
    world.cluster.turn()
    assert list(world.cluster.bindings.values()) == [["n1"], ["n1"]]
    assert "g-0" not in world.lifted()


def test_a_gang_of_the_same_name_in_another_namespace_is_another(world, submitted):
    submitted(*gang("g", 2))
    driven = world.connect()
    driven.turn()  # it is not known to run as a whole yet
    world.submit(*gang("g", 2, namespace="other"))
    assert driven.turn().placed == 1
