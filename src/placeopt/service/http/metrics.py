"""
Metrics of the service in the text form of Prometheus, in a registry of its own.

Every label value is created at the start, so that a series of failures exists at 0 before the first one. Labels have
few values: ids of jobs and nodes are never among them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from placeopt import __version__
from placeopt.service.calls import CALLS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_TYPE = CONTENT_TYPE_LATEST
PHASES = ("solve",)
RESULTS = ("committed", "refused", "started", "failed")
STATES = ("running", "waiting")
CODES = ("2xx", "3xx", "4xx", "5xx")
ROUND_BUCKETS_S = (0.001, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
REQUEST_BUCKETS_S = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.125, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)


class Metrics:
    """Counters and gauges of one service; every method may be called from any thread."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        info = Gauge("placeopt_build_info", "Version of placeopt; always 1.", ["version"], registry=self.registry)
        info.labels(__version__).set(1)
        self._round_s = Histogram(
            "placeopt_round_duration_seconds",
            "Time of whole rounds, by phase.",
            ["phase"],
            buckets=ROUND_BUCKETS_S,
            registry=self.registry,
        )
        self._bindings = Counter(
            "placeopt_bindings_total",
            "Jobs by what came of their placement: committed or refused by the service, started or failed on the host.",
            ["result"],
            registry=self.registry,
        )
        self._gap = Gauge(
            "placeopt_gap_ratio", "Gap of the last whole round; NaN before there is one.", registry=self.registry
        )
        self._revision = Gauge("placeopt_revision", "Present revision of the cluster.", registry=self.registry)
        self._jobs = Gauge("placeopt_jobs", "Jobs of the cluster, by state.", ["state"], registry=self.registry)
        self._ready = Gauge("placeopt_ready", "1 once requests are answered.", registry=self.registry)
        self._requests = Counter(
            "placeopt_requests_total", "Requests by call and status.", ["call", "code"], registry=self.registry
        )
        self._request_s = Histogram(
            "placeopt_request_duration_seconds",
            "Time from the headers of a request to those of its reply, by call.",
            ["call"],
            buckets=REQUEST_BUCKETS_S,
            registry=self.registry,
        )
        self._calls = {*CALLS, OTHER}
        self._gap.set(float("nan"))
        for phase in PHASES:
            self._round_s.labels(phase)
        for result in RESULTS:
            self._bindings.labels(result)
        for state in STATES:
            self._jobs.labels(state)
        for call in sorted(self._calls):
            self._request_s.labels(call)
            for code in CODES:
                self._requests.labels(call, code)

    def request(self, call: str, status: int, seconds: float) -> None:
        """Count a request; ``call``: its name, another word where the path is none of a call."""
        name = call if call in self._calls else OTHER
        self._requests.labels(name, f"{status // 100}xx").inc()
        self._request_s.labels(name).observe(seconds)

    def round_over(self, seconds: float | None, gap: float | None) -> None:
        """Add a whole round: its time, and its gap; None: unknown, or there is no plan."""
        if seconds is not None:
            self._round_s.labels("solve").observe(seconds)
        self._gap.set(float("nan") if gap is None else gap)

    def bindings(self, result: str, jobs: int) -> None:
        """Count jobs by what came of their placement, one of ``RESULTS``."""
        self._bindings.labels(result).inc(jobs)

    def cluster(self, *, revision: int, running: int, waiting: int, ready: bool) -> None:
        """Set what the cluster has now."""
        self._revision.set(revision)
        self._jobs.labels("running").set(running)
        self._jobs.labels("waiting").set(waiting)
        self._ready.set(ready)

    def text(self) -> bytes:
        """Return all of them in Prometheus' text form."""
        return generate_latest(self.registry)


class Counted:
    """Middleware that counts every reply, and adds the headers of all replies."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        began = time.perf_counter()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
                call = getattr(scope.get("route"), "name", OTHER)
                self._metrics.request(call, message["status"], time.perf_counter() - began)
            await send(message)

        await self._app(scope, receive, counted)


OTHER = "other"
"""Name of the call of a request to no call: health, the page, unknown paths."""
HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""Of every reply."""
