"""The HTTP side with a real service on a real socket: statuses, tokens, limits, slow clients, the page."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from placeopt import BadInput, generate
from placeopt.documents import dumps
from placeopt.errors import BadArgument
from placeopt.model import Instance

pytest.importorskip("fastapi")
import httpx

from helpers.served import until
from placeopt.service import CALLS, Service
from placeopt.service.http import ROLES, HttpServer, Limits, Metrics, open_socket, parse_address, read_tokens

ROOT = Path(__file__).resolve().parents[2]
JSON = {"content-type": "application/json"}
SMALL = Limits(body_bytes=2**20, connections=8, stop_s=2)
SECRETS = {role: f"secret-of-{role}" for role in ROLES}


def serve(service: Service, where: str = "127.0.0.1:0", **options: Any) -> HttpServer:
    """Return a server that has not started."""
    address = parse_address(where, has_tokens=options.get("tokens") is not None)
    return HttpServer(service, address, **options)


def client_of(server: HttpServer) -> httpx.Client:
    """Return a client of a server."""
    return httpx.Client(base_url=f"http://{server.address}", timeout=30)


@pytest.fixture(scope="module")
def cluster() -> Instance:
    """Some jobs wait, some run."""
    return generate("preempt", jobs=12, nodes=4, gpus=4, seed=0)


@pytest.fixture
def server(cluster: Instance) -> Iterator[HttpServer]:
    """A service with a cluster, behind a port."""
    with Service() as service, serve(service, limits=SMALL) as running:
        service.call("put_cluster", dumps(cluster))
        yield running


@pytest.fixture
def client(server: HttpServer) -> Iterator[httpx.Client]:
    """A client of it."""
    with client_of(server) as made:
        yield made


def problem(reply: httpx.Response, status: int) -> dict[str, object]:
    """Return the problem document of a reply of this status."""
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    found: dict[str, object] = reply.json()
    assert found["status"] == status
    assert "Traceback" not in reply.text
    return found


def connected(client: httpx.Client) -> socket.socket:
    """Return a connection to the server of a client."""
    return socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=30)


def raw(client: httpx.Client, data: bytes) -> bytes:
    """Send bytes and return what comes until the connection is closed."""
    with connected(client) as sock:
        sock.sendall(data)
        return b"".join(iter(lambda: sock.recv(65536), b""))


class TestCalls:
    """Replies and problems."""

    def test_a_round_trip(self, client: httpx.Client, cluster: Instance) -> None:
        """Load, look, decide, read the events."""
        assert client.put("/v1/cluster", content=dumps(cluster), headers=JSON).json()["nodes"] == 4
        now = client.get("/v1/snapshot")
        assert Instance.model_validate_json(now.content).cluster == cluster.cluster
        waiting = next(job.id for job in cluster.jobs if job.id not in {held.job for held in cluster.running})
        assert client.post("/v1/decide", json={"jobs": [waiting], "commit": False}).status_code == 200
        assert client.get("/v1/events", params={"after": 0}).json()["events"]

    def test_the_place_in_the_body(self, client: httpx.Client) -> None:
        """A wrong field, no JSON, a key twice, NaN, no body."""
        assert problem(client.post("/v1/decide", json={"jobs": [1]}), 400)["place"] == "jobs[0]"
        for body in (b"{", b'{"jobs": [], "jobs": []}', b'{"time_limit_s": NaN}', b"\xff", b"[]", b""):
            problem(client.post("/v1/decide", content=body, headers=JSON), 400)

    def test_a_stale_plan_says_what_changed(self, client: httpx.Client, cluster: Instance) -> None:
        """409 with the revision."""
        step = {"do": "drain", "nodes": [cluster.cluster.nodes[0].id]}
        known = client.get("/v1/cluster").json()["revision"]
        assert client.post("/v1/changes", json={"steps": [step]}).status_code == 200
        found = problem(client.post("/v1/changes", json={"steps": [step], "revision": known}), 409)
        assert found["revision"] == known + 1

    def test_the_same_key_gives_the_same_reply(self, client: httpx.Client, cluster: Instance) -> None:
        """And changes once; under another body it is refused."""
        body = {"steps": [{"do": "drain", "nodes": [cluster.cluster.nodes[1].id]}]}
        first, again = (client.post("/v1/changes", json=body, headers={"idempotency-key": "k"}) for _ in range(2))
        assert first.content == again.content
        other = {"steps": [{"do": "undrain", "nodes": [cluster.cluster.nodes[1].id]}]}
        problem(client.post("/v1/changes", json=other, headers={"idempotency-key": "k"}), 422)
        problem(client.post("/v1/changes", json=body, headers={"idempotency-key": "a b"}), 400)

    def test_what_there_is_not(self, client: httpx.Client) -> None:
        """Paths, methods, rounds, kinds of bodies."""
        for path in ("/nope", "/v1", "/v1/snapshot/", "//v1/snapshot", "/V1/snapshot", "/v1/rounds/nope"):
            problem(client.get(path), 404)
        reply = client.delete("/v1/cluster")
        problem(reply, 405)
        assert {"GET", "PUT"} <= set(reply.headers["allow"].split(", "))
        problem(client.post("/v1/decide", content=b"{}", headers={"content-type": "text/plain"}), 415)
        problem(client.post("/v1/decide", content=b"{}", headers={**JSON, "content-encoding": "gzip"}), 415)
        problem(client.post("/v1/decide", json={"jobs": ["nope"]}), 422)
        problem(client.get("/v1/cluster", params={"x": "1"}), 400)

    @pytest.mark.parametrize(
        "path",
        ["/v1/../v1/snapshot", "/v1/%2e%2e/snapshot", "/v1/explain/../../etc/passwd", "/v1/explain/a%00b", "/%0d"],
    )
    def test_tricks_with_paths(self, client: httpx.Client, path: str) -> None:
        """Nothing is normalised: the path is no call, or the job is unknown."""
        found = raw(client, f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
        assert re.match(rb"HTTP/1.1 4(04|22) ", found), found

    def test_loading_and_faults(self, cluster: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
        """503 before the host has spoken; 500 without a traceback."""
        with Service(host_driver=True) as service, serve(service) as server, client_of(server) as client:
            assert client.get("/healthz").status_code == 200
            problem(client.get("/readyz"), 503)
            client.put("/v1/cluster", content=dumps(cluster), headers=JSON)
            assert client.get("/readyz").status_code == 200
            monkeypatch.setattr(service, "call", lambda *_, **__: 1 / 0)
            problem(client.get("/v1/cluster"), 500)


class TestTokens:
    """Who may call what."""

    @pytest.fixture
    def guarded(self, tmp_path: Path) -> Iterator[httpx.Client]:
        """A client of a server with a token of each role."""
        lines = [f"{role} of-{role} {hashlib.sha256(SECRETS[role].encode()).hexdigest()}  # x" for role in ROLES]
        path = tmp_path / "tokens"
        path.write_text("\n".join(lines), encoding="utf-8")
        tokens = read_tokens(str(path))
        with Service() as service, serve(service, tokens=tokens) as server, client_of(server) as client:
            yield client

    def test_every_call_by_every_role(self, guarded: httpx.Client) -> None:
        """401 without and with a wrong token, 403 with a role too low, else something else."""
        order = list(ROLES)
        for call in CALLS.values():
            path = re.sub(r"\{\w+\}", "x", call.path)
            for header in ({}, {"authorization": "Bearer no"}, {"authorization": "Basic secret-of-admin"}):
                reply = guarded.request(call.method, path, headers=header)
                problem(reply, 401)
                assert reply.headers["www-authenticate"] == "Bearer"
            for role, secret in SECRETS.items():
                status = guarded.request(call.method, path, headers={"authorization": f"Bearer {secret}"}).status_code
                assert (status == 403) == (order.index(role) < order.index(call.role)), (call.name, role)
                assert status != 401

    def test_odd_tokens_and_paths_reach_nothing(self, guarded: httpx.Client) -> None:
        """On a socket, byte by byte: neither an odd header nor another spelling of a path is a way around the token."""
        digest = hashlib.sha256(SECRETS["admin"].encode()).hexdigest()
        odd = [b"", b" ", b" " + digest.encode(), b" secret-of-admin extra", b" \xff\xfe", b" " + b"x" * 10_000]
        odd = [*(b"authorization: Bearer" + end for end in odd), b"x-authorization: Bearer secret-of-admin"]
        paths = ["//v1/cluster", "/v1/cluster/", "/V1/cluster", "/healthz/../v1/cluster", "/%76%31/cluster"]
        paths += ["/v1%2fcluster", "/v1/cluster;x", "/v1/cluster?token=secret-of-admin", "/./v1/cluster"]
        paths += ["http://localhost/v1/cluster"]
        head = b"GET %s HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n%s\r\n\r\n"
        for header, path in [*((one, "/v1/cluster") for one in odd), *((b"x: y", path) for path in paths)]:
            found = raw(guarded, head % (path.encode(), header))
            assert re.match(rb"HTTP/1.1 (401|404|400) ", found), (header, path, found)
            assert b"running" not in found
        assert guarded.get("/healthz").status_code == 200

    def test_what_needs_none(self, guarded: httpx.Client) -> None:
        """Health and the page, which hold nothing of the cluster; metrics and the overview do."""
        for path in ("/", "/healthz", "/readyz", "/openapi.json"):
            assert guarded.get(path).status_code in (200, 503)
        for path in ("/metrics", "/v1/overview"):
            problem(guarded.get(path), 401)

    @pytest.mark.parametrize(
        "text",
        ["", "# nothing", "root a " + "0" * 64, "read a hunter2", f"read a {'0' * 64}\nread a {'1' * 64}", "read"],
    )
    def test_wrong_files(self, tmp_path: Path, text: str) -> None:
        """Refused by line; the line itself is not repeated, since it may hold a secret."""
        path = tmp_path / "tokens"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(BadInput) as caught:
            read_tokens(str(path))
        assert "hunter2" not in str(caught.value).replace(str(path), "")

    def test_a_file_that_others_may_write(self, tmp_path: Path) -> None:
        """They could give themselves a role."""
        path = tmp_path / "tokens"
        path.write_text(f"read a {'0' * 64}", encoding="utf-8")
        path.chmod(0o666)
        with pytest.raises(BadInput, match="chmod"):
            read_tokens(str(path))


class TestLimits:
    """Large bodies, slow clients, too many of them."""

    def test_a_body_of_a_gibibyte(self, client: httpx.Client) -> None:
        """Refused by its stated length; and without one after the limit, so that not all of it can be sent."""
        told = f"POST /v1/decide HTTP/1.1\r\nhost: localhost\r\ncontent-length: {2**30}\r\n\r\n"
        assert raw(client, told.encode()).startswith(b"HTTP/1.1 413 ")
        sent = 0
        with connected(client) as sock:
            head = "POST /v1/decide HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            sock.sendall(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
            piece = b"100000\r\n" + b" " * 2**20 + b"\r\n"
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                while sent < 2**30:
                    sock.sendall(piece)
                    sent += 2**20
        assert sent < 2**26
        assert client.get("/healthz").status_code == 200

    def test_slow_clients_beside_a_quick_one(self, client: httpx.Client) -> None:
        """Each has sent a part of its headers or of its body; others are answered meanwhile."""
        body = b"POST /v1/decide HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{"
        with contextlib.ExitStack() as stack:
            for number in range(SMALL.connections - 2):
                stack.enter_context(connected(client)).sendall(body if number % 2 else b"GET /v1")
            assert client.get("/v1/cluster").status_code == 200

    def test_clients_that_leave(self, client: httpx.Client) -> None:
        """In the middle of a body, and while waiting for events: counted as theirs, and no fault of the service."""
        body = b"POST /v1/decide HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{"
        for request in (body, b"GET /v1/events?after=99&wait_s=25 HTTP/1.1\r\nhost: localhost\r\n\r\n"):
            with connected(client) as sock:
                sock.sendall(request)
        counts = 'placeopt_requests_total{call="%s",code="%s"} %s.0'
        for call in ("decide", "events"):
            until(lambda call=call: counts % (call, "4xx", 1) in client.get("/metrics").text)
            assert counts % (call, "5xx", 0) in client.get("/metrics").text

    def test_what_is_no_http(self, client: httpx.Client) -> None:
        """Bytes of TLS, headers without an end: 400, and the connection is closed."""
        for data in (b"\x16\x03\x01\x02\r\n\r\n", b"GET / HTTP/1.1\r\nx: " + b"y" * 20000):
            assert raw(client, data).startswith(b"HTTP/1.1 400 ")
        assert client.get("/healthz").status_code == 200

    def test_too_many_connections(self, client: httpx.Client) -> None:
        """A request on one more is refused; once others have left, it is answered."""
        with contextlib.ExitStack() as stack:
            socks = [stack.enter_context(connected(client)) for _ in range(SMALL.connections)]
            socks[-1].sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert socks[-1].recv(4096).startswith(b"HTTP/1.1 503 ")
        until(lambda: client.get("/healthz").status_code == 200)

    def test_other_sites_in_a_browser(self, client: httpx.Client) -> None:
        """A foreign name that leads to this port, and a page of another origin."""
        problem(client.get("/v1/cluster", headers={"host": "evil.example"}), 403)
        problem(client.get("/v1/cluster", headers={"origin": "http://evil.example"}), 403)
        assert client.get("/v1/cluster", headers={"origin": str(client.base_url)}).status_code == 200

    def test_settings(self) -> None:
        """By name; each stands in the documentation with its default."""
        assert Limits.of(["body_bytes=5"]).body_bytes == 5
        for wrong in ("nope=1", "body_bytes", "body_bytes=0", "body_bytes=x"):
            with pytest.raises(BadArgument):
                Limits.of([wrong])
        page = (ROOT / "docs" / "service_http.md").read_text(encoding="utf-8")
        for field in fields(Limits):
            assert re.search(rf"^\| `{field.name}` \| {field.default:,} \|", page, re.MULTILINE), field.name


class TestEvents:
    """News without polling."""

    def test_long_poll_and_stream(self, client: httpx.Client, cluster: Instance) -> None:
        """A change ends the wait, and comes in the stream."""
        last = client.get("/v1/events").json()["last"]
        body = {"steps": [{"do": "drain", "nodes": [cluster.cluster.nodes[0].id]}]}
        timer = threading.Timer(0.3, lambda: httpx.post(f"{client.base_url}/v1/changes", json=body))
        timer.start()
        found = client.get("/v1/events", params={"after": last, "wait_s": 20}).json()["events"]
        timer.join()
        assert [event["number"] for event in found] == [last + 1]
        query = {"after": last}
        with client.stream("GET", "/v1/events", params=query, headers={"accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines()
            assert next(lines) == f"id: {last + 1}"
            assert json.loads(next(lines).removeprefix("data: "))["number"] == last + 1


class TestSockets:
    """Where it listens."""

    def test_unix_by_its_user_only(self, tmp_path: Path) -> None:
        """Mode 0600; a stale one is replaced, a live one is not; removed at the end."""
        path = tmp_path / "p.sock"
        where = f"unix:{path}"
        with Service() as service:
            with serve(service, where):
                assert stat.S_IMODE(path.stat().st_mode) == 0o600
                with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://placeopt") as client:
                    assert client.get("/healthz").status_code == 200
                with pytest.raises(BadInput, match="another service"):
                    serve(service, where)
            assert not path.exists()
        open_socket(parse_address(where, has_tokens=False))[0].close()  # as after kill -9
        assert path.exists()
        open_socket(parse_address(where, has_tokens=False))[0].close()
        path.unlink()
        path.write_text("mine", encoding="utf-8")
        with pytest.raises(BadInput, match="not a socket"):
            open_socket(parse_address(where, has_tokens=False))
        assert path.read_text(encoding="utf-8") == "mine"

    @pytest.mark.parametrize(
        "text", ["", "unix:", "8080", "localhost:x", "localhost:70000", "::1:80", "unix:" + "x" * 200]
    )
    def test_wrong_addresses(self, text: str) -> None:
        """Refused in words."""
        with pytest.raises(BadArgument, match="listen"):
            parse_address(text, has_tokens=True)

    def test_other_machines_need_tokens(self) -> None:
        """Loopback does not."""
        with pytest.raises(BadArgument, match="token-file"):
            parse_address("0.0.0.0:8080", has_tokens=False)
        parse_address("0.0.0.0:8080", has_tokens=True)
        for text in ("127.0.0.1:80", "[::1]:80", "localhost:80"):
            parse_address(text, has_tokens=False)

    @pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
    def test_the_command_ends_by_signals(self, tmp_path: Path, name: str, code: int) -> None:
        """With the exit codes of the other commands, and without its socket."""
        import signal

        path = tmp_path / "placeopt.sock"
        command = [sys.executable, "-m", "placeopt.cli", "serve", "--state", str(tmp_path)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ}) as child:
            assert child.stderr is not None
            assert child.stderr.readline().startswith(b"placeopt answers on unix:")
            child.send_signal(getattr(signal, name))
            child.communicate(timeout=60)
        assert child.returncode == code
        assert not path.exists()


class TestMetrics:
    """Names, and series that exist before anything happened."""

    def test_every_series_exists_at_zero(self) -> None:
        """Also those of failures."""
        text = Metrics().text().decode()
        for result in ("committed", "refused", "started", "failed"):
            assert f'placeopt_bindings_total{{result="{result}"}} 0.0' in text
        assert 'placeopt_round_duration_seconds_count{phase="solve"} 0.0' in text
        assert 'placeopt_requests_total{call="decide",code="5xx"} 0.0' in text
        assert "placeopt_gap_ratio NaN" in text
        assert "placeopt_build_info{" in text

    def test_no_ids_in_labels(self, client: httpx.Client, cluster: Instance) -> None:
        """Whatever was asked for."""
        client.get(f"/v1/explain/{cluster.jobs[0].id}")
        client.get("/v1/rounds/nope")
        text = client.get("/metrics").text
        assert cluster.jobs[0].id not in text
        assert "nope" not in text
        assert f'placeopt_jobs{{state="running"}} {len(cluster.running)}.0' in text


class TestDescription:
    """OpenAPI and the page."""

    def test_openapi_has_every_call(self, client: httpx.Client) -> None:
        """With its role; references lead somewhere."""
        found = client.get("/openapi.json").json()
        told = {(path, method.upper()) for path, methods in found["paths"].items() for method in methods}
        assert told == {(call.path, call.method) for call in CALLS.values()}
        for reference in set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(found))):
            assert reference in found["components"]["schemas"]

    def test_roles_are_documented_as_they_are(self) -> None:
        """The table of the page is that of the code."""
        page = (ROOT / "docs" / "service_http.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| `(\w+)` \| (GET|PUT|POST|DELETE) \| `([^`]+)` \| (\w+) \|", page, re.MULTILINE)
        assert rows == [(call.name, call.method, call.path, call.role) for call in CALLS.values()]
