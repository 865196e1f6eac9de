"""
The calls as JSON lines, for programs that start the service as a child: no port, no token.

A line ``{"id": 1, "call": "decide", "body": {...}}`` is answered by ``{"id": 1, "reply": {...}}`` or
``{"id": 1, "error": {...}}`` with a problem document. ``path``, ``query`` and ``key`` are optional. Lines are answered
in order, but for ``events`` and questions, which may wait, in threads of their own.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

from pydantic import Field, JsonValue

from placeopt.documents.documents import loads
from placeopt.errors import BadInput
from placeopt.model.base import Record
from placeopt.service.refused import Refused, malformed
from placeopt.service.service import Service

MOST_LINE_BYTES = 256 * 2**20
SLOW = ("events", "explain", "explain_all", "whatif")
MOST_SLOW = 16
"""Slow calls at work at once; further ones wait."""


class Line(Record):
    """A call as a line; its members are those of ``Service.call``."""

    id: JsonValue = None
    """Stands in the answer."""
    call: str = ""
    body: Any = None
    path: dict[str, str | int] = Field(default_factory=dict)
    query: dict[str, str | int] = Field(default_factory=dict)
    key: str | None = None


def serve_lines(service: Service, lines: BinaryIO, write: Callable[[bytes], None]) -> None:
    """Answer the calls of one client until its input ends; ``write`` takes whole lines, one at a time."""
    turn = threading.Lock()

    def answer(asked: Line, member: str, content: bytes) -> None:
        with turn:
            write(b'{"id":%b,"%b":%b}\n' % (_dump(asked.id), member.encode(), content.replace(b"\n", b" ")))

    def do(asked: Line) -> None:
        try:
            answer(asked, "reply", _call(service, asked).rstrip())
        except Refused as refused:
            answer(asked, "error", _dump(refused.problem()))

    with ThreadPoolExecutor(MOST_SLOW, thread_name_prefix="placeopt-slow") as slow:
        while line := lines.readline(MOST_LINE_BYTES + 1):
            if len(line) > MOST_LINE_BYTES:
                answer(Line(), "error", _dump(Refused(413, f"a line of more than {MOST_LINE_BYTES} bytes").problem()))
                break  # where the next one begins is not known
            if not line.strip():
                continue
            try:
                asked = loads(Line, line, source="a line")
            except BadInput as error:
                answer(Line(), "error", _dump(_malformed(error).problem()))
                continue
            if asked.call in SLOW:
                slow.submit(do, asked)
            else:
                do(asked)
        service.news.stop_waiting()


def _malformed(error: BadInput) -> Refused:
    """Return the refusal of a line; paths of faults in its body begin there, as those that the call itself finds."""
    error.faults = tuple(fault._replace(where=fault.where.removeprefix("body.")) for fault in error.faults)
    return malformed(error)


def _call(service: Service, asked: Line) -> bytes:
    path, query = ({name: str(value) for name, value in given.items()} for given in (asked.path, asked.query))
    body = b"" if asked.body is None else _dump(asked.body)
    return service.call(asked.call, body, path=path, query=query, key=asked.key)


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
