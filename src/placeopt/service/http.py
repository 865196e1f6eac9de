"""
The calls of a service over HTTP: who may call, how much may be sent, how long it may take, and every error as a problem.

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
from typing import TYPE_CHECKING, Any, Literal, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from placeopt.errors import BadInput
from placeopt.service.access import authorise, refuse_foreign_pages
from placeopt.service.metrics import CONTENT_TYPE, OTHER, Metrics
from placeopt.service.openapi import openapi
from placeopt.service.page import PAGE, PAGE_HEADERS, Overviews
from placeopt.service.problem import PROBLEM_TYPE, problem_bytes, refuse
from placeopt.service.refused import Refused, malformed, refusal
from placeopt.service.strict_json import strict_json

if TYPE_CHECKING:
    from pydantic import BaseModel

    from placeopt.model import Instance
    from placeopt.service.limits import Limits
    from placeopt.service.listen_address import Address
    from placeopt.service.tokens import Role, Tokens

LOG = logging.getLogger("placeopt.service")
THREADS = 16
"""Calls at work at once; those that change the cluster wait for one writer anyway."""
EVENT_POLL_S = 0.2
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


class Service(Protocol):
    """What of a service HTTP needs."""

    @property
    def ready(self) -> bool:
        """Whether calls are answered."""

    @property
    def live(self) -> bool:
        """Whether snapshots are answered."""

    @property
    def snapshot(self) -> Instance:
        """The cluster at its present revision."""

    def call(
        self,
        name: str,
        body: Mapping[str, Any] | None = None,
        *,
        path: Mapping[str, str] = ...,
        query: Mapping[str, str] = ...,
        key: str | None = None,
    ) -> Mapping[str, Any]:
        """Do a call."""


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
    routes = [Route(_route(call.path), side.of_call(call), methods=[call.method]) for call in calls]
    own: list[tuple[str, Role | None, Work]] = [
        ("/", None, side.page),
        ("/healthz", None, partial(side.state, "live")),
        ("/readyz", None, partial(side.state, "ready")),
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
        self._at_work = 0
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

    async def state(self, which: Literal["live", "ready"], request: Request) -> Response:
        """Return whether the service is live, or ready: 200 or 503."""
        del request
        if self.stopping.is_set() or not getattr(self._service, which):
            raise refuse(503, "the service is about to end" if self.stopping.is_set() else "the service is loading")
        return _json_response(b'{"status":"ok"}')

    async def openapi(self, request: Request) -> Response:
        """Return the description of the calls."""
        del request
        return _json_response(self._openapi)

    async def metrics_text(self, request: Request) -> Response:
        """Return the metrics."""
        del request
        if self._service.live:
            now = await self._in_thread(self._overviews.numbers)
            self._metrics.cluster(**now, ready=self._service.ready)
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
        if EVENT_STREAM in request.headers.get("accept", "") and call.name == "events":
            return StreamingResponse(self._stream(query), media_type=EVENT_STREAM, headers=HEADERS)
        data = await self._body(request)
        if data and call.body is None:
            raise refuse(400, "this call takes no body")

        def work() -> bytes:
            body = _object(data) if data else None
            if body is None and call.body is not None:
                raise Refused(400, "body: is missing, expected a JSON object")
            reply = self._service.call(call.name, body, path=path, query=query, key=key)
            return json.dumps(reply, separators=(",", ":")).encode()

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

    async def _in_thread(self, work: Callable[[], bytes | Any]) -> Any:
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

    def _done(self, future: asyncio.Future[Any]) -> None:
        self._at_work -= 1
        if not future.cancelled():
            future.exception()  # retrieved: nobody may wait for it any more

    async def _stream(self, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Yield events as they come, until the client or the service ends; an error ends the stream as an event."""
        known = dict(query)
        quiet_s = 0.0
        while not self.stopping.is_set():
            try:
                found = await self._in_thread(partial(self._service.call, "events", None, query=known))
            except Exception as error:  # noqa: BLE001 - told to the client
                yield b"event: problem\ndata: " + self._problem(error).body + b"\n\n"
                return
            for event in found["events"]:
                known["after"] = str(event["number"])
                text = json.dumps(event, separators=(",", ":"))
                yield f"id: {event['number']}\ndata: {text}\n\n".encode()
                quiet_s = 0.0
            if quiet_s >= self._limits.event_wait_s:
                quiet_s = 0.0
                yield b": nothing happened\n\n"  # keeps proxies from closing it
            await asyncio.sleep(EVENT_POLL_S)
            quiet_s += EVENT_POLL_S

    def _problem(self, error: Exception) -> Response:
        refused = refusal(error)
        if refused.status >= 500 and not isinstance(error, Refused):
            LOG.error("a call failed", exc_info=error)
        return _problem_response(refused)


def _object(data: bytes) -> dict[str, Any]:
    try:
        return strict_json(data)
    except BadInput as error:
        raise malformed(error) from None


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
