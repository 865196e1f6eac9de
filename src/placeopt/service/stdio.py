"""
The calls as JSON lines, for programs that start the service as a child: no port, no token.

A line ``{"id": 1, "call": "decide", "body": {...}}`` is answered by ``{"id": 1, "reply": {...}}`` or
``{"id": 1, "error": {...}}`` with a problem document. ``path``, ``query`` and ``key`` are optional. Lines are answered
in order, but for ``events`` and questions, which may wait, in threads of their own.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any, BinaryIO, NoReturn

from placeopt.documents.files import check_bounds
from placeopt.errors import BadInput
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
            asked = _read(line)
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


def _read(line: bytes) -> dict[str, Any]:
    """Return the members of a line; the body stays text, which the call reads as it reads that of a request."""
    try:
        check_bounds(line, "a line")
        members = _texts(line.decode())
        return {name: text if name == "body" else _VALUES.decode(text) for name, text in members.items()}
    except BadInput as error:
        raise Refused(400, str(error)) from None
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"a line is not JSON: {error}") from None


def _texts(line: str) -> dict[str, str]:
    """Return the members of an object as texts; raises `ValueError` for other JSON."""
    members: dict[str, str] = {}
    at, sign = _sign(line, 0, "{")
    if line[at : at + 1] == "}":
        at, sign = _sign(line, at, "}")
    while sign != "}":
        name, at = _ENDS.raw_decode(line, at)
        if not isinstance(name, str):
            raise ValueError("expected the name of a member in quotes")
        if name in members:
            raise _twice(name)
        begin, _ = _sign(line, at, ":")
        _, at = _ENDS.raw_decode(line, begin)
        members[name] = line[begin:at]
        at, sign = _sign(line, at, ",}")
    if at < len(line):
        raise ValueError("more follows the object")
    return members


def _sign(line: str, at: int, signs: str) -> tuple[int, str]:
    """Return where what follows the next sign begins, and the sign."""
    found = _SIGN.match(line, at)
    if found is None or found[1] not in signs:
        raise ValueError(f"expected {' or '.join(signs)} at character {at}")
    return found.end(), found[1]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _twice(name)
        found[name] = value
    return found


def _twice(name: str) -> Refused:
    return Refused(400, f"{name}: appears twice in an object", place=name)


_SIGN = re.compile(r"[ \t\r\n]*([{}:,])[ \t\r\n]*")
_ENDS = json.JSONDecoder(object_pairs_hook=lambda _: None, parse_constant=_no_constant)
"""Finds where values end; objects are not built."""
_VALUES = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


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
    body = asked.get("body", "null")
    return name, b"" if body == "null" else body.encode(), how


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
