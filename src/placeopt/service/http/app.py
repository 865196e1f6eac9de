"""
The calls of a service over HTTP: who may call, how much may be sent, how long it may take, errors as problems.

The table of calls gives routes, roles and bodies; nothing of a call is stated here.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from placeopt.service.http.access import authorise, refuse_foreign_pages
from placeopt.service.http.live_page import PAGE, PAGE_HEADERS, Overviews
from placeopt.service.http.metrics import CONTENT_TYPE, OTHER, Metrics
from placeopt.service.http.openapi import openapi
from placeopt.service.http.problem import PROBLEM_TYPE, problem_bytes, refuse
from placeopt.service.refused import Refused, refusal

if TYPE_CHECKING:
    from pydantic import BaseModel

    from placeopt.service.calls import Role
    from placeopt.service.http.limits import Limits
    from placeopt.service.http.listen_address import Address
    from placeopt.service.http.tokens import Tokens

LOG = logging.getLogger("placeopt.service")
THREADS = 16
"""Calls at work at once; those that change the cluster wait for one writer anyway."""
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
EVENT_STREAM = "text/event-stream"
_KEY = re.compile(r"[!-~]{1,200}")
_JSON = re.compile(r'application/json\s*(;\s*charset="?utf-8"?\s*)?', re.IGNORECASE)
_PARAMETER = re.compile(r"\{(\w+)\}$")
Work = Callable[[Request], Awaitable[Response]]


class Call(Protocol):
    """What of a call HTTP needs; ``service.calls`` has the table."""

    @property
    def name(self) -> str:
        """Name of the call."""

    @property
    def method(self) -> str:
        """Method of HTTP."""

    @property
    def path(self) -> str:
        """Path, with parameters in braces."""

    @property
    def role(self) -> Role:
        """Role that may call it."""

    @property
    def body(self) -> type[BaseModel] | None:
        """Record of the body."""

    @property
    def reply(self) -> type[BaseModel]:
        """Record of the reply."""

    @property
    def changes(self) -> bool:
        """Whether it takes an ``Idempotency-Key``."""

    @property
    def help(self) -> str:
        """What it does, in a sentence."""

    @property
    def query(self) -> tuple[str, ...]:
        """Names of arguments behind the path."""


class Numbers(Protocol):
    """The cluster in numbers."""

    @property
    def revision(self) -> int:
        """Present revision."""

    @property
    def running(self) -> int:
        """Jobs that run."""

    @property
    def waiting(self) -> int:
        """Jobs that wait."""


class Service(Protocol):
    """What of a service HTTP needs."""

    @property
    def ready(self) -> bool:
        """Whether decisions are taken."""

    @property
    def fault(self) -> str | None:
        """Why it can do nothing any more; None while it can."""

    @property
    def numbers(self) -> Numbers:
        """The cluster in numbers."""

    def call(
        self,
        name: str,
        body: bytes = b"",
        *,
        path: Mapping[str, str] = ...,
        query: Mapping[str, str] = ...,
        key: str | None = None,
    ) -> bytes:
        """Do a call; the reply is JSON. Raises ``Refused`` for every reason why it was not done."""


def make_app(
    service: Service,
    calls: Sequence[Call],
    *,
    address: Address,
    limits: Limits,
    tokens: Tokens | None = None,
    metrics: Metrics | None = None,
) -> Starlette:
    """Return the ASGI application; ``app.state.stopping`` is an event that ends streams."""
    side = _HttpSide(service, calls, address, limits, tokens, metrics or Metrics(call.name for call in calls))
    of_path: dict[str, dict[str, Work]] = {}
    for call in calls:
        of_path.setdefault(_route(call.path), {})[call.method] = side.of_call(call)
    routes = [Route(path, _by_method(works), methods=list(works)) for path, works in of_path.items()]
    own: list[tuple[str, Role | None, Work]] = [
        ("/", None, side.page),
        ("/healthz", None, side.health),
        ("/readyz", None, side.readiness),
        ("/openapi.json", None, side.openapi),
        ("/metrics", "read", side.metrics_text),
        ("/v1/overview", "read", side.overview),
        ("/v1/overview/map.svg", "read", side.map),
    ]
    routes += [Route(path, side.guarded(OTHER, role, work), methods=["GET"]) for path, role, work in own]
    app = Starlette(routes=routes, exception_handlers={HTTPException: side.no_route})
    app.router.redirect_slashes = False
    app.state.stopping = side.stopping
    return app


def _by_method(works: Mapping[str, Work]) -> Work:
    """Return the endpoint of a path: that of the method, or of GET for HEAD."""

    async def endpoint(request: Request) -> Response:
        return await works.get(request.method, works.get("GET", next(iter(works.values()))))(request)

    return endpoint


def _route(path: str) -> str:
    """Return the path as Starlette has it; a parameter at the end may have slashes, as ids of jobs may."""
    return _PARAMETER.sub(r"{\1:path}", path)


class _HttpSide:
    """The state behind the application."""

    def __init__(
        self,
        service: Service,
        calls: Sequence[Call],
        address: Address,
        limits: Limits,
        tokens: Tokens | None,
        metrics: Metrics,
    ) -> None:
        self._service, self._limits, self._tokens, self._metrics = service, limits, tokens, metrics
        self._address = address
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="placeopt-call")
        self._waiting_threads = ThreadPoolExecutor(limits.streams, thread_name_prefix="placeopt-events")
        self._at_work = 0
        self._streams = 0
        self._overviews = Overviews(service)
        self._openapi = json.dumps(openapi(calls)).encode()
        self.stopping = threading.Event()

    def of_call(self, call: Call) -> Work:
        """Return the endpoint of a call."""
        return self.guarded(call.name, call.role, partial(self._answer, call))

    def guarded(self, name: str, role: Role | None, work: Work) -> Work:
        """Return an endpoint that checks who calls, counts, and turns every exception into a problem."""

        async def endpoint(request: Request) -> Response:
            started = time.perf_counter()
            try:
                refuse_foreign_pages(request.headers, self._address, has_tokens=self._tokens is not None)
                if role is not None:
                    authorise(request.headers, role, self._tokens)
                response = await work(request)
            except ClientDisconnect:
                response = Response(status_code=400)
            except Exception as error:  # noqa: BLE001 - logged, and the client is told that it is a fault
                response = self._problem(error)
            self._metrics.request(name, response.status_code, time.perf_counter() - started)
            return response

        return endpoint

    async def no_route(self, request: Request, error: Exception) -> Response:
        """Answer a path or a method that there is not."""
        del request
        status = error.status_code if isinstance(error, HTTPException) else 500
        allowed = dict((error.headers or {}) if isinstance(error, HTTPException) else {})
        words = {404: "no call has this path", 405: "no call has this path with this method"}
        self._metrics.request(OTHER, status, 0.0)
        return _problem_response(refuse(status, words.get(status, "the request cannot be answered")), allowed)

    async def page(self, request: Request) -> Response:
        """Return the page, which holds nothing of the cluster."""
        del request
        return Response(PAGE, media_type="text/html", headers={**HEADERS, **PAGE_HEADERS})

    async def health(self, request: Request) -> Response:
        """Return 200 while snapshots are answered, and 503 once only a new start helps."""
        del request
        if self._service.fault is not None:
            raise refuse(503, self._service.fault)
        return _json_response(b'{"status":"ok"}')

    async def readiness(self, request: Request) -> Response:
        """Return 200 while decisions are taken, and 503 before and at the end."""
        del request
        if self.stopping.is_set():
            raise refuse(503, "the service is about to end")
        if not self._service.ready:
            raise refuse(503, "the host has not said yet what runs", {"retry_after_s": 1})
        return _json_response(b'{"status":"ok"}')

    async def openapi(self, request: Request) -> Response:
        """Return the description of the calls."""
        del request
        return _json_response(self._openapi)

    async def metrics_text(self, request: Request) -> Response:
        """Return the metrics."""
        del request
        now = self._service.numbers
        self._metrics.cluster(
            revision=now.revision, running=now.running, waiting=now.waiting, ready=self._service.ready
        )
        return Response(self._metrics.text(), headers={**HEADERS, "content-type": CONTENT_TYPE})

    async def overview(self, request: Request) -> Response:
        """Return what the page shows, but for the map."""
        del request
        return _json_response(await self._in_thread(self._overviews.document))

    async def map(self, request: Request) -> Response:
        """Return the map of the GPUs."""
        del request
        return Response(await self._in_thread(self._overviews.map), media_type="image/svg+xml", headers=HEADERS)

    async def _answer(self, call: Call, request: Request) -> Response:
        key = request.headers.get("idempotency-key")
        if key is not None and not _KEY.fullmatch(key):
            raise refuse(400, "Idempotency-Key: expected 1 to 200 visible ASCII characters")
        query: dict[str, str] = {}
        for name, value in request.query_params.multi_items():
            if name in query:
                raise refuse(400, f"query: {name!r} appears twice")
            query[name] = value
        path = {name: str(value) for name, value in request.path_params.items()}
        data = await self._body(request)
        if call.name == "events":
            if EVENT_STREAM in request.headers.get("accept", ""):
                self._refuse_more_streams()
                return StreamingResponse(self._stream(query), media_type=EVENT_STREAM, headers=HEADERS)
            if "wait_s" in query:
                return _json_response(await self._wait_for_events(query))
        work = partial(self._service.call, call.name, data, path=path, query=query, key=key)
        return _json_response(await self._in_thread(work))

    async def _body(self, request: Request) -> bytes:
        """Read the body, no further than its limit."""
        most = self._limits.body_bytes
        declared = request.headers.get("content-length", "0")
        if declared.isdigit() and int(declared) > most:
            raise refuse(413, f"the body has {declared} bytes; the limit is {most}")
        parts = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_s):
                async for chunk in request.stream():
                    parts += chunk
                    if len(parts) > most:
                        raise refuse(413, f"the body has more than {most} bytes, the limit")
        except TimeoutError:
            raise refuse(408, f"the body did not come within {self._limits.body_s} s") from None
        if parts:
            kind = request.headers.get("content-type", "")
            if not _JSON.fullmatch(kind.strip()):
                raise refuse(415, f"content-type: {kind[:100]!r}, expected application/json")
            if request.headers.get("content-encoding", "identity").lower() != "identity":
                raise refuse(415, "content-encoding: expected none; bodies are not unpacked")
        return bytes(parts)

    async def _in_thread(self, work: Callable[[], bytes]) -> bytes:
        """Return what a function returns, run beside the event loop, within the limits."""
        if self._at_work >= self._limits.requests:
            raise refuse(503, f"{self._at_work} requests are at work already", {"retry_after_s": 1})
        self._at_work += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        future.add_done_callback(self._done)
        try:
            async with asyncio.timeout(self._limits.request_s):
                return await asyncio.shield(future)
        except TimeoutError:
            words = f"no reply within {self._limits.request_s} s; what was asked may still be done"
            raise refuse(503, words, {"retry_after_s": 1}) from None

    def _done(self, future: asyncio.Future[bytes]) -> None:
        self._at_work -= 1
        if not future.cancelled():
            future.exception()  # retrieved: the caller may have gone

    def _refuse_more_streams(self) -> None:
        if self._streams >= self._limits.streams:
            raise refuse(503, f"{self._streams} clients wait for events already", {"retry_after_s": 1})

    async def _events(self, query: Mapping[str, str]) -> bytes:
        """Return the events after a number, after a second at most if there are none; threads wait, no request does."""
        work = partial(self._service.call, "events", query={**query, "wait_s": "1"})
        return await asyncio.get_running_loop().run_in_executor(self._waiting_threads, work)

    async def _wait_for_events(self, query: Mapping[str, str]) -> bytes:
        """Return the events after a number once there are some, or after the time asked for."""
        wanted = query["wait_s"]
        self._refuse_more_streams()
        if wanted in ("", "0") or not (wanted.isascii() and wanted.isdigit() and len(wanted) < 16):
            return await self._in_thread(partial(self._service.call, "events", query=query))
        until = time.monotonic() + min(int(wanted), self._limits.event_wait_s)
        self._streams += 1
        try:
            while True:
                reply = await self._events(query)
                if json.loads(reply)["events"] or time.monotonic() >= until or self.stopping.is_set():
                    return reply
        finally:
            self._streams -= 1

    async def _stream(self, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Yield events as they come, until the client or the service ends; an error ends the stream as an event."""
        known = {"after": "0", **query}
        alive = time.monotonic()
        self._streams += 1
        try:
            while not self.stopping.is_set():
                for event in json.loads(await self._events(known))["events"]:
                    known["after"] = str(event["number"])
                    text = json.dumps(event, separators=(",", ":"))
                    yield f"id: {event['number']}\ndata: {text}\n\n".encode()
                    alive = time.monotonic()
                if time.monotonic() - alive >= self._limits.event_wait_s:
                    alive = time.monotonic()
                    yield b": nothing happened\n\n"  # keeps proxies from closing it
        except Exception as error:  # noqa: BLE001 - told to the client
            yield b"event: problem\ndata: " + bytes(self._problem(error).body) + b"\n\n"
        finally:
            self._streams -= 1

    def _problem(self, error: Exception) -> Response:
        refused = refusal(error)
        if refused.status == 500:  # 503 is load, or an end
            LOG.error("a call failed", exc_info=error)
        return _problem_response(refused)


def _json_response(data: bytes) -> Response:
    return Response(data, media_type="application/json", headers=HEADERS)


def _problem_response(refused: Refused, headers: Mapping[str, str] | None = None) -> Response:
    found = {**HEADERS, **(headers or {})}
    if refused.status == 401:
        found["www-authenticate"] = "Bearer"
    if "retry_after_s" in refused.more:
        found["retry-after"] = str(refused.more["retry_after_s"])
    if refused.status in (408, 413, 415):
        found["connection"] = "close"  # the rest of the body is not read
    return Response(problem_bytes(refused), refused.status, found, PROBLEM_TYPE)
