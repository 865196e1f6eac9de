"""Questions to a service at work: they end at their limit, with their client and with the service, and block nobody."""

from __future__ import annotations

import contextlib
import json
import math
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator

import pytest

from placeopt import generate, solve
from placeopt.documents import dumps
from placeopt.explain import explain, explain_all
from placeopt.whatif import Limits, defrag, fail, fit, parse_job

pytest.importorskip("fastapi")
import httpx

from helpers.served import JSON, LONG_S, SERVE, Served, until

NODES = 60
ROUND = generate("gangs", jobs=150, nodes=NODES, gpus=8, seed=3)
WAITING = next(job.id for job in ROUND.jobs if job.id not in {held.job for held in ROUND.running})
ENDLESS = {"level": "node", "k": 3, "time_limit_s": 3600}
"""Takes hours: 34,220 scenarios."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with a cluster."""
    with Served(tmp_path_factory.mktemp("served")) as served:
        served.load(ROUND)
        yield served


def ask(served: Served, name: str, body: dict[str, object]) -> httpx.Response:
    with served.client(name) as client:
        return client.post("/v1/whatif/fail", json=body)


def is_at_work(served: Served, name: str) -> bool:
    """Whether a caller has as many what-ifs at work as it may: one more is refused."""
    return ask(served, name, {"level": "node", "time_limit_s": 0.01}).status_code == 503


def two_endless(served: Served, name: str) -> list[socket.socket]:
    """Put two questions to work that take hours; one that was refused, beside a probe at work, is asked again."""
    asked: list[socket.socket] = []

    def both_are_at_work() -> bool:
        for answered in select.select(asked, [], [], 0)[0]:
            answered.close()
            asked.remove(answered)
        asked.extend(served.send(name, "/v1/whatif/fail", ENDLESS) for _ in range(2 - len(asked)))
        return is_at_work(served, name)

    until(both_are_at_work)
    return asked


def test_the_limit_is_that_of_the_whole_answer(served: Served) -> None:
    """And the answer says how many scenarios were not reached; each of them had the limit for itself before."""
    reply = ask(served, "read", {**ENDLESS, "time_limit_s": 1})
    answer = reply.json()["answer"]
    assert reply.status_code == 200
    figures = {figure["name"]: figure["value"] for figure in answer["figures"]}
    assert len(answer["tables"][0]["rows"]) + figures["not examined"] == math.comb(NODES, 3)
    assert figures["not examined"] > 0
    assert figures["answer"] != "yes"


def test_other_reads_are_answered_beside_long_questions(served: Served) -> None:
    """Two what-ifs of one token at work: its own explanations and state, and the what-ifs of another token."""
    long = two_endless(served, "read")
    with served.client("read") as client:
        assert client.get(f"/v1/explain/{WAITING}").json()["answer"]["title"].startswith(f"{WAITING}: waiting")
        assert client.get("/v1/cluster").status_code == 200
    assert ask(served, "other-read", {"level": "node", "time_limit_s": 0.5}).status_code == 200
    assert is_at_work(served, "read")
    for sock in long:
        sock.close()


def test_a_question_ends_with_its_client(served: Served) -> None:
    """Its place is free for the next one."""
    gone = two_endless(served, "decide")
    for sock in gone:
        sock.close()
    until(lambda: not is_at_work(served, "decide"))


def test_a_stopped_service_ends_its_questions(tmp_path_factory: pytest.TempPathFactory) -> None:
    """SIGTERM in the middle of questions that would take hours."""
    with Served(tmp_path_factory.mktemp("stopped"), "--limit", "stop_s=1") as served:
        served.load(ROUND)
        long = two_endless(served, "read")
        served.process.send_signal(signal.SIGTERM)
        until(lambda: served.process.poll() is not None)
        assert served.process.returncode == 143
        for sock in long:
            sock.close()


def test_lines_end_with_their_reader() -> None:
    """The program that started the service is gone: a question in the middle does not keep it alive."""
    child = subprocess.Popen([*SERVE, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    load = {"id": 1, "call": "put_cluster", "body": json.loads(dumps(ROUND))}
    child.stdin.write(json.dumps(load).encode() + b"\n")
    child.stdin.flush()
    assert b"reply" in child.stdout.readline()
    child.stdin.write(json.dumps({"id": 2, "call": "whatif", "path": {"verb": "fail"}, "body": ENDLESS}).encode())
    child.stdin.write(b'\n{"id": 3, "call": "state"}\n')
    child.stdin.flush()
    assert b'"id":3' in child.stdout.readline()
    child.stdin.close()
    child.stdout.close()
    until(lambda: child.poll() is not None)


def test_a_body_of_role_read_is_short(served: Served) -> None:
    """Refused by its stated length before any of it comes, and without one as soon as it is too long."""
    head = "POST /v1/whatif/fail HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer secret-of-read\r\n"
    head += "content-type: application/json\r\n"
    for more in (f"content-length: {2**20}\r\n\r\n", "transfer-encoding: chunked\r\n\r\n20000\r\n" + " " * 0x20000):
        with socket.create_connection(served.address, timeout=60) as sock:
            sock.sendall((head + more).encode())
            assert sock.recv(100).startswith(b"HTTP/1.1 413 ")
    with served.client("decide") as client:  # a change may be long
        reply = client.post("/v1/decide", content=b'{"jobs": [' + b" " * 2**20 + b"]}", headers=JSON)
        assert reply.status_code == 400


def test_a_stream_goes_on_after_the_last_event(served: Served) -> None:
    """A browser that connects anew sends the id of the last event, at the same address as before."""
    with served.client("admin") as client:
        for step in ("drain", "undrain"):
            body = {"steps": [{"do": step, "nodes": [ROUND.cluster.nodes[0].id]}]}
            assert client.post("/v1/changes", json=body).status_code == 200
        last = client.get("/v1/events").json()["last"]
        headers = {"accept": "text/event-stream", "last-event-id": str(last - 1)}
        with client.stream("GET", "/v1/events", params={"after": 0}, headers=headers) as stream:
            assert next(stream.iter_lines()) == f"id: {last}"


def test_a_question_too_many_is_to_come_again(served: Served) -> None:
    """503 with the seconds to wait, as a header and in the problem."""
    long = two_endless(served, "decide")
    reply = ask(served, "decide", {"level": "node"})
    assert (reply.status_code, reply.headers["retry-after"], reply.json()["retry_after_s"]) == (503, "1", 1)
    for sock in long:
        sock.close()


def test_clients_that_wait_for_events_leave_room_for_others(served: Served) -> None:
    """One token that opens all the streams that there may be: a further one is refused, other calls are answered."""
    head = b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n"
    head += b"authorization: Bearer secret-of-read\r\n\r\n"
    with contextlib.ExitStack() as stack, served.client("other-read") as client:
        for _ in range(64):
            sock = stack.enter_context(socket.create_connection(served.address, timeout=LONG_S))
            sock.sendall(head)
            assert sock.recv(100).startswith(b"HTTP/1.1 200 ")
        reply = client.get("/v1/events", params={"wait_s": 20})
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
        assert client.get("/v1/events").status_code == 200
        assert client.get("/v1/cluster").status_code == 200
        stack.close()
        until(lambda: client.get("/v1/events", params={"wait_s": 1}).status_code == 200)


def test_an_id_of_an_event_is_a_number(served: Served) -> None:
    """Refused before the stream begins."""
    with served.client("read") as client:
        reply = client.get("/v1/events", headers={"accept": "text/event-stream", "last-event-id": "x"})
        assert (reply.status_code, reply.json()["place"]) == (400, "Last-Event-ID")


class TestInTheLibrary:
    """The same functions without a service, cancelled before they begin: they say that nothing is proven."""

    over = threading.Event()
    over.set()

    def test_explanations(self) -> None:
        """With the plan's own reasons."""
        plan = solve(ROUND, method="stranding", time_limit_s=5)
        waits = plan.unplaced[0].job
        one = explain(ROUND, plan, waits, time_limit_s=3600, cancel=self.over)
        assert (one.proven, one.reason) == (False, plan.unplaced[0].reason)
        every = explain_all(ROUND, plan, time_limit_s=3600, cancel=self.over)
        assert not every.proven
        assert every.waiting == len(plan.unplaced)

    def test_whatifs(self) -> None:
        """With what is known by then."""
        limits = Limits(time_limit_s=3600)
        lost = fail(ROUND, "node", k=3, limits=limits, cancel=self.over)
        assert (lost.left, lost.answer) == (math.comb(NODES, 3), "unknown")
        assert defrag(ROUND, limits=limits, cancel=self.over).front == ()
        copies = fit(ROUND, parse_job("8", ROUND), limits, self.over)
        assert copies.found <= copies.most
        assert copies.binds is None

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_a_limit_holds_in_processes_as_well(self, jobs: int) -> None:
        """Those that are not reached are counted, however many scenarios are solved side by side."""
        lost = fail(ROUND, "node", k=3, limits=Limits(time_limit_s=1), jobs=jobs)
        assert len(lost.scenarios) + lost.left == math.comb(NODES, 3)
        assert lost.left > 0
