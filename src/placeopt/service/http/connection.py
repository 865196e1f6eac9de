"""
A connection of uvicorn with the limits that uvicorn lacks: time to send headers, time to take a reply, how many.

What uvicorn answers itself, to bytes that are no HTTP, is a problem document as well.
"""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from placeopt.service.http.problem import PROBLEM_TYPE, problem_bytes, refuse

if TYPE_CHECKING:
    from placeopt.service.http.limits import Limits


def protocol_of(limits: Limits) -> type[H11Protocol]:
    """Return the class of connections with these limits; uvicorn makes one for each."""
    return type("LimitedConnection", (Connection,), {"limits": limits})


class Connection(H11Protocol):
    """An HTTP/1.1 connection whose client may not be slow without limit."""

    limits: ClassVar[Limits]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._headers_due: asyncio.TimerHandle | None = None
        self._reader_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn asks for a transport of its own kind
        """Begin to wait for the first request, or refuse."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(503, f"{self.limits.connections} connections are open already")
            return
        self._headers_due = self.loop.call_later(self.limits.header_s, self._no_headers)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._stop_waiting()
        if self._reader_due is not None:
            self._reader_due.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; a request whose headers are not complete has begun to be late."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._headers_due is None and not self.transport.is_closing():
            self._headers_due = self.loop.call_later(self.limits.header_s, self._no_headers)

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not take its reply."""
        super().pause_writing()
        if self._reader_due is None:
            self._reader_due = self.loop.call_later(self.limits.write_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop waiting."""
        super().resume_writing()
        if self._reader_due is not None:
            self._reader_due.cancel()
            self._reader_due = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or has too long headers; called where the error is handled."""
        status = getattr(sys.exc_info()[1], "error_status_hint", 400)
        self._refuse(status, f"the headers are longer than {self.limits.header_bytes} bytes" if status == 431 else msg)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection; nothing of a request has come."""
        self._stop_waiting()
        super().timeout_keep_alive_handler()

    def _stop_waiting(self) -> None:
        if self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None

    def _no_headers(self) -> None:
        self._headers_due = None
        self._refuse(408, f"the headers did not come within {self.limits.header_s} s")

    def _refuse(self, status: int, detail: str) -> None:
        """Send a problem document past h11, whose state may be broken, and close."""
        self._stop_waiting()
        if self.transport.is_closing():
            return
        body = problem_bytes(refuse(status, detail))
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {PROBLEM_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
