"""What a request brings beside its path: its body as it came, for the strict reader of calls, and its arguments."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from fastapi import Request

from placeopt.service.refused import Refused

_JSON = re.compile(r'application/json\s*(;\s*charset="?utf-8"?\s*)?', re.IGNORECASE)


def body_of(most: int) -> Callable[[Request], Awaitable[bytes]]:
    """
    Return the dependency that reads a body of at most so many bytes, and no further.

    It raises `Refused`: 413 as soon as more was stated or has come, 415 for what is not JSON.
    """

    async def read(request: Request) -> bytes:
        declared = request.headers.get("content-length", "0")
        if declared.isdigit() and int(declared) > most:
            raise Refused(413, f"the body has {declared} bytes; the limit is {most}")
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > most:
                raise Refused(413, f"the body has more than {most} bytes, the limit")
        if data:
            kind = request.headers.get("content-type", "")
            if not _JSON.fullmatch(kind.strip()):
                raise Refused(415, f"content-type: {kind[:100]!r}, expected application/json")
            if request.headers.get("content-encoding", "identity").lower() != "identity":
                raise Refused(415, "content-encoding: expected none; bodies are not unpacked")
        return bytes(data)

    return read


def query_of(request: Request) -> dict[str, str]:
    """Return the arguments behind the path; raises `Refused` with 400 if one appears twice."""
    query = dict(request.query_params)
    if len(query) < len(request.query_params.multi_items()):
        raise Refused(400, "query: an argument appears twice")
    return query
