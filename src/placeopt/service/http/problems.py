"""Replies of the HTTP side: JSON, and every error as a problem document (RFC 9457)."""

from __future__ import annotations

import json
import logging

from fastapi import Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route

from placeopt.service.refused import Refused, refusal

LOG = logging.getLogger("placeopt.service")
PROBLEM_TYPE = "application/problem+json"
CLIENT_GONE = 499
"""Status that counts a request whose client did not wait for its reply."""
NO_ROUTE = {404: "no call has this path", 405: "no call has this path with this method"}


def json_reply(data: bytes) -> Response:
    """Return the reply with JSON."""
    return Response(data, media_type="application/json")


async def problem_reply(request: Request, error: Exception) -> Response:
    """Return the reply for any exception: the one handler of the application."""
    if isinstance(error, ClientDisconnect):  # before the end of its body
        return Response(status_code=CLIENT_GONE)
    headers: dict[str, str] = {}
    if isinstance(error, HTTPException):  # of the router
        refused = Refused(error.status_code, NO_ROUTE[error.status_code])
    else:
        refused = refusal(error)
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    if refused.status == 405:
        headers["allow"] = ", ".join(_methods(request))
    if refused.status in (413, 415):
        headers["connection"] = "close"  # the rest of the body is not read
    if refused.status == 500:  # 503 is load, or an end
        LOG.error("a call failed", exc_info=error)
    if "retry_after_s" in refused.more:
        headers["retry-after"] = str(refused.more["retry_after_s"])
    return Response(json.dumps(refused.problem(), separators=(",", ":")), refused.status, headers, PROBLEM_TYPE)


def _methods(request: Request) -> list[str]:
    """Return the methods of a path."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    there = (route.methods or set() for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    return sorted(set().union(*there))
