"""A stop, passed on to a solver that has to be called or signalled for it."""

import threading
from collections.abc import Callable

POLL_S = 1 / 32
"""Seconds between two looks at whether a solve shall end: few to a user, and no work to speak of."""


class Stopper:
    """
    While it is entered, calls ``end`` every `POLL_S` once ``stop`` is set.

    Again and again: CP-SAT forgets a stop that comes before its search starts, and a program a signal that comes
    before its handler is there.
    """

    def __init__(self, stop: threading.Event, end: Callable[[], object]) -> None:
        self._stop, self._end = stop, end
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="placeopt-stopper", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(POLL_S):
            if self._stop.is_set():
                self._end()
