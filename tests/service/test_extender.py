"""The kube-scheduler extender on an engine: true reasons, gangs decided once, nothing bound twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.kube_scheduler import Bindings, args, binding, node, pod
from placeopt import BadInput, Engine, PlaceoptError, violations
from placeopt.formats import read_kubernetes
from placeopt.model import Job, Plan
from placeopt.service import Refused
from placeopt.service.extender import BindingArgs, Extender

NODES = ["n0", "n1", "n2", "n3"]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(isolation="thread") as made:
        made.load(read_kubernetes([node(name) for name in NODES]))
        yield made


def nodes_of(answer: dict[str, Any]) -> list[str]:
    assert answer["Error"] == ""
    names: list[str] = answer["NodeNames"]
    return names


def test_a_pod_alone_is_bound_once(engine: Engine) -> None:
    bindings = Bindings()
    extender = Extender(engine, binder=bindings)
    one = pod("a", 8)
    answer = extender.filter(args(one, [*NODES, "gone"]))
    assert nodes_of(answer) == NODES
    assert answer["FailedAndUnresolvableNodes"] == {"gone": "placeopt has no such node"}
    assert {entry["Score"] for entry in extender.prioritize(args(one, NODES))} <= set(range(11))
    assert extender.bind(binding(one, "n2")) == {"Error": ""}
    assert extender.bind(binding(one, "n2")) == {"Error": ""}
    assert bindings.node_of == {"uid-a": "n2"}
    with pytest.raises(Refused, match="is bound to node 'n2', not 'n1'") as refused:
        extender.bind(binding(one, "n1"))
    assert refused.value.status == 409
    other = extender.filter(args(pod("b", 1), NODES))
    assert nodes_of(other) == ["n0", "n1", "n3"]
    assert other["FailedNodes"] == {"n2": "0 of 1 GPUs have room"}


def test_node_objects_come_back_as_they_were(engine: Engine) -> None:
    items = [node(name) for name in NODES]
    engine.update(nodes={"n1": "drain"})
    answer = Extender(engine).filter({"Pod": pod("a"), "Nodes": {"metadata": {}, "items": items}, "NodeNames": None})
    assert answer["NodeNames"] is None
    assert answer["Nodes"] == {"metadata": {}, "items": [items[0], items[2], items[3]]}
    assert answer["FailedAndUnresolvableNodes"] == {"n1": "the node is drained and takes no new work"}


def test_a_gang_is_decided_at_its_first_pod(engine: Engine) -> None:
    bindings = Bindings()
    extender = Extender(engine, binder=bindings)
    gang = [pod(f"g{i}", 8, ("g", 3)) for i in range(3)]
    chosen = {}
    for one in (gang[1], gang[0], gang[1], gang[2]):  # out of order, and one twice
        (chosen[one["metadata"]["name"]],) = nodes_of(extender.filter(args(one, NODES)))
    assert len(set(chosen.values())) == 3
    assert len(engine.snapshot.running) == 1
    (left,) = set(NODES) - set(chosen.values())
    assert nodes_of(extender.filter(args(pod("x", 8), NODES))) == [left]
    for one in gang:
        assert extender.bind(binding(one, chosen[one["metadata"]["name"]])) == {"Error": ""}
    assert bindings.node_of == {f"uid-{name}": where for name, where in chosen.items()}
    fourth = extender.filter(args(pod("g3", 8, ("g", 3)), NODES))
    assert nodes_of(fourth) == []


def test_a_gang_that_does_not_fit_takes_no_room(engine: Engine) -> None:
    extender = Extender(engine)
    answer = extender.filter(args(pod("g0", 8, ("g", 5)), NODES))
    assert nodes_of(answer) == []
    assert set(answer["FailedNodes"]) == set(NODES)
    assert "5 workers" in answer["FailedNodes"]["n0"]
    assert engine.snapshot.running == ()


def test_a_gang_of_unknown_size_waits(engine: Engine) -> None:
    one = pod("g0", 8)
    one["metadata"]["labels"] = {"jobset.sigs.k8s.io/jobset-name": "g"}
    answer = Extender(engine).filter(args(one, NODES))
    assert "how many pods it has is not known" in answer["Error"]
    assert engine.snapshot.running == ()


def test_late_decisions_are_given_back(engine: Engine) -> None:
    clock = Clock()
    extender = Extender(engine, binder=Bindings(), bind_within_s=30, clock=clock)
    gangs = [[pod(f"{name}{i}", 8, (name, 2)) for i in range(2)] for name in "gh"]
    where = [nodes_of(extender.filter(args(gang[0], NODES)))[0] for gang in gangs]
    assert extender.bind(binding(gangs[1][0], where[1])) == {"Error": ""}
    clock.now = 31
    assert extender.expire() == ("team/g",)
    assert [held.job for held in engine.snapshot.running] == ["team/h"]  # a bound pod keeps the room of its gang
    assert "holds no room any more" in extender.bind(binding(gangs[0][0], where[0]))["Error"]
    assert len(nodes_of(extender.filter(args(gangs[0][1], NODES)))) == 1


def test_a_gang_is_decided_anew_only_while_no_other_pod_relies_on_it(engine: Engine) -> None:
    extender = Extender(engine)
    first, second = (pod(f"g{i}", 8, ("g", 2)) for i in range(2))
    (chosen,) = nodes_of(extender.filter(args(first, ["n0", "n1"])))
    assert chosen in {"n0", "n1"}
    (again,) = nodes_of(extender.filter(args(first, ["n2", "n3"])))
    assert again in {"n2", "n3"}
    assert nodes_of(extender.filter(args(second, ["n0", "n1"]))) == []
    assert len(engine.snapshot.running) == 1


def test_after_a_restart_pods_are_where_they_were(engine: Engine) -> None:
    bindings = Bindings()
    extender = Extender(engine, binder=bindings)
    one = pod("a", 2)
    extender.filter(args(one, NODES))
    extender.bind(binding(one, "n3"))
    again = Extender(engine, binder=bindings)
    assert nodes_of(again.filter(args(one, NODES))) == ["n3"]
    with pytest.raises(Refused) as refused:
        again.bind(binding(one, "n0"))
    assert refused.value.status == 409


def test_a_refused_binding_gives_the_room_back(engine: Engine) -> None:
    def refuses(asked: BindingArgs) -> None:
        raise PlaceoptError(f"404: no pod {asked.pod}")

    extender = Extender(engine, binder=refuses)
    one = pod("a", 8)
    extender.filter(args(one, NODES))
    assert extender.bind(binding(one, "n0")) == {"Error": "404: no pod team/a"}
    assert engine.snapshot.running == ()
    assert "leave bindVerb out" in Extender(engine).bind(binding(one, "n0"))["Error"]
    with pytest.raises(Refused, match="no filter call named"):
        extender.bind(binding(pod("b"), "n0"))
    with pytest.raises(BadInput, match=r"body.Pod.metadata.uid"):
        extender.filter({"Pod": {"metadata": {}}, "NodeNames": []})


@pytest.mark.parametrize("by_uid", [True, False])
def test_preemption_keeps_the_nodes_where_the_pod_then_fits(engine: Engine, *, by_uid: bool) -> None:
    extender = Extender(engine, binder=Bindings())
    there = {"n0": pod("a", 8), "n1": pod("b", 4), "n2": pod("c", 8)}
    for name, one in there.items():
        extender.filter(args(one, [name]))
        extender.bind(binding(one, name))
    extra = pod("d", 4)
    extender.filter(args(extra, ["n1"]))
    extender.bind(binding(extra, "n1"))
    names = {"n0": ["a"], "n1": ["b"], "n2": []}
    pods = {n: [{"UID": f"uid-{p}"} if by_uid else pod(p) for p in of] for n, of in names.items()}
    key = "NodeNameToMetaVictims" if by_uid else "NodeNameToVictims"
    victims = {n: {"Pods": of, "NumPDBViolations": 1} for n, of in pods.items()}
    answer = extender.preempt({"Pod": pod("new", 8), key: victims})
    assert answer == {"NodeNameToMetaVictims": {"n0": {"Pods": [{"UID": "uid-a"}], "NumPDBViolations": 1}}}
    gang = extender.preempt({"Pod": pod("g0", 8, ("g", 2)), key: victims})
    assert gang == {"NodeNameToMetaVictims": {}}


def check_reasons(engine: Engine, one: dict[str, Any], answer: dict[str, Any], good: list[str]) -> None:
    """Count what is free of each node from the records alone, and compare nodes and reasons of a pod alone."""
    if "labels" in one["metadata"]:
        return
    if any(one["metadata"]["uid"] in job.origin.names for job in running_jobs(engine) if job.origin is not None):
        return  # bound before
    need = int(one["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"])
    now = engine.snapshot
    held = Counter(part.node for job in now.running for part in job.assignments for _ in part.gpus)
    there = {entry.id for entry in now.cluster.nodes}
    assert set(good) == {name for name in [*good, *answer["FailedNodes"]] if 8 - held[name] >= need}
    assert set(answer["FailedAndUnresolvableNodes"]).isdisjoint(there)
    assert answer["FailedNodes"] == {
        name: f"{8 - held[name]} of {need} GPUs have room" for name in answer["FailedNodes"]
    }


def running_jobs(engine: Engine) -> list[Job]:
    now = engine.snapshot
    running = {held.job for held in now.running}
    return [job for job in now.jobs if job.id in running]


@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_pods(seed: int) -> None:
    """Gangs out of order, duplicates, retries, lost nodes: no pod bound twice, no node over its capacity."""
    rng = random.Random(seed)
    names = [f"n{i}" for i in range(300)]
    pods = [pod(f"s{i}", rng.choice([1, 1, 2, 4, 8])) for i in range(600)]
    for g in range(100):
        gpus = rng.choice([1, 2, 8])
        pods += [pod(f"g{g}-{i}", gpus, (f"g{g}", 4)) for i in range(4)]
    rng.shuffle(pods)
    bindings = Bindings()
    with Engine(isolation="thread") as engine:
        engine.load(read_kubernetes([node(name) for name in names]))
        extender = Extender(engine, binder=bindings)
        lost: set[str] = set()
        for number, one in enumerate(pods + rng.sample(pods, 200)):
            if number % 200 == 199:
                free = set(names) - lost - {part.node for held in engine.snapshot.running for part in held.assignments}
                gone = min(free, default=None)
                if gone is not None:
                    engine.update(nodes={gone: None})
                    lost.add(gone)
            sent = rng.sample(names, 290) if number % 3 else names
            answer = extender.filter(args(one, sent))
            good = nodes_of(answer)
            refused = answer["FailedNodes"].keys() | answer["FailedAndUnresolvableNodes"].keys()
            assert set(good) | refused == set(sent)
            assert not set(good) & (refused | lost)
            if number % 10 == 0:
                check_reasons(engine, one, answer, good)
            if not good:
                continue
            scores = extender.prioritize(args(one, good))
            best = max(scores, key=lambda entry: entry["Score"])["Host"]
            if rng.random() < 0.1:
                continue  # another plugin refused the pod; it comes again, or not
            assert extender.bind(binding(one, best)) == {"Error": ""}
            if rng.random() < 0.2:
                assert extender.bind(binding(one, best)) == {"Error": ""}
        now = engine.snapshot
        plan = engine.place(time_limit_s=0.5, method="fcfs", prove=False, explain=False)
    assert isinstance(plan, Plan)
    assert lost
    assert violations(now, plan) == []  # what runs is part of the plan
    assert plan.standing == ()
    held = Counter(part.node for one in now.running for part in one.assignments for _ in part.gpus)
    assert all(count <= 8 for count in held.values())
    sent_as = {one["metadata"]["uid"]: one for one in pods}
    bound = Counter[str]()
    for uid, where in bindings.node_of.items():
        requests = sent_as[uid]["spec"]["containers"][0]["resources"]["requests"]
        bound[where] += int(requests["nvidia.com/gpu"])
    assert all(count <= held[where] for where, count in bound.items())
    assert len(bindings.node_of) > 300
