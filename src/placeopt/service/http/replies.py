"""Replies of the HTTP side: JSON, and problem documents with the headers that belong to their status."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from placeopt.service.http.problem import PROBLEM_TYPE, problem_bytes
from placeopt.service.refused import Refused

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
"""Of every reply."""


def json_response(data: bytes) -> Response:
    """Return the reply with JSON."""
    return Response(data, media_type="application/json", headers=HEADERS)


def problem_response(refused: Refused, headers: Mapping[str, str] | None = None) -> Response:
    """Return the reply with the problem document of a refusal."""
    found = {**HEADERS, **(headers or {})}
    if refused.status == 401:
        found["www-authenticate"] = "Bearer"
    if "retry_after_s" in refused.more:
        found["retry-after"] = str(refused.more["retry_after_s"])
    if refused.status in (408, 413, 415):
        found["connection"] = "close"  # the rest of the body is not read
    return Response(problem_bytes(refused), refused.status, found, PROBLEM_TYPE)
