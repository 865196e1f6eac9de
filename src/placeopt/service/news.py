"""The latest changes of the cluster in words, for clients that wait for them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from placeopt.service.journal import Entry
from placeopt.service.messages import Event, EventList

MOST_KEPT = 10_000
MOST_TOLD = 1_000
LONGEST_WAIT_S = 60


class News:
    """The latest changes; any thread may add and wait. ``entries``: those of the journal."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._changed = threading.Condition()
        self._listeners: set[Callable[[], object]] = set()
        self.ending = False
        """Whether nothing waits any more."""
        self._events = deque(map(_event, entries), MOST_KEPT)

    def add(self, entry: Entry) -> None:
        """Tell a change."""
        with self._changed:
            self._events.append(_event(entry))
            self._wake()

    def stop_waiting(self) -> None:
        """Answer all that wait, now and later."""
        with self._changed:
            self.ending = True
            self._wake()

    @property
    def num_listeners(self) -> int:
        """Functions that are called with each change."""
        return len(self._listeners)

    @contextmanager
    def listening(self, listener: Callable[[], object]) -> Iterator[None]:
        """Call a function, in any thread, with each change and at the end: for those that may not wait in a thread."""
        with self._changed:
            self._listeners.add(listener)
        try:
            yield
        finally:
            with self._changed:
                self._listeners.remove(listener)

    def _wake(self) -> None:
        self._changed.notify_all()
        for listener in self._listeners:
            listener()

    def after(self, number: int, wait_s: float) -> EventList:
        """Return the events after a number; without any, wait for one."""
        until = time.monotonic() + min(wait_s, LONGEST_WAIT_S)
        with self._changed:
            while not (self.ending or (self._events and self._events[-1].number > number)):
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            first = self._events[0].number if self._events else 1
            last = self._events[-1].number if self._events else 0
            begin = max(0, number + 1 - first)  # numbers follow each other
            events = tuple(islice(self._events, begin, begin + MOST_TOLD))
        return EventList(events=events, last=last, missed=number + 1 < first)


def _event(entry: Entry) -> Event:
    return Event(number=entry.number, revision=entry.revision, words=entry.words)
