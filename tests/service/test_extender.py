"""The calls of kube-scheduler over HTTP: true reasons, gangs decided once, nothing bound twice, restarts."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("fastapi")

from helpers.full_disk import full_disk
from helpers.kube_scheduler import Bindings, args, binding, node, pod
from helpers.kube_scheduler_run import Host, Run
from helpers.night import nightly
from placeopt import Engine, PlaceoptError
from placeopt.importers import read_kubernetes
from placeopt.service import Refused
from placeopt.service.extender import Extender

NODES = ["n0", "n1", "n2", "n3"]


@pytest.fixture
def empty(tmp_path):
    with Host(tmp_path) as made:
        yield made


@pytest.fixture
def host(empty):
    empty.load(NODES)
    return empty


def nodes_for(host, one, nodes=NODES):
    answer = host.ask("filter", args(one, nodes))
    assert answer["Error"] == ""
    return answer["NodeNames"]


def only_node(host, one, nodes=NODES):
    (name,) = nodes_for(host, one, nodes)
    return name


def bind(host, one, to):
    """The error, empty if it is bound."""
    return host.ask("bind", binding(one, to))["Error"]


def running(host):
    return [held.job for held in host.snapshot().running]


def wait(host, seconds):
    """Let time go; any call looks for what is late, also one for a pod that fits nowhere."""
    host.now_s += seconds
    assert nodes_for(host, pod("huge", 9)) == []


def of_gang(name, size, gpus=8):
    return [pod(f"{name}{i}", gpus, (name, size)) for i in range(size)]


def test_a_pod_alone_through_all_calls(host):
    one = pod("a", 8)
    answer = host.ask("filter", args(one, [*NODES, "gone"]))
    assert answer["NodeNames"] == NODES
    assert answer["FailedAndUnresolvableNodes"] == {"gone": "placeopt has no such node"}
    scores = {entry["Host"]: entry["Score"] for entry in host.ask("prioritize", args(one, NODES))}
    assert (set(scores), set(scores.values()) <= set(range(11))) == (set(NODES), True)
    assert bind(host, one, "n2") == ""
    assert host.restart()
    assert nodes_for(host, one) == ["n2"]
    assert bind(host, one, "n2") == ""  # not sent again: a second Binding is a conflict
    assert "is bound to node 'n2', not 'n1'" in bind(host, one, "n1")
    assert host.bindings.node_of == {"uid-a": "n2"}
    other = host.ask("filter", args(pod("b", 1), NODES))
    assert (other["NodeNames"], other["FailedNodes"]) == (["n0", "n1", "n3"], {"n2": "0 of 1 GPUs have room"})
    assert host.client.get("/v1/actions", params={"outcome": "done"}).json()["actions"][0]["action"]["job"] == "team/a"


def test_a_pod_of_a_name_that_was_given_before_is_another_job(host):
    """kubernetes #60966, PR #91126: a StatefulSet gives a name again, before the host reports the end of the first."""
    small, large, third = (pod("web-0", gpus) for gpus in (1, 6, 8))
    small["metadata"]["uid"], large["metadata"]["uid"], third["metadata"]["uid"] = "uid-A", "uid-B", "uid-C"
    assert nodes_for(host, small) == NODES  # never bound
    assert nodes_for(host, large) == NODES
    assert bind(host, large, "n0") == ""
    assert nodes_for(host, pod("b", 3)) == ["n1", "n2", "n3"]  # 6 of the 8 GPUs are taken
    assert "no filter call named the pod" in bind(host, small, "n1")
    assert nodes_for(host, third) == ["n1", "n2", "n3"]  # no longer bound to the node of the second
    assert host.restart()
    assert bind(host, third, "n1") == ""
    assert running(host) == ["team/web-0", "team/web-0~uid-C"]
    assert nodes_for(host, third) == ["n1"]


def test_a_worker_that_prioritize_chose_is_kept(host):
    """A pod of a gang that no filter call named: the rank that its scores tell of is its own after a restart."""
    first, second, third = of_gang("g", 3)
    nodes_for(host, first)
    scored = max(host.ask("prioritize", args(second, NODES)), key=lambda entry: entry["Score"])["Host"]
    assert host.restart()
    assert only_node(host, third) != scored
    assert only_node(host, second) == scored


def test_an_extender_on_an_engine_alone():
    with Engine(isolation="thread") as engine:
        engine.load(read_kubernetes([node(name) for name in NODES]))
        one, bindings = pod("a", 2), Bindings()
        for was_bound in (False, True):  # the second extender finds the pod in the engine's cluster
            extender = Extender(engine, binder=bindings)
            assert extender.filter(args(one, NODES))["NodeNames"] == (["n3"] if was_bound else NODES)
            if not was_bound:
                assert extender.bind(binding(one, "n3")) == {"Error": ""}
            with pytest.raises(Refused) as refused:
                extender.bind(binding(one, "n1"))
            assert refused.value.status == 409
        extender = Extender(engine)
        extender.filter(args(pod("b"), NODES))
        assert "leave bindVerb out" in extender.bind(binding(pod("b"), "n0"))["Error"]


def test_node_objects_come_back_as_they_were(host):
    items = [node(name) for name in NODES]
    host.change({"do": "drain", "nodes": ["n1"]})
    answer = host.ask("filter", {"Pod": pod("a"), "Nodes": {"metadata": {}, "items": items}, "NodeNames": None})
    assert answer["NodeNames"] is None
    assert answer["Nodes"] == {"metadata": {}, "items": [items[0], items[2], items[3]]}
    assert answer["FailedAndUnresolvableNodes"] == {"n1": "the node is drained and takes no new work"}


def test_a_gang_is_decided_at_its_first_pod(host):
    gang = of_gang("g", 3)
    chosen = {i: only_node(host, gang[i]) for i in (1, 0, 1, 2)}  # out of order, and one twice
    assert len(set(chosen.values())) == 3
    assert running(host) == ["team/g"]
    assert only_node(host, pod("x", 8)) not in chosen.values()
    assert [bind(host, one, chosen[i]) for i, one in enumerate(gang)] == ["", "", ""]
    assert host.bindings.node_of == {f"uid-g{i}": where for i, where in chosen.items()}
    assert nodes_for(host, pod("g3", 8, ("g", 3))) == []


def test_a_gang_that_does_not_fit_or_has_no_known_size_takes_no_room(host):
    answer = host.ask("filter", args(of_gang("g", 5)[0], NODES))
    assert (answer["NodeNames"], set(answer["FailedNodes"])) == ([], set(NODES))
    assert "5 workers" in answer["FailedNodes"]["n0"]
    one = pod("h0", 8)
    one["metadata"]["labels"] = {"jobset.sigs.k8s.io/jobset-name": "h"}
    assert "how many pods it has is not known" in host.ask("filter", args(one, NODES))["Error"]
    assert running(host) == []


def test_a_gang_is_decided_anew_only_while_no_other_pod_relies_on_it(host):
    first, second = of_gang("g", 2)
    assert only_node(host, first, ["n0", "n1"]) in {"n0", "n1"}
    assert only_node(host, first, ["n2", "n3"]) in {"n2", "n3"}
    assert nodes_for(host, second, ["n0", "n1"]) == []
    assert running(host) == ["team/g"]


def test_a_reservation_and_its_deadline_outlive_the_process(host):
    gang = of_gang("g", 3)
    first = only_node(host, gang[2])
    host.now_s += 40
    assert host.restart()
    assert only_node(host, gang[2]) == first
    second = only_node(host, gang[0])
    assert second != first
    assert host.restart()
    assert only_node(host, gang[0]) == second
    wait(host, 19)
    assert running(host) == ["team/g"]
    wait(host, 2)
    assert running(host) == []
    assert "holds no room any more" in bind(host, gang[0], second)
    assert host.restart()
    assert running(host) == []
    only_node(host, gang[1])  # decided anew


def test_a_bound_pod_keeps_the_room_of_its_gang_over_a_restart(host):
    gang = of_gang("g", 2)
    where = [only_node(host, one) for one in gang]
    assert bind(host, gang[1], where[1]) == ""
    assert host.restart()
    wait(host, 1000)
    assert [bind(host, gang[i], where[i]) for i in (1, 0)] == ["", ""]
    assert host.bindings.node_of == {f"uid-g{i}": where[i] for i in range(2)}


def test_a_start_that_the_host_reports_is_kept(host):
    """Without ``bindVerb`` kube-scheduler binds, and the host says so by the outcome of the start."""
    only_node(host, pod("g0", 8, ("g", 2)))
    only_node(host, pod("h0", 4, ("h", 2)))
    told = host.client.get("/v1/actions", params={"outcome": "open"}).json()["actions"]
    name = next(action["id"] for action in told if action["action"]["job"] == "team/g")
    assert host.client.post("/v1/outcome", json={"outcomes": [{"action": name, "result": "done"}]}).status_code == 200
    assert host.restart()
    wait(host, 1000)
    assert running(host) == ["team/g"]
    assert host.restart()


def test_a_binding_of_unknown_outcome_keeps_its_room(host):
    """A refusal gives the room back; a lost reply does not, and the next bind asks again."""
    replies = [ConnectionError("lost"), PlaceoptError("404: no such pod")]

    def binder(asked):
        raise replies.pop(0)

    host.binder = binder
    host.restart()
    one = pod("a", 8)
    nodes_for(host, one)
    assert "not known" in bind(host, one, "n0")
    assert len(running(host)) == 1
    assert host.restart()
    assert bind(host, one, "n0") == "404: no such pod"
    assert running(host) == []
    assert host.restart()


def test_bindings_are_created_beside_the_writer(host):
    """Other calls are answered meanwhile; the same bind again creates no second Binding."""
    asked, go = threading.Event(), threading.Event()

    def binder(of):
        asked.set()
        assert go.wait(300)
        host.bindings(of)

    host.binder = binder
    host.restart()
    one = pod("a", 8)
    nodes_for(host, one)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(bind, host, one, "n0")
        try:
            assert asked.wait(300)
            assert nodes_for(host, pod("b", 8)) == ["n1", "n2", "n3"]
            assert "is being created" in bind(host, one, "n0")
        finally:
            go.set()
        assert first.result() == ""
    assert bind(host, one, "n0") == ""
    assert host.bindings.node_of == {"uid-a": "n0"}


def test_a_loaded_cluster_ends_all_reservations(host):
    only_node(host, of_gang("g", 4)[0])
    host.load(NODES)
    assert nodes_for(host, pod("a", 8)) == NODES
    assert host.restart()


@pytest.mark.parametrize("by_uid", [True, False])
def test_preemption_keeps_the_nodes_where_the_pod_then_fits(host, by_uid):
    for name, gpus, where in (("a", 8, "n0"), ("b", 4, "n1"), ("c", 8, "n2"), ("d", 4, "n1")):
        nodes_for(host, pod(name, gpus), [where])
        assert bind(host, pod(name, gpus), where) == ""
    names = {"n0": ["a"], "n1": ["b"], "n2": []}
    pods = {n: [{"UID": f"uid-{p}"} if by_uid else pod(p) for p in of] for n, of in names.items()}
    key = "NodeNameToMetaVictims" if by_uid else "NodeNameToVictims"
    victims = {key: {n: {"Pods": of, "NumPDBViolations": 1} for n, of in pods.items()}}
    assert host.ask("preempt", {"Pod": pod("new", 8), **victims}) == {
        "NodeNameToMetaVictims": {"n0": {"Pods": [{"UID": "uid-a"}], "NumPDBViolations": 1}}
    }
    assert host.ask("preempt", {"Pod": of_gang("g", 2)[0], **victims}) == {"NodeNameToMetaVictims": {}}


def test_errors_have_the_form_of_the_protocol(empty):
    assert "no cluster is loaded" in empty.ask("filter", args(pod("a"), NODES))["Error"]
    assert "no cluster is loaded" in bind(empty, pod("a"), "n0")
    empty.ask("prioritize", args(pod("a"), NODES), 422)
    empty.load(NODES)
    assert "no filter call named" in bind(empty, pod("a"), "n0")
    bad = empty.ask("filter", {"Pod": {"metadata": {}}, "NodeNames": []}, 400)
    assert bad["place"] == "Pod.metadata.uid"
    for verb in ("filter", "prioritize", "preempt", "bind"):
        assert empty.ask(verb, {}, 400)["status"] == 400
        empty.ask(verb, [], 400)


def test_a_journal_that_cannot_be_written_changes_nothing(host):
    before = host.snapshot()
    one = of_gang("g", 4)[0]
    with full_disk():
        assert "disk" in host.ask("filter", args(one, NODES))["Error"]
    assert host.snapshot() == before
    only_node(host, one)
    assert host.restart()


@pytest.mark.parametrize("seed", nightly(range(5), 0))
def test_three_hundred_pods(empty, seed):
    """Gangs out of order, duplicates, retries, lost nodes, restarts: no pod bound twice, no node over its capacity."""
    run = Run(empty, random.Random(seed), pods=300, nodes=100)
    run.go(3)
    assert run.faults == []
    assert (run.reasons > 500, len(run.bound) > 150, len(run.lost) > 0) == (True, True, True)
    assert run.bound == empty.bindings.node_of
