"""What a request over HTTP brings, within its limits: its body, its arguments, its ``Idempotency-Key``."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from starlette.requests import Request

from placeopt.service.http.problem import refuse

if TYPE_CHECKING:
    from placeopt.service.calls import Role
    from placeopt.service.http.limits import Limits

_KEY = re.compile(r"[!-~]{1,200}")
_JSON = re.compile(r'application/json\s*(;\s*charset="?utf-8"?\s*)?', re.IGNORECASE)


def read_key(request: Request) -> str | None:
    """Return the ``Idempotency-Key``, None without one; raises `Refused` with 400 for another text."""
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise refuse(400, "Idempotency-Key: expected 1 to 200 visible ASCII characters")
    return key


def read_query(request: Request) -> dict[str, str]:
    """Return the arguments behind the path; raises `Refused` with 400 if one appears twice."""
    query: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in query:
            raise refuse(400, f"query: {name!r} appears twice")
        query[name] = value
    return query


async def read_body(request: Request, role: Role, limits: Limits) -> bytes:
    """Return the body of a call of a role, read no further than its limit; raises `Refused` with 408, 413 or 415."""
    most = limits.read_body_bytes if role == "read" else limits.body_bytes
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        raise refuse(413, f"the body has {declared} bytes; the limit is {most}")
    parts = bytearray()
    try:
        async with asyncio.timeout(limits.body_s):
            async for chunk in request.stream():
                parts += chunk
                if len(parts) > most:
                    raise refuse(413, f"the body has more than {most} bytes, the limit")
    except TimeoutError:
        raise refuse(408, f"the body did not come within {limits.body_s} s") from None
    if parts:
        kind = request.headers.get("content-type", "")
        if not _JSON.fullmatch(kind.strip()):
            raise refuse(415, f"content-type: {kind[:100]!r}, expected application/json")
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise refuse(415, "content-encoding: expected none; bodies are not unpacked")
    return bytes(parts)
