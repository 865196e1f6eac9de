"""The events of a service for clients that wait: one reply once there are some, or a stream. No thread waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from functools import partial

from placeopt.service.messages import EventList
from placeopt.service.news import News

SILENCE_S = 25
"""Longest wait of a request, and between two signs of life of a stream."""


async def batches(news: News, after: int, wait_s: float) -> AsyncGenerator[EventList, None]:
    """Yield the events after a number as they come, an empty list after so many seconds without; until the end."""
    changed = asyncio.Event()
    wake = partial(asyncio.get_running_loop().call_soon_threadsafe, changed.set)
    with news.listening(wake):
        while True:
            changed.clear()
            found = news.after(after, 0)
            if not (found.events or news.ending):
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), wait_s)
                found = news.after(after, 0)
            yield found
            if news.ending:
                return
            after = max([after, *(event.number for event in found.events)])


async def one_reply(news: News, after: int, wait_s: float) -> bytes:
    """Return the events after a number; without any, wait for one."""
    async with aclosing(batches(news, after, min(wait_s, SILENCE_S))) as found:
        return (await anext(found)).model_dump_json().encode()


async def stream(news: News, after: int) -> AsyncIterator[bytes]:
    """Yield the events after a number as server-sent events, until the client or the service ends."""
    async with aclosing(batches(news, after, SILENCE_S)) as found:
        async for batch in found:
            for event in batch.events:
                yield f"id: {event.number}\ndata: {event.model_dump_json()}\n\n".encode()
            if not batch.events:
                yield b": nothing happened\n\n"  # keeps proxies from closing it
