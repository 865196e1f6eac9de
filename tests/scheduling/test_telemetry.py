"""What is measured on a live cluster: read from Prometheus or a file, and what policies make of it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from helpers.prometheus_lab import MISSING, Exporter, prometheus, wait_until
from placeopt import BadInput, Engine
from placeopt.build import instance, job, machine, running
from placeopt.model import Instance, Job, JobOrigin, Origin
from placeopt.scheduling import LiveScheduler, Prometheus, TelemetryFile, Usage, named_policy

UTILISATION, MEMORY, RATE = "gpu_utilisation_percent", "gpu_memory_mib", "rate_milli"


class Stated:
    """Telemetry of a test."""

    def __init__(self, **measured: dict[str, float]) -> None:
        self.measured = measured

    def read(self) -> Usage:
        return Usage(self.measured)


def pods(name: str, count: int) -> Job:
    workers = tuple(Origin(name=f"ns/{name}-{rank}", id=f"uid-{name}-{rank}") for rank in range(count))
    return job(name, gpus=1).model_copy(update={"origin": JobOrigin(name=f"ns/{name}", workers=workers)})


def test_workers_of_a_job_are_put_together() -> None:
    """The mean of their utilisation, the most memory of any; a job of which nothing is measured is unknown."""
    usage = Usage({UTILISATION: {"ns/a-0": 20, "ns/a-1": 60}, MEMORY: {"ns/a-0": 3000, "ns/a-1": 5000}})
    assert (usage.of(pods("a", 2), UTILISATION), usage.of(pods("a", 2), MEMORY)) == (40, 5000)
    assert usage.of(pods("b", 2), UTILISATION) is None
    assert Usage({UTILISATION: {"a": 7}}).of(job("a"), UTILISATION) == 7


def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    """What is none of its form later is a fault, and what is no figure is unknown."""
    path = tmp_path / "use.json"
    with pytest.raises(BadInput, match="no such file; name a file, or the URL"):
        TelemetryFile(str(path))
    path.write_text(json.dumps({UTILISATION: {"a": 43.5, "b": "x", "c": -1, "d": True}}))
    telemetry = TelemetryFile(str(path))
    assert telemetry.read() == Usage({UTILISATION: {"a": 43.5}, MEMORY: {}, RATE: {}})
    for text in ("[1]", "{", '{"gpu_memory_mib": 3}', "\xff"):
        path.write_text(text, encoding="latin-1")
        found = telemetry.read()
        assert found.measured == {}
        assert str(path) in found.fault
    path.unlink()
    assert "No such file" in telemetry.read().fault


@pytest.mark.parametrize("url", ["http://", "ftp://host:1", "nothing", "http:///path"])
def test_an_odd_url_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="expected http://HOST:PORT"):
        Prometheus(url)


ANSWERS = [
    (200, b"{}", "not an answer of Prometheus"),
    (200, b"no json", "Expecting value"),
    (200, b'{"data": {"result": 3}}', "not a vector"),
    (200, b'{"data": {"result": [{"metric": {}}]}}', "no sample"),
    (503, b"", "503"),
]


@pytest.mark.parametrize(("status", "body", "words"), ANSWERS)
def test_a_server_that_answers_oddly_knows_nothing(status: int, body: bytes, words: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        found = Prometheus(f"http://127.0.0.1:{server.server_address[1]}").read()
    finally:
        server.shutdown()
    assert found.measured == {}
    assert words in found.fault


def test_a_server_that_is_not_there_knows_nothing() -> None:
    assert "refused" in Prometheus("http://127.0.0.1:9").read().fault


@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
def test_a_real_prometheus_says_what_its_exporter_says(tmp_path: Path) -> None:
    """By pod, and by job of Slurm; two GPUs of a pod count together, GPUs without a job not at all."""
    exporter = Exporter()
    exporter.gpus = {
        "0": ({"namespace": "ns", "pod": "a-0"}, 20, 3000),
        "1": ({"namespace": "ns", "pod": "a-0"}, 60, 5000),
        "2": ({"hpc_job": "17"}, 90, 100),
        "3": ({}, 5, 10),
    }
    with prometheus(tmp_path, exporter) as server:
        telemetry = Prometheus(server.url)
        wait_until(lambda: telemetry.read().measured.get(MEMORY), "nothing is scraped")
        assert telemetry.read() == Usage({UTILISATION: {"ns/a-0": 40, "17": 90}, MEMORY: {"ns/a-0": 5000, "17": 100}})


def reading(now_ms: int, jobs: list[Job], held: dict[str, tuple[int, list[int]]]) -> Instance:
    """Return what a host with one machine of four GPUs shows; ``held``: job -> start and GPUs."""
    by_id = {one.id: one for one in jobs}
    runs = [
        running(by_id[name], [("n0", gpus)], started_ms=start, preemptible=True) for name, (start, gpus) in held.items()
    ]
    return instance(1, jobs, running=runs).model_copy(update={"now_ms": now_ms})


def asked(record: Job) -> tuple[int, int]:
    demand = record.options[0].demand
    return demand.gpu_utilisation_percent, demand.gpu_memory_mib


def test_later_jobs_of_a_profile_are_corrected_by_what_was_measured(engine: Engine) -> None:
    """
    Horus 4.2.3: what runs has the utilisation that is measured, and waiting ones of its profile ask for that memory.

    It is remembered when it has ended. Changes of ten points or less count for nothing; jobs of other profiles stay.
    """
    jobs = [
        job(name, gpus=1, profile=name[0], gpu_memory_mib=1000, gpu_utilisation_percent=50)
        for name in ("a1", "a2", "b")
    ]
    stated = Stated(**{UTILISATION: {"a1": 80.0}, MEMORY: {"a1": 4000.0}})
    live = LiveScheduler(engine, named_policy("horus"), telemetry=stated)
    live.follow(reading(0, jobs, {"a1": (0, [0])}))
    assert [asked(one) for one in live.snapshot.jobs] == [(80, 1000), (80, 4000), (50, 1000)]
    stated.measured = {UTILISATION: {"a1": 88.0}, MEMORY: {"a1": 3000.0}}
    live.follow(reading(10, jobs, {"a1": (0, [0])}))
    assert [asked(one) for one in live.snapshot.jobs] == [(80, 1000), (80, 4000), (50, 1000)]
    stated.measured = {UTILISATION: {"a1": 30.0}}
    live.follow(reading(20, jobs, {"a1": (0, [0])}))
    assert [asked(one) for one in live.snapshot.jobs] == [(30, 1000), (30, 4000), (50, 1000)]
    stated.measured = {}
    live.follow(reading(30, jobs[1:], {}))
    assert [asked(one) for one in live.snapshot.jobs] == [(30, 4000), (50, 1000)]


def test_no_memory_is_asked_for_where_gpus_do_not_state_theirs(engine: Engine) -> None:
    """As of Kubernetes' nodes without GPU feature discovery, and of Slurm's: a job with a need would never start."""
    old, new = (job(name, gpus=1, profile="p") for name in ("old", "new"))
    box = [machine("box", gpus=2, gpu_memory_mib=0)]
    live = LiveScheduler(
        engine, named_policy("horus"), telemetry=Stated(**{UTILISATION: {"old": 80}, MEMORY: {"old": 4000}})
    )
    live.follow(instance(1, [old, new], machines=box, running=[running(old, [("n0", [0])])]))
    assert [asked(one) for one in live.snapshot.jobs] == [(80, 0), (80, 0)]
    plan = live.decide(5.0, threading.Event(), deterministic=True)
    assert {one.job for one in plan.placements} == {"old", "new"}


def test_a_newcomer_that_slows_others_is_stopped_where_that_is_measured(engine: Engine) -> None:
    """PAB on a live cluster: a shared GPU's job falls from 80 to 30 %, which is less than half of its speed."""
    old = job("old", gpus=1, gpu_milli=500, gpu_memory_mib=100)
    new = job("new", gpus=1, gpu_milli=500, gpu_memory_mib=100)
    pab = named_policy("pab")
    with pytest.raises(BadInput, match="state where that is measured"):
        LiveScheduler(engine, pab)
    stated = Stated(**{UTILISATION: {"old": 80.0}})
    live = LiveScheduler(engine, pab, telemetry=stated)
    box = [machine("box", gpus=1, gpu_memory_mib=16_000)]
    on_one = instance(1, [old, new], machines=box, running=[running(old, [("n0", [0])], preemptible=True)])
    live.follow(on_one)
    plan = live.decide(5.0, threading.Event(), deterministic=True)
    assert {one.job for one in plan.placements} == {"old", "new"}
    both = [running(old, [("n0", [0])], preemptible=True), running(new, [("n0", [0])], preemptible=True)]
    shared = instance(1, [old, new], machines=box, running=both)
    live.follow(shared.model_copy(update={"now_ms": 1000}))
    stated.measured = {UTILISATION: {"old": 30.0, "new": 30.0}}
    live.follow(shared.model_copy(update={"now_ms": 61_000}))
    plan = live.decide(5.0, threading.Event(), deterministic=True)
    assert [one.job for one in plan.preempted] == ["new"]
