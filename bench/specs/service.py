"""``placeopt serve`` over HTTP on a unix socket: jobs come, start and end; every change is on disk before its reply."""

from __future__ import annotations

import http.client
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from placeopt import Engine, Instance, generate, write_document
from placeopt.live_cluster import ClusterChanges
from spec import BenchSpec, Row

Times = dict[str, list[float]]
"""Name of a call -> seconds of each."""


class Load(NamedTuple):
    """Nodes of 8 GPUs, clients at once, and jobs that each lets come and go."""

    nodes: int
    clients: int
    jobs: int


class Client(http.client.HTTPConnection):
    """A connection to a unix socket, which stays."""

    def __init__(self, path: Path) -> None:
        super().__init__("placeopt")
        self.path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))

    def call(self, method: str, path: str, body: bytes) -> Any:
        """
        Make a call and return its reply.

        Raises
        ------
        RuntimeError
            If the service refuses it.
        """
        self.request(method, path, body, {"content-type": "application/json"})
        answer = self.getresponse()
        reply = json.loads(answer.read())
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status}: {reply}")
        return reply


def run(asked: Load) -> Iterator[Row]:
    """Yield a row for each call: milliseconds of the wall clock that its client waits."""
    busy = busy_cluster(asked.nodes)
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), busy) as (path, _):
        running = [held.job for held in busy.running]
        began = time.perf_counter()
        with ThreadPoolExecutor(asked.clients) as threads:
            parts = [running[number :: asked.clients][: asked.jobs] for number in range(asked.clients)]
            found = list(threads.map(lambda part: traffic(Client(path), busy, part), parts))
        seconds = time.perf_counter() - began
    together: Times = {}
    for times in found:
        for name, some in times.items():
            together.setdefault(name, []).extend(some)
    together["all"] = [second for some in together.values() for second in some]
    for name, some in together.items():
        cuts = statistics.quantiles(some, n=100, method="inclusive")
        row: Row = {"call": name, "calls": len(some)}
        row |= {"p50_ms": round(1000 * cuts[49], 2), "p99_ms": round(1000 * cuts[98], 2)}
        yield row | ({"calls_a_second": round(len(some) / seconds)} if name == "all" else {})


def busy_cluster(nodes: int) -> Instance:
    """Return a cluster on which greedy has started what it could, and nothing waits."""
    with Engine(isolation="thread") as engine:
        engine.load(generate("uniform", jobs=6 * nodes, nodes=nodes, gpus=8, seed=1))
        engine.commit(engine.place(method="stranding", prove=False, explain=False))
        running = {held.job for held in engine.snapshot.running}
        waiting = tuple(job.id for job in engine.snapshot.jobs if job.id not in running)
        engine.apply(ClusterChanges(remove_jobs=waiting))
        return engine.snapshot


@contextmanager
def served(folder: Path, busy: Instance) -> Iterator[tuple[Path, int]]:
    """Serve the cluster, its journal in a folder; yield the socket and the process."""
    path, file = folder / "s", folder / "cluster.json"
    write_document(file, busy)
    where = ("--listen", f"unix:{path}", "--state", str(folder / "state"))
    command = (sys.executable, "-m", "placeopt.cli", "serve", *where)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()  # once it listens, or why it does not
        if not path.exists():
            raise RuntimeError(f"placeopt serve: {said.strip()}")
        Client(path).call("PUT", "/v1/cluster", file.read_bytes())
        yield path, process.pid
    finally:
        process.terminate()
        process.communicate(timeout=60)


def traffic(client: Client, busy: Instance, running: list[str]) -> Times:
    """End each of some running jobs, let one like it come, and say that its start is done."""
    records = {job.id: job for job in busy.jobs}
    times: Times = {}

    def call(name: str, body: Row) -> Any:
        data = json.dumps(body).encode()
        began = time.perf_counter()
        reply = client.call("POST", f"/v1/{name}", data)
        times.setdefault(name, []).append(time.perf_counter() - began)
        return reply

    for gone in running:
        job = records[gone].model_copy(update={"id": f"again-{gone}"})
        call("changes", {"steps": [{"do": "remove_jobs", "jobs": [gone]}]})
        record = job.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        reply = call("decide", {"add_jobs": [record], "explain": False})
        done = [{"action": action["id"], "result": "done"} for action in reply.get("actions", ())]
        if done:  # another client may have taken the room
            call("outcome", {"outcomes": done})
    client.close()
    return times


SPEC = BenchSpec(
    name="service",
    question="How long does the service over HTTP take for a call, with one client and with 50 at once?",
    rounds={
        "100 nodes, 1 client": Load(100, 1, 30),
        "5,000 nodes, 1 client": Load(5000, 1, 1000),
        "5,000 nodes, 50 clients": Load(5000, 50, 40),
    },
    run=run,
    columns=("round", "call", "calls", "p50_ms", "p99_ms", "calls_a_second", "load"),
    minutes=2,
)
