"""A call with its arguments, as handlers take it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from placeopt.documents.documents import loads
from placeopt.errors import BadInput
from placeopt.service.calls import CALLS, KEY
from placeopt.service.refused import Refused, malformed

Text = Mapping[str, str]
NO_TEXT: Text = {}


class Request(NamedTuple):
    """A call with its arguments."""

    body: Any = None
    path: Text = NO_TEXT
    query: Text = NO_TEXT
    key: str | None = None
    digest: bytes = b""
    caller: str = ""
    cancel: threading.Event | None = None


def read_request(name: str, body: bytes, path: Text, query: Text, key: str | None) -> Request:
    """
    Return the request of a call; arguments as for ``Service.call``.

    Raises
    ------
    Refused
        404 for a call that there is not, 400 for a body, an argument or a key that it does not take.
    """
    call = CALLS.get(name)
    if call is None:
        raise Refused(404, f"call {name!r}: expected one of {', '.join(CALLS)}")
    if key is not None and not KEY.fullmatch(key):
        raise Refused(400, "Idempotency-Key: expected 1 to 200 visible ASCII characters")
    if path.keys() != set(call.arguments):
        raise Refused(400, f"path: expected {', '.join(call.arguments) or 'nothing'} for {name}", place="path")
    if extra := sorted(query.keys() - call.query.keys()):
        raise Refused(400, f"{extra[0]}: {name} does not take it", place=extra[0])
    given = None
    if call.body is not None:
        try:
            given = loads(call.body, body, source="body")
        except BadInput as error:
            raise malformed(error) from None
    elif body.strip():
        raise Refused(400, f"{name} takes no body")
    digest = b"" if key is None else hashlib.sha256(repr((name, dict(path))).encode() + body).digest()
    return Request(given, path, query, key, digest)


def whole_number(query: Text, name: str) -> int:
    """Return an argument behind the path, 0 without it; raises `Refused` with 400 if it is not a whole number."""
    text = query.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refused(400, f"{name}: {text!r}, expected a whole number", place=name)
    return int(text)
