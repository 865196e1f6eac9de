"""
The service under load: ``python bench/service_load.py [--nodes N] [--calls N] [--seeds N,...] [--revisions N]``.

A cluster of N nodes of 8 GPUs in use (``resident.busy_cluster``). A client adds a job and has it placed (``decide``
with ``add_jobs``), says that its start was done (``outcome``), and tells that another job ended (``changes``), over
and over, each call after the reply to the one before. The same calls are made through ``--stdio``, over HTTP on a unix
socket and on TCP, by ``Service.call`` in one process, and by the methods of an ``Engine`` without any service. Then 50
clients call at once over HTTP, and the memory of a service is watched while its revisions go up. Times are those of
the wall clock, of the client, with its own JSON; the state folder is on a disk, and every call waits until its change
is there.

``--parts`` measures some parts only; their results are kept in ``--rows`` until ``--report`` writes the page.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from placeopt import Engine, Instance
from placeopt.environment import usable_cores, versions
from placeopt.formats.documents import dumps
from placeopt.model import Job
from placeopt.service.service import Service
from resident import busy_cluster, job_of
from service_clients import Client, HttpClient, StdioClient

SIZES = (1000, 1000, 2000, 4000, 8000, 250)
"""GPU-milli of a job that comes."""
CLIENTS = 50
FAILS = 0.05
"""Part of the starts that fail on the host, on the way to many revisions."""
PARTS = ("engine", "in-process", "stdio", "unix", "tcp", "clients", "memory")
Rows = list[dict[str, Any]]


class Traffic:
    """
    The calls of one client, without end: name and body; the reply to each has to be told before the next is drawn.

    Parameters
    ----------
    running
        Ids of the running jobs that are this client's to end.
    name
        Begins the ids of its jobs.
    """

    def __init__(self, running: list[str], name: str, seed: int) -> None:
        self._random = random.Random(seed)
        self._running, self._name, self._count = running, name, 0
        self.placed = 0

    def job(self) -> Job:
        """Draw a job."""
        self._count += 1
        milli = self._random.choice(SIZES)
        return job_of(f"{self._name}-{self._count:06d}", milli, milli * 8, self._random.randrange(4))

    def ends(self) -> str:
        """Draw a running job that ends."""
        place = self._random.randrange(len(self._running))
        self._running[place], self._running[-1] = self._running[-1], self._running[place]
        return self._running.pop()

    def started(self, job: str) -> None:
        """Take a job that was placed as running."""
        self._running.append(job)
        self.placed += 1

    def calls(self, call: Callable[[str, Any], Any]) -> Iterator[tuple[str, float]]:
        """Make calls, and yield the name of each with its seconds."""
        while True:
            job = self.job().model_dump(mode="json", by_alias=True, exclude_defaults=True)
            reply, seconds = timed(call, "decide", {"add_jobs": [job], "explain": False})
            yield "decide", seconds
            for action in reply.get("actions", ()):
                self.started(job["id"])
                said = {"outcomes": [{"action": action["id"], "result": "done"}]}
                yield "outcome", timed(call, "outcome", said)[1]
            if self._running:
                steps: list[dict[str, Any]] = [{"do": "release", "job": self.ends()}]
                if not reply.get("actions"):  # it does not wait for room: the cluster keeps its size
                    steps.append({"do": "update", "remove_jobs": [job["id"]]})
                yield "changes", timed(call, "changes", {"steps": steps})[1]

    def engine_calls(self, engine: Engine) -> Iterator[tuple[str, float]]:
        """Do the same by the methods of an engine."""
        while True:
            job = self.job()
            placed, seconds = timed(decide, engine, job)
            yield "decide", seconds
            if placed:
                self.started(job.id)
            yield "changes", timed(ends, engine, self.ends(), None if placed else job.id)[1]


def told(started: Any, result: str) -> dict[str, Any]:
    """Return the body of ``outcome`` on the actions of a reply."""
    return {"outcomes": [{"action": action["id"], "result": result} for action in started["actions"]]}


def decide(engine: Engine, job: Job) -> bool:
    """Add a job and place it; return whether it has a place."""
    engine.update(add_jobs=[job])
    plan = engine.place([job.id], explain=False)
    return bool(engine.commit(plan).committed)


def ends(engine: Engine, job: str, gone: str | None) -> None:
    """End a job, and remove one that waits."""
    engine.release(job)
    if gone is not None:
        engine.update(remove_jobs=[gone])


def timed(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return what a function returns, and its seconds."""
    started = time.perf_counter()
    done = work(*arguments)
    return done, time.perf_counter() - started


def measured(calls: Iterator[tuple[str, float]], count: int) -> dict[str, list[float]]:
    """Return the seconds of calls by name, after a tenth of them that count for nothing."""
    found: dict[str, list[float]] = {}
    for number in range(count + count // 10):
        name, seconds = next(calls)
        if number >= count // 10:
            found.setdefault(name, []).append(seconds)
    return found


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the service as the command does, with its journal in a new folder."""
    state = tempfile.mkdtemp(prefix="service-load-", dir=folder)
    command = [sys.executable, "-m", "placeopt.cli", "serve", "--state", state, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.stdin is not None:
            process.stdin.close()
        process.terminate()
        process.wait(60)
        shutil.rmtree(state)


@contextmanager
def connected(part: str, folder: Path, instance: bytes) -> Iterator[tuple[Client, Callable[[], Client], int]]:
    """Start a service with a cluster; yield a client, what makes further ones, and the process id."""
    if part == "stdio":
        with served(folder, "--stdio") as process:
            client: Client = StdioClient(process)
            client.send("put_cluster", instance)
            yield client, lambda: client, process.pid
        return
    with tempfile.TemporaryDirectory() as place:
        listen = "127.0.0.1:0" if part == "tcp" else f"unix:{place}/s"
        with served(folder, "--listen", listen) as process:
            assert process.stderr is not None
            address = process.stderr.readline().decode().partition(" on ")[2].partition(";")[0]
            client = HttpClient(address)
            client.send("put_cluster", instance)
            yield client, partial(HttpClient, address), process.pid


def one_client(part: str, options: argparse.Namespace, seed: int, instance: Instance) -> dict[str, list[float]]:
    """Return the seconds of calls through one connection, or without any."""
    traffic = Traffic([held.job for held in instance.running], "new", seed)
    if part == "engine":
        with Engine() as engine:
            engine.load(instance)
            return measured(traffic.engine_calls(engine), options.calls)
    if part == "in-process":
        state = Path(tempfile.mkdtemp(prefix="service-load-", dir=options.folder))
        with Service(state) as service:
            service.call("put_cluster", dumps(instance))

            def call(name: str, body: Any) -> Any:
                return json.loads(service.call(name, json.dumps(body).encode()))

            found = measured(traffic.calls(call), options.calls)
        shutil.rmtree(state)
        return found
    with connected(part, options.folder, dumps(instance)) as (client, _, _):
        return measured(traffic.calls(client.call), options.calls)


def many_clients(options: argparse.Namespace, seed: int, instance: Instance) -> dict[str, list[float]]:
    """Return the seconds of calls of many clients at once over HTTP, and those of all together."""
    with connected("unix", options.folder, dumps(instance)) as (_, make, _):
        shares = [[held.job for held in instance.running[k::CLIENTS]] for k in range(CLIENTS)]
        traffics = [Traffic(share, f"c{k:02d}", seed + k) for k, share in enumerate(shares)]
        count = options.calls // CLIENTS

        def client(traffic: Traffic) -> dict[str, list[float]]:
            return measured(traffic.calls(make().call), count)

        started = time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as threads:
            results = list(threads.map(client, traffics))
        found = {"all": [time.perf_counter() - started, (count + count // 10) * CLIENTS]}
        for result in results:
            for name, seconds in result.items():
                found.setdefault(name, []).extend(seconds)
        return found


def replacing(call: Callable[..., Any], instance: Instance, seed: int) -> Iterator[int]:
    """
    Replace running jobs by others of the same shape, without end, so that the cluster keeps its size and its mix.

    One job ends, a like one comes and is placed, its start is said to be done; one in 20 starts fails, and the job is
    placed again. Every call has an ``Idempotency-Key``.
    """
    draw = random.Random(seed)
    shapes = {job.id: job for job in instance.jobs}
    running = [held.job for held in instance.running]
    for number in itertools.count():
        place = draw.randrange(len(running))
        gone = shapes.pop(running[place])
        job = gone.model_copy(update={"id": f"new-{number:07d}"})
        shapes[job.id], running[place] = job, job.id
        body = job.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        call("changes", {"steps": [{"do": "release", "job": gone.id}]}, f"end-{number}")
        started = call("decide", {"add_jobs": [body], "explain": False}, f"start-{number}")
        if draw.random() < FAILS:
            call("outcome", told(started, "failed"), f"failed-{number}")
            started = call("decide", {"jobs": [job.id], "explain": False}, f"again-{number}")
        call("outcome", told(started, "done"), f"done-{number}")
        yield int(started["revision"])


def memory(options: argparse.Namespace, seed: int, instance: Instance) -> Rows:
    """Return what the service holds at points on the way to as many revisions; each is printed as it is reached."""
    points: Rows = []
    with (
        tempfile.TemporaryDirectory(prefix="service-load-", dir=options.folder) as folder,
        connected("stdio", Path(folder), dumps(instance)) as (client, _, pid),
    ):
        first = done = client.call("state", None)["revision"]
        began = cpu_s(pid)
        for revision in itertools.chain([first], replacing(client.call, instance, seed)):
            done = revision - first
            if done >= len(points) * options.every:
                state = client.call("state", None)
                point = {"revisions": done, "mib": resident_mib(pid), "journal_mib": folder_mib(folder)}
                point |= {"jobs": state["running"] + state["waiting"], "cpu_s": cpu_s(pid) - began}
                points.append(point)
                print(json.dumps({"part": "memory", "seed": seed, **point}), flush=True)
            if done >= options.revisions:
                return points
    return points


def folder_mib(folder: str) -> float:
    """Return the size of the files below a folder."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 2**20


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def cpu_s(pid: int) -> float:
    """Return the seconds of CPU of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fsync_ms(folder: Path, count: int = 200) -> float:
    """Return the median milliseconds of writing and synchronising 4 KiB there."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        times = []
        for _ in range(count):
            started = time.perf_counter()
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("nodes", 5000), ("calls", 3000), ("revisions", 100_000), ("every", 5000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--parts", default=",".join(PARTS), help="those to measure")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="where the journals are, on a disk")  # noqa: S108
    parser.add_argument("--rows", type=Path, help="JSON lines of results; further ones are added")
    parser.add_argument("--report", type=Path, help="write the page from all rows")
    options = parser.parse_args()
    rows: Rows = [json.loads(line) for line in options.rows.open()] if options.rows and options.rows.exists() else []
    fresh: Rows = []
    for seed in map(int, filter(None, options.seeds.split(","))):
        parts = [part for part in options.parts.split(",") if part]
        instance = busy_cluster(options.nodes, seed, varied=False) if parts else None
        for part in parts:
            assert instance is not None
            row: dict[str, Any] = {
                "part": part,
                "seed": seed,
                "nodes": options.nodes,
                "fsync_ms": fsync_ms(options.folder),
            }
            if part == "memory":
                row["points"] = memory(options, seed, instance)
            else:
                run = partial(many_clients, options) if part == "clients" else partial(one_client, part, options)
                row["calls"] = figures(run(seed, instance))
            fresh.append(row)
            print(json.dumps(row), flush=True)
    if options.rows:
        with options.rows.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in fresh)
    if options.report:
        options.report.write_text(page(options, rows + fresh))


def figures(found: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return p50 and p99 in milliseconds and calls a second, by name of call, and of all together."""
    whole = found.pop("all", None)
    found["all"] = [seconds for times in found.values() for seconds in times]
    rows = {}
    for name, times in found.items():
        cuts = statistics.quantiles(times, n=100, method="inclusive")
        rows[name] = [1000 * cuts[49], 1000 * cuts[98], len(times) / sum(times)]
    if whole is not None:
        rows["all"][2] = whole[1] / whole[0]
    return rows


TITLES = {
    "engine": "`Engine` alone",
    "in-process": "`Service.call` in one process",
    "stdio": "`--stdio`",
    "unix": "HTTP, unix socket",
    "tcp": "HTTP, TCP on loopback",
    "clients": f"HTTP, unix socket, {CLIENTS} clients at once",
}
GOALS = {"stdio": "2 and 10", "unix": "4 and 20", "tcp": "4 and 20"}


def page(options: argparse.Namespace, rows: Rows) -> str:
    """Return the page of results."""
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [
        "# The service under load\n",
        f"`python bench/service_load.py --calls {options.calls}`, {usable_cores()} cores ({platform.machine()}), "
        f"Python {platform.python_version()}, {known}.\n",
        f"{options.nodes:,} nodes of 8 GPUs in use. `decide` adds one job and places it; `changes` ends one; `outcome` "
        "says that a start was done. Milliseconds of the wall clock, seen by a client in Python on the same "
        f"{usable_cores()} cores; every change is synchronised to the disk before the reply "
        f"({statistics.median(row['fsync_ms'] for row in rows):.2f} ms for 4 KiB, median).\n",
        "| through | goal, p50 and p99 | call | seed | p50 | p99 | calls/s |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for part, title in TITLES.items():
        for row in rows:
            if row["part"] == part:
                for name, (p50, p99, rate) in row["calls"].items():
                    goal = GOALS.get(part, "") if name == "all" else ""
                    lines.append(f"| {title} | {goal} | {name} | {row['seed']} | {p50:.2f} | {p99:.2f} | {rate:,.0f} |")
    lines.append("\n`Engine` alone has no JSON, no journal and no `outcome`, so its `all` is another mix.\n")
    if not any(row["part"] == "memory" for row in rows):
        return "\n".join([*lines, "Memory over revisions is not measured yet."]) + "\n"
    lines += [
        "\n## Memory over revisions\n",
        "`--parts memory --nodes N`: resident memory of `placeopt serve --stdio` and size of its state folder. Jobs "
        "end one after the other, each replaced by a like one that is placed and said to have started; one start in 20 "
        "fails and is placed again. Every call has an `Idempotency-Key`. The number of jobs stays.\n",
        "| nodes | seed | revisions | MiB | state folder, MiB | CPU s of the service | jobs |",
        "|---:|---:|---:|---:|---:|---:|---:|",
        *(
            f"| {row['nodes']:,} | {row['seed']} | {at['revisions']:,} | {at['mib']:.0f} | {at['journal_mib']:.0f} | "
            f"{at['cpu_s']:.0f} | {at['jobs']:,} |"
            for row in rows
            if row["part"] == "memory"
            for at in row["points"]
        ),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
