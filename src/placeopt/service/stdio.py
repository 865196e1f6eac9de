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
from typing import Any, BinaryIO

from placeopt.service.calls import CALLS
from placeopt.service.refused import Refused
from placeopt.service.service import Service

MOST_LINE_BYTES = 256 * 2**20
SLOW = ("events", "explain", "explain_all", "whatif")
MOST_SLOW = 16
_MEMBERS = {"id", "call", "body", "path", "query", "key"}


def serve_lines(service: Service, lines: BinaryIO, write: Callable[[bytes], None]) -> None:
    """Answer the calls of one client until its input ends; ``write`` takes whole lines, one at a time."""
    turn = threading.Lock()
    slow = threading.BoundedSemaphore(MOST_SLOW)
    threads: list[threading.Thread] = []

    def answer(number: bytes, member: bytes, content: bytes) -> None:
        with turn:
            write(b'{"id":' + number + b',"' + member + b'":' + content.replace(b"\n", b" ") + b"}\n")

    def do(number: bytes, name: str, body: bytes, how: dict[str, Any]) -> None:
        try:
            answer(number, b"reply", service.call(name, body, **how).rstrip())
        except Refused as refused:
            answer(number, b"error", _dump(refused.problem()))

    def do_slowly(number: bytes, name: str, body: bytes, how: dict[str, Any]) -> None:
        try:
            do(number, name, body, how)
        finally:
            slow.release()

    while line := lines.readline(MOST_LINE_BYTES + 1):
        if len(line) > MOST_LINE_BYTES:
            answer(b"null", b"error", _dump(Refused(413, f"a line has more than {MOST_LINE_BYTES} bytes").problem()))
            return  # where the next one begins is not known
        if not line.strip():
            continue
        number = b"null"
        try:
            asked = _parsed(line)
            number = _dump(asked.get("id"))
            name, body, how = _call(asked)
        except Refused as refused:
            answer(number, b"error", _dump(refused.problem()))
            continue
        if name not in SLOW:
            do(number, name, body, how)
        elif slow.acquire(blocking=False):
            threads = [thread for thread in threads if thread.is_alive()]
            threads.append(threading.Thread(target=do_slowly, args=(number, name, body, how), daemon=True))
            threads[-1].start()
        else:
            answer(number, b"error", _dump(Refused(503, f"{MOST_SLOW} slow calls are at work already").problem()))
    service.stop_waiting()
    for thread in threads:
        thread.join()


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"a line is not JSON: {error}") from None
    if not isinstance(asked, dict):
        raise Refused(400, "a line is not a JSON object")
    return asked


def _call(asked: dict[str, Any]) -> tuple[str, bytes, dict[str, Any]]:
    """Return the name of a call, its body and its other arguments."""
    if extra := sorted(asked.keys() - _MEMBERS):
        raise Refused(400, f"{extra[0]}: expected {', '.join(sorted(_MEMBERS))}", place=extra[0])
    name, key = asked.get("call"), asked.get("key")
    if not isinstance(name, str) or name not in CALLS:
        raise Refused(404, f"call: expected one of {', '.join(CALLS)}", place="call")
    if key is not None and not isinstance(key, str):
        raise Refused(400, "key: expected text", place="key")
    how: dict[str, Any] = {"key": key}
    for member in ("path", "query"):
        given = asked.get(member, {})
        if not isinstance(given, dict) or not all(isinstance(value, str | int) for value in given.values()):
            raise Refused(400, f"{member}: expected an object of texts", place=member)
        how[member] = {word: str(value) for word, value in given.items()}
    missing = [part for part in ("id", "job", "verb") if f"{{{part}}}" in CALLS[name].path and part not in how["path"]]
    if missing:
        raise Refused(400, f"path: expected {missing[0]!r}", place="path")
    return name, _dump(asked["body"]) if asked.get("body") is not None else b"", how


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
