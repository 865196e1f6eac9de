"""The latest changes of the cluster in words, for clients that wait for them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable

from placeopt.service.journal import Entry
from placeopt.service.messages import Event, EventList

MOST_KEPT = 10_000
MOST_TOLD = 1_000
LONGEST_WAIT_S = 60


class News:
    """The latest changes; any thread may add and wait. ``entries``: those of the journal."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._changed = threading.Condition()
        self._ending = False
        self._events = deque(map(_event, entries), MOST_KEPT)

    def add(self, entry: Entry) -> None:
        """Tell a change."""
        with self._changed:
            self._events.append(_event(entry))
            self._changed.notify_all()

    def stop_waiting(self) -> None:
        """Answer all that wait, now and later."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()

    def after(self, number: int, wait_s: float) -> EventList:
        """Return the events after a number; without any, wait for one."""
        until = time.monotonic() + min(wait_s, LONGEST_WAIT_S)
        with self._changed:
            while not (self._ending or (self._events and self._events[-1].number > number)):
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            kept = list(self._events)
        first = kept[0].number if kept else 1
        events = tuple(event for event in kept if event.number > number)[:MOST_TOLD]
        return EventList(events=events, last=kept[-1].number if kept else 0, missed=number + 1 < first)


def _event(entry: Entry) -> Event:
    return Event(number=entry.number, revision=entry.revision, words=entry.words)
