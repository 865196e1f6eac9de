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
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from placeopt.service.calls import CALLS
from placeopt.service.http.access import authorise, refuse_foreign_pages
from placeopt.service.http.arguments import read_body, read_key, read_query
from placeopt.service.http.event_waits import EventWaits
from placeopt.service.http.live_page import PAGE, PAGE_HEADERS, Overviews
from placeopt.service.http.metrics import CONTENT_TYPE, OTHER, Metrics
from placeopt.service.http.openapi import openapi
from placeopt.service.http.problem import refuse
from placeopt.service.http.replies import HEADERS, json_response, problem_response
from placeopt.service.questions import MOST_IN_ALL
from placeopt.service.refused import refusal
from placeopt.service.request import whole_number

if TYPE_CHECKING:
    from placeopt.service.calls import Call, Role
    from placeopt.service.http.limits import Limits
    from placeopt.service.http.listen_address import Address
    from placeopt.service.http.tokens import Tokens
    from placeopt.service.service import Service

LOG = logging.getLogger("placeopt.service")
THREADS = 16 + 2 * MOST_IN_ALL
"""Calls at work at once: questions, and others, of which those that change the cluster wait for one writer anyway."""
EVENT_STREAM = "text/event-stream"
_PARAMETER = re.compile(r"\{(\w+)\}$")
Work = Callable[[Request], Awaitable[Response]]


def make_app(
    service: Service,
    *,
    address: Address,
    limits: Limits,
    tokens: Tokens | None = None,
    metrics: Metrics | None = None,
) -> Starlette:
    """Return the ASGI application; ``app.state.stopping`` is an event that ends streams."""
    side = _HttpSide(service, address, limits, tokens, metrics or Metrics())
    of_path: dict[str, dict[str, Work]] = {}
    for call in CALLS.values():
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


async def _unless_gone(request: Request, work: Coroutine[None, None, bytes]) -> bytes:
    """Return the result of work; raise `ClientDisconnect`, and cancel it, once the client is gone."""
    reply = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(request.receive())  # the body is read: nothing else comes any more
    try:
        await asyncio.wait((reply, gone), return_when=asyncio.FIRST_COMPLETED)
        if not reply.done():
            raise ClientDisconnect
        return reply.result()
    finally:
        gone.cancel()
        reply.cancel()


class _HttpSide:
    """The state behind the application."""

    def __init__(
        self,
        service: Service,
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
        self._openapi = json.dumps(openapi()).encode()
        self.stopping = threading.Event()
        self._waits = EventWaits(service, limits, self.stopping, self._problem)

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
                    request.state.caller = authorise(request.headers, role, self._tokens)
                response = await work(request)
            except ClientDisconnect:
                response = Response(status_code=400)
            except Exception as error:  # noqa: BLE001 - logged, and the reply says that it is a fault
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
        return problem_response(refuse(status, words.get(status, "the request cannot be answered")), allowed)

    async def page(self, request: Request) -> Response:
        """Return the page, which holds nothing of the cluster."""
        del request
        return Response(PAGE, media_type="text/html", headers={**HEADERS, **PAGE_HEADERS})

    async def health(self, request: Request) -> Response:
        """Return 200 while snapshots are answered, and 503 once only a new start helps."""
        del request
        if self._service.fault is not None:
            raise refuse(503, self._service.fault)
        return json_response(b'{"status":"ok"}')

    async def readiness(self, request: Request) -> Response:
        """Return 200 while decisions are taken, and 503 before and at the end."""
        del request
        if self.stopping.is_set():
            raise refuse(503, "the service is about to end")
        if not self._service.ready:
            raise refuse(503, "the host has not said yet what runs", {"retry_after_s": 1})
        return json_response(b'{"status":"ok"}')

    async def openapi(self, request: Request) -> Response:
        """Return the description of the calls."""
        del request
        return json_response(self._openapi)

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
        return json_response(await self._in_thread(self._overviews.document))

    async def map(self, request: Request) -> Response:
        """Return the map of the GPUs."""
        del request
        return Response(await self._in_thread(self._overviews.map), media_type="image/svg+xml", headers=HEADERS)

    async def _answer(self, call: Call, request: Request) -> Response:
        key, query = read_key(request), read_query(request)
        path = {name: str(value) for name, value in request.path_params.items()}
        data = await read_body(request, call.role, self._limits)
        if call.name == "events":
            if EVENT_STREAM in request.headers.get("accept", ""):
                self._waits.refuse_more()
                stream = self._waits.stream(query, request.headers.get("last-event-id"))
                return StreamingResponse(stream, media_type=EVENT_STREAM, headers=HEADERS)
            if whole_number(query, "wait_s"):
                self._waits.refuse_more()
                return json_response(await _unless_gone(request, self._waits.one_reply(query)))
        cancel = threading.Event()
        ask = partial(self._service.call, path=path, query=query, key=key, caller=request.state.caller, cancel=cancel)
        try:
            work = partial(ask, call.name, data)
            return json_response(await _unless_gone(request, self._in_thread(work)))
        finally:
            cancel.set()

    async def _in_thread(self, work: Callable[[], bytes]) -> bytes:
        """Return what a function returns, run beside the event loop, within the limits."""
        if self._at_work >= self._limits.requests:
            raise refuse(503, f"{self._at_work} requests are at work already", {"retry_after_s": 1})
        self._at_work += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        future.add_done_callback(self._done)
        for _ in range(self._limits.request_s):  # a process that was stopped for minutes has lost one second of them
            if (await asyncio.wait((future,), timeout=1))[0]:
                return future.result()
        words = f"no reply within {self._limits.request_s} s; what was asked may still be done"
        raise refuse(503, words, {"retry_after_s": 1})

    def _done(self, future: asyncio.Future[bytes]) -> None:
        self._at_work -= 1
        if not future.cancelled():
            future.exception()  # retrieved: the caller may have gone

    def _problem(self, error: Exception) -> Response:
        refused = refusal(error)
        if refused.status == 500:  # 503 is load, or an end
            LOG.error("a call failed", exc_info=error)
        return problem_response(refused)
