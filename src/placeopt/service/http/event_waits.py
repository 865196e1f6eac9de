"""Clients that wait for events: one reply once there are some, or a stream of them; threads wait, no request does."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from placeopt.service.http.problem import refuse

if TYPE_CHECKING:
    from starlette.responses import Response

    from placeopt.service.http.limits import Limits
    from placeopt.service.service import Service


class EventWaits:
    """
    The clients of a service that wait for events.

    Parameters
    ----------
    service
        Whose events.
    limits
        How many clients, and for how long.
    stopping
        Ends all of them.
    problem
        Returns the reply for an exception.
    """

    def __init__(
        self, service: Service, limits: Limits, stopping: threading.Event, problem: Callable[[Exception], Response]
    ) -> None:
        self._service, self._limits, self._stopping, self._problem = service, limits, stopping, problem
        self._threads = ThreadPoolExecutor(limits.streams, thread_name_prefix="placeopt-events")
        self._waiting = 0

    def refuse_more(self) -> None:
        """Raise `Refused` with 503 if no further client may wait."""
        if self._waiting >= self._limits.streams:
            raise refuse(503, f"{self._waiting} clients wait for events already", {"retry_after_s": 1})

    async def one_reply(self, query: Mapping[str, str]) -> bytes:
        """Return the events after a number once there are some, or after ``wait_s``, a positive whole number."""
        until = time.monotonic() + min(int(query["wait_s"]), self._limits.event_wait_s)
        self._waiting += 1
        try:
            while True:
                reply = await self._events(query)
                if json.loads(reply)["events"] or time.monotonic() >= until or self._stopping.is_set():
                    return reply
        finally:
            self._waiting -= 1

    async def stream(self, query: Mapping[str, str], last_event_id: str | None) -> AsyncIterator[bytes]:
        """
        Yield events as they come, until the client or the service ends; an error ends the stream as an event.

        ``last_event_id`` is the number of the last event that a client had before it connected again; it counts more
        than ``after``, which stands in an address that does not change.
        """
        known = {"after": "0", **query} | ({} if last_event_id is None else {"after": last_event_id})
        alive = time.monotonic()
        self._waiting += 1
        try:
            while not self._stopping.is_set():
                for event in json.loads(await self._events(known))["events"]:
                    known["after"] = str(event["number"])
                    text = json.dumps(event, separators=(",", ":"))
                    yield f"id: {event['number']}\ndata: {text}\n\n".encode()
                    alive = time.monotonic()
                if time.monotonic() - alive >= self._limits.event_wait_s:
                    alive = time.monotonic()
                    yield b": nothing happened\n\n"  # keeps proxies from closing it
        except Exception as error:  # noqa: BLE001 - the client gets it
            yield b"event: problem\ndata: " + bytes(self._problem(error).body) + b"\n\n"
        finally:
            self._waiting -= 1

    async def _events(self, query: Mapping[str, str]) -> bytes:
        """Return the events after a number, after a second at most if there are none."""
        work = partial(self._service.call, "events", query={**query, "wait_s": "1"})
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
