"""Clients of the service for measurements: JSON lines through a child's pipes, and HTTP/1.1 on one kept connection."""

from __future__ import annotations

import json
import socket
import subprocess
from typing import Any, Protocol

from placeopt.service.calls import CALLS


class Client(Protocol):
    """One connection to a service, for one call at a time."""

    def send(self, name: str, body: bytes, key: str | None = None) -> Any:
        """Make a call with a body in JSON, under an ``Idempotency-Key`` if there is one; return the reply."""

    def call(self, name: str, body: Any, key: str | None = None) -> Any:
        """Make a call; return the reply."""


class StdioClient:
    """The pipes of ``placeopt serve --stdio``."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout

    def send(self, name: str, body: bytes, key: str | None = None) -> Any:
        """Make a call with a body in JSON, under an ``Idempotency-Key`` if there is one; return the reply."""
        content = b"" if body == b"null" else b',"body":' + body.replace(b"\n", b" ")
        if key is not None:
            content += b',"key":' + json.dumps(key).encode()
        self._to.write(b'{"id":1,"call":"' + name.encode() + b'"' + content + b"}\n")
        self._to.flush()
        answer = json.loads(self._from.readline())
        if "reply" not in answer:
            raise RuntimeError(f"{name}: {answer}")
        return answer["reply"]

    def call(self, name: str, body: Any, key: str | None = None) -> Any:
        """Make a call; return the reply."""
        return self.send(name, json.dumps(body).encode(), key)


class HttpClient:
    """A connection that stays; ``address`` as the service prints it: ``unix:PATH`` or ``http://HOST:PORT``."""

    def __init__(self, address: str) -> None:
        if address.startswith("unix:"):
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(address.removeprefix("unix:"))
        else:
            host, _, port = address.removeprefix("http://").rstrip("/").rpartition(":")
            self._socket = socket.create_connection((host, int(port)))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def send(self, name: str, body: bytes, key: str | None = None) -> Any:
        """Make a call with a body in JSON, under an ``Idempotency-Key`` if there is one; return the reply."""
        call = CALLS[name]
        data = b"" if body == b"null" else body
        head = (
            f"{call.method} {call.path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"content-length: {len(data)}\r\n" + (f"idempotency-key: {key}\r\n" if key is not None else "") + "\r\n"
        )
        self._socket.sendall(head.encode() + data)
        status = self._file.readline()
        length = 0
        while (line := self._file.readline()) not in (b"\r\n", b""):
            header, _, value = line.partition(b":")
            if header.lower() == b"content-length":
                length = int(value)
        reply = json.loads(self._file.read(length))
        if b" 200 " not in status:
            raise RuntimeError(f"{name}: {status!r} {reply}")
        return reply

    def call(self, name: str, body: Any, key: str | None = None) -> Any:
        """Make a call; return the reply."""
        return self.send(name, json.dumps(body).encode(), key)
