"""The calls of kube-scheduler over HTTP: journaled, nothing bound twice, true reasons, the same after a restart."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
import httpx

from helpers.full_disk import full_disk
from helpers.kube_scheduler import Bindings, args, binding, node, pod
from helpers.kube_scheduler_run import Run, overfull
from placeopt import PlaceoptError
from placeopt.formats import dumps, read_kubernetes
from placeopt.model import Instance
from placeopt.service import Service
from placeopt.service.extender import BindingArgs
from placeopt.service.http import HttpServer, parse_address

NODES = ["n0", "n1", "n2", "n3"]


class Clock:
    """Seconds that the test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Host:
    """A service behind a unix socket, and an API server that outlives it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock, self.bindings = folder, Clock(), Bindings()
        self.binder: Any = self.bindings
        self.start()

    def start(self) -> None:
        self.service = Service(self.folder / "state", binder=self.binder, bind_within_s=60, clock=self.clock)
        where = parse_address(f"unix:{self.folder}/s", has_tokens=False)
        self.server = HttpServer(self.service, where)
        self.server.start()
        self.client = httpx.Client(
            transport=httpx.HTTPTransport(uds=f"{self.folder}/s"), base_url="http://localhost", timeout=120
        )

    def stop(self) -> None:
        self.client.close()
        self.server.stop()
        self.service.close()

    def restart(self) -> None:
        """End and begin anew; the snapshot has the same bytes."""
        before = self.client.get("/v1/snapshot").content
        self.stop()
        self.start()
        assert self.client.get("/v1/snapshot").content == before

    def load(self, names: list[str]) -> None:
        cluster = dumps(read_kubernetes([node(name) for name in names]))
        reply = self.client.put("/v1/cluster", content=cluster, headers={"content-type": "application/json"})
        assert reply.status_code == 200, reply.text

    def ask(self, verb: str, body: object, status: int = 200) -> Any:
        reply = self.client.post(f"/k8s/{verb}", json=body)
        assert reply.status_code == status, reply.text
        return reply.json()

    def snapshot(self) -> Instance:
        return Instance.model_validate_json(self.client.get("/v1/snapshot").content)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    made.load(NODES)
    yield made
    made.stop()


def only_node(answer: dict[str, Any]) -> str:
    assert answer["Error"] == ""
    (name,) = answer["NodeNames"]
    return str(name)


def test_a_pod_alone_through_all_calls(host: Host) -> None:
    one = pod("a", 8)
    assert host.ask("filter", args(one, NODES))["NodeNames"] == NODES
    assert {entry["Host"] for entry in host.ask("prioritize", args(one, NODES))} == set(NODES)
    assert host.ask("bind", binding(one, "n2")) == {"Error": ""}
    host.restart()
    assert host.ask("bind", binding(one, "n2")) == {"Error": ""}  # not sent again: a second Binding is a conflict
    assert "is bound to node 'n2'" in host.ask("bind", binding(one, "n1"))["Error"]
    assert host.bindings.node_of == {"uid-a": "n2"}
    victims = {"n2": {"Pods": [{"UID": "uid-a"}], "NumPDBViolations": 0}}
    answer = host.ask("preempt", {"Pod": pod("b", 8), "NodeNameToMetaVictims": victims})
    assert list(answer["NodeNameToMetaVictims"]) == ["n2"]
    assert host.client.get("/v1/actions", params={"outcome": "done"}).json()["actions"][0]["action"]["job"] == "team/a"


def test_a_reservation_and_its_deadline_outlive_the_process(host: Host) -> None:
    gang = [pod(f"g{i}", 8, ("g", 3)) for i in range(3)]
    first = only_node(host.ask("filter", args(gang[2], NODES)))
    host.clock.now += 40
    host.restart()
    assert only_node(host.ask("filter", args(gang[2], NODES))) == first
    second = only_node(host.ask("filter", args(gang[0], NODES)))
    assert second != first
    host.restart()
    assert only_node(host.ask("filter", args(gang[0], NODES))) == second
    host.clock.now += 19
    host.service._kubernetes.expire()
    assert len(host.snapshot().running) == 1
    host.clock.now += 2
    host.service._kubernetes.expire()
    assert host.snapshot().running == ()
    assert "holds no room any more" in host.ask("bind", binding(gang[0], second))["Error"]
    host.restart()
    assert host.snapshot().running == ()


def test_a_bound_pod_keeps_the_room_of_its_gang_over_a_restart(host: Host) -> None:
    gang = [pod(f"g{i}", 8, ("g", 2)) for i in range(2)]
    where = [only_node(host.ask("filter", args(one, NODES))) for one in gang]
    assert host.ask("bind", binding(gang[1], where[1])) == {"Error": ""}
    host.restart()
    host.clock.now += 1000
    host.service._kubernetes.expire()
    assert host.ask("bind", binding(gang[1], where[1])) == {"Error": ""}
    assert host.ask("bind", binding(gang[0], where[0])) == {"Error": ""}
    assert host.bindings.node_of == {f"uid-g{i}": where[i] for i in range(2)}


def test_a_start_that_the_host_reports_is_kept(host: Host) -> None:
    """Without ``bindVerb`` kube-scheduler binds, and the host says so by the outcome of the start."""
    only_node(host.ask("filter", args(pod("g0", 8, ("g", 2)), NODES)))
    only_node(host.ask("filter", args(pod("h0", 4, ("h", 2)), NODES)))
    told = host.client.get("/v1/actions", params={"outcome": "open"}).json()["actions"]
    name = next(action["id"] for action in told if action["action"]["job"] == "team/g")
    assert host.client.post("/v1/outcome", json={"outcomes": [{"action": name, "result": "done"}]}).status_code == 200
    host.restart()
    host.clock.now += 1000
    host.service._kubernetes.expire()
    assert [held.job for held in host.snapshot().running] == ["team/g"]
    host.restart()


def test_a_binding_of_unknown_outcome_keeps_its_room(host: Host) -> None:
    """A refusal gives the room back; a lost reply does not, and the next bind asks again."""
    replies: list[Exception] = [ConnectionError("lost"), PlaceoptError("404: no such pod")]

    def binder(asked: BindingArgs) -> None:
        del asked
        raise replies.pop(0)

    host.binder = binder
    host.restart()
    one = pod("a", 8)
    host.ask("filter", args(one, NODES))
    assert "not known" in host.ask("bind", binding(one, "n0"))["Error"]
    assert len(host.snapshot().running) == 1
    host.restart()
    assert host.ask("bind", binding(one, "n0")) == {"Error": "404: no such pod"}
    assert host.snapshot().running == ()
    host.restart()


def test_bindings_are_created_beside_the_writer(host: Host) -> None:
    """Other calls are answered meanwhile; the same bind again creates no second Binding."""
    asked, go = threading.Event(), threading.Event()

    def binder(of: BindingArgs) -> None:
        asked.set()
        assert go.wait(300)
        host.bindings(of)

    host.binder = binder
    host.restart()
    one = pod("a", 8)
    host.ask("filter", args(one, NODES))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(host.ask, "bind", binding(one, "n0"))
        try:
            assert asked.wait(300)
            assert host.ask("filter", args(pod("b", 8), NODES))["NodeNames"] == ["n1", "n2", "n3"]
            assert "is being created" in host.ask("bind", binding(one, "n0"))["Error"]
        finally:
            go.set()
        assert first.result() == {"Error": ""}
    assert host.ask("bind", binding(one, "n0")) == {"Error": ""}
    assert host.bindings.node_of == {"uid-a": "n0"}


def test_a_loaded_cluster_ends_all_reservations(host: Host) -> None:
    only_node(host.ask("filter", args(pod("g0", 8, ("g", 4)), NODES)))
    host.load(NODES)
    assert host.ask("filter", args(pod("a", 8), NODES))["NodeNames"] == NODES
    host.restart()


def test_errors_have_the_form_of_the_protocol(tmp_path: Path) -> None:
    made = Host(tmp_path)
    try:
        assert "no cluster is loaded" in made.ask("filter", args(pod("a"), NODES))["Error"]
        assert "no cluster is loaded" in made.ask("bind", binding(pod("a"), "n0"))["Error"]
        made.ask("prioritize", args(pod("a"), NODES), 422)
        made.load(NODES)
        assert "no filter call named" in made.ask("bind", binding(pod("a"), "n0"))["Error"]
        bad = made.ask("filter", {"Pod": {"metadata": {}}, "NodeNames": []}, 400)
        assert bad["place"] == "Pod.metadata.uid"
        for verb in ("filter", "prioritize", "preempt", "bind"):
            assert made.ask(verb, {}, 400)["status"] == 400
            made.ask(verb, [], 400)
    finally:
        made.stop()


def test_a_journal_that_cannot_be_written_changes_nothing(host: Host) -> None:
    before = host.client.get("/v1/snapshot").content
    one = pod("g0", 8, ("g", 4))
    with full_disk():
        assert "disk" in host.ask("filter", args(one, NODES))["Error"]
    assert host.client.get("/v1/snapshot").content == before
    only_node(host.ask("filter", args(one, NODES)))
    host.restart()


def test_three_hundred_pods(tmp_path: Path) -> None:
    """Gangs out of order, duplicates, retries, restarts: no pod bound twice, no node over its capacity."""
    made = Host(tmp_path)
    try:
        made.load([f"n{i}" for i in range(100)])
        run = Run(made.client, random.Random(0), pods=300, nodes=100)
        for part in range(3):
            run.go(part / 3, (part + 1) / 3)
            made.restart()
            run.client = made.client
        now = made.snapshot()
        assert run.faults == []
        assert run.reasons > 500
        assert overfull(now, made.bindings.node_of, run.pods) == []
        assert len(made.bindings.node_of) > 150
    finally:
        made.stop()
