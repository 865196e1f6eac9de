"""
The calls of a service over HTTP, as an application of FastAPI.

The table of calls gives routes, roles and bodies; nothing of a call is stated here. A body goes to the service as it
came: its strict reader names the path of every fault, where FastAPI would read it a second time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from placeopt import __version__
from placeopt.service.calls import CALLS
from placeopt.service.http.access import Access
from placeopt.service.http.body import body_of, query_of
from placeopt.service.http.description import RESPONSES, operation, schemas
from placeopt.service.http.events import one_reply, stream
from placeopt.service.http.live_page import OVERVIEW, PAGE, PAGE_HEADERS, Overviews
from placeopt.service.http.metrics import CONTENT_TYPE, Counted, Metrics
from placeopt.service.http.problems import CLIENT_GONE, json_reply, problem_reply
from placeopt.service.questions import MOST_IN_ALL
from placeopt.service.refused import Refused
from placeopt.service.request import read_request, whole_number

if TYPE_CHECKING:
    from placeopt.service.calls import Call
    from placeopt.service.http.limits import Limits
    from placeopt.service.http.listen_address import Address
    from placeopt.service.http.tokens import Tokens
    from placeopt.service.service import Service

THREADS = 16 + 2 * MOST_IN_ALL
"""Calls at work at once: questions, and others, of which those that change the cluster wait for one writer anyway."""
MOST_WAITING = 64
"""Clients that wait for events."""
EVENT_STREAM = "text/event-stream"
Endpoint = Callable[..., Awaitable[Response]]


class CallsApp(FastAPI):
    """FastAPI with the bodies of calls, which it does not read, in its description."""

    def openapi(self) -> dict[str, Any]:
        """Return the description."""
        if self.openapi_schema is None:
            super().openapi()["components"]["schemas"] |= schemas()
        return super().openapi()


def make_app(
    service: Service, *, address: Address, limits: Limits, tokens: Tokens | None = None, metrics: Metrics | None = None
) -> FastAPI:
    """Return the ASGI application."""
    metrics = Metrics() if metrics is None else metrics
    access = Access(tokens, address)
    app = CallsApp(
        title="placeopt",
        version=__version__,
        docs_url=None,  # it loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
        exception_handlers=dict.fromkeys((Refused, HTTPException, ClientDisconnect, Exception), problem_reply),
    )
    app.add_middleware(Counted, metrics=metrics)
    calls = Calls(service, access, limits)
    for call in CALLS.values():
        app.add_api_route(
            call.path.replace("}", ":path}"),  # ids of jobs may have slashes
            calls.endpoint(call),
            methods=[call.method],
            name=call.name,
            operation_id=call.name,
            summary=call.help,
            response_model=call.reply,
            responses=RESPONSES,
            openapi_extra=operation(call),
        )
    add_pages(app, service, access, calls, metrics)
    return app


class Calls:
    """The endpoints of calls, and the threads in which a service does them."""

    def __init__(self, service: Service, access: Access, limits: Limits) -> None:
        self._service, self._access, self._limits = service, access, limits
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="placeopt-call")

    def endpoint(self, call: Call) -> Endpoint:
        """Return the endpoint of a call: who calls and what was sent are its dependencies."""
        role = Depends(self._access.of_role(call.role))
        sent = Depends(body_of(self._limits.read_body_bytes if call.role == "read" else self._limits.body_bytes))

        async def answer(request: Request, caller: str = role, body: bytes = sent) -> Response:
            asked: dict[str, Any] = {"path": request.path_params, "query": query_of(request)}
            asked["key"] = request.headers.get("idempotency-key")
            if call.name == "events" and (reply := await self._waiting(request, body, asked)) is not None:
                return reply
            ask = partial(self._service.call, call.name, body, **asked, caller=caller)
            return await self.in_thread(request, lambda cancel: ask(cancel=cancel))

        return answer

    async def in_thread(self, request: Request, work: Callable[[threading.Event], bytes]) -> Response:
        """Return what a function returns, as JSON; its event is set once the client is gone."""
        cancel = threading.Event()
        try:
            return await _unless_gone(request, asyncio.get_running_loop().run_in_executor(self._threads, work, cancel))
        finally:
            cancel.set()

    async def _waiting(self, request: Request, body: bytes, asked: dict[str, Any]) -> Response | None:
        """Return the reply of the call ``events`` to a client that waits; None for one that does not."""
        query = read_request("events", body, **asked).query
        wait_s = whole_number(query, "wait_s")
        is_stream = EVENT_STREAM in request.headers.get("accept", "")
        if not (is_stream or wait_s):
            return None
        last = request.headers.get("last-event-id")  # of a browser that connects again, at the same address
        after = whole_number(query, "after") if last is None else whole_number({"Last-Event-ID": last}, "Last-Event-ID")
        news = self._service.news
        if news.num_listeners >= MOST_WAITING:
            raise Refused(503, f"{MOST_WAITING} clients wait for events already", more={"retry_after_s": 1})
        if is_stream:
            return StreamingResponse(stream(news, after), media_type=EVENT_STREAM)
        return await _unless_gone(request, one_reply(news, after, wait_s))


async def _unless_gone(request: Request, work: Awaitable[bytes]) -> Response:
    """Return what is awaited, as JSON; cancel it once the client is gone."""
    reply, gone = asyncio.ensure_future(work), asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait((reply, gone), return_when=asyncio.FIRST_COMPLETED)
        return json_reply(reply.result()) if reply.done() else Response(status_code=CLIENT_GONE)
    finally:
        gone.cancel()
        reply.cancel()


async def _disconnect(request: Request) -> None:
    """Return once the client is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def add_pages(app: FastAPI, service: Service, access: Access, calls: Calls, metrics: Metrics) -> None:
    """Add what is no call: health, metrics, and the page with what it shows."""
    overviews = Overviews(service)

    async def page() -> Response:
        return Response(PAGE, media_type="text/html", headers=PAGE_HEADERS)

    async def health() -> Response:
        if service.fault is not None:
            raise Refused(503, service.fault)
        return json_reply(b'{"status":"ok"}')

    async def readiness() -> Response:
        if service.news.ending:
            raise Refused(503, "the service is about to end")
        if not service.ready:
            raise Refused(503, "the host has not said yet what runs", more={"retry_after_s": 1})
        return json_reply(b'{"status":"ok"}')

    async def metrics_text() -> Response:
        now = service.numbers
        metrics.cluster(revision=now.revision, running=now.running, waiting=now.waiting, ready=service.ready)
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def overview(request: Request) -> Response:
        return await calls.in_thread(request, lambda _: overviews.document())

    for path, open_to_all in (("/", page), ("/healthz", health), ("/readyz", readiness)):
        app.add_api_route(path, open_to_all, dependencies=[Depends(access.same_site)], include_in_schema=False)
    guard = [Depends(access.of_role("read"))]
    for path, guarded in (("/metrics", metrics_text), (OVERVIEW, overview)):
        app.add_api_route(path, guarded, dependencies=guard, include_in_schema=False)
