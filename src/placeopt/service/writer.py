"""One thread that does all that touches the cluster, and a bounded queue before it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from placeopt.service.refused import Refused

T = TypeVar("T")
GATHER_S = 0.005
"""Functions that wait are run together until so long after the first began: about as long as a disk synchronises."""
_Entry = tuple[Future[Any], Callable[[], Any]]


class Writer:
    """
    Runs functions one after the other, in the order in which they came, in a thread of its own.

    Those that wait at the same time run together: their replies go out once ``together`` has ended, and if that
    fails, none of them has returned.

    Parameters
    ----------
    most_waiting
        Functions that may wait; a further one is refused at once, so that callers see the load and not a silence.
    together
        Makes the context around functions that run together.
    """

    def __init__(self, most_waiting: int, together: Callable[[], AbstractContextManager[None]]) -> None:
        self._queue: queue.Queue[_Entry | None] = queue.Queue(most_waiting)
        self._together = together
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="placeopt-writer", daemon=True)
        self._thread.start()

    def do(self, work: Callable[[], T]) -> T:
        """
        Return what a function returns, or raise what it raises.

        Raises
        ------
        Refused
            503, if too many wait, or the service is about to end.
        """
        done: Future[T] = Future()
        if self._closed:
            raise Refused(503, "the service is about to end")
        try:
            self._queue.put_nowait((done, work))
        except queue.Full:
            raise Refused(503, f"{self._queue.maxsize} calls wait already", more={"retry_after_s": 1}) from None
        return done.result()

    def close(self) -> None:
        """Do what waits, and end."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        entry = self._queue.get()
        while entry is not None:
            entry = self._run_together(entry)
        while True:  # came between the last look at `_closed` and the end
            try:
                late = self._queue.get_nowait()
            except queue.Empty:
                return
            if late is not None:
                late[0].set_exception(Refused(503, "the service is about to end"))

    def _run_together(self, entry: _Entry) -> _Entry | None:
        """Run a function and those that wait, and return the next one; None at the end."""
        taken: list[_Entry | None] = [entry]
        over: list[Future[Any]] = []
        until = time.monotonic() + GATHER_S
        try:
            with self._together():
                while taken[-1] is not None:
                    over.append(_tried(taken[-1][1]))
                    if time.monotonic() > until or self._queue.empty():
                        break
                    taken.append(self._queue.get())
        except BaseException as error:  # noqa: BLE001 - raised again in the threads of the callers
            failed: Future[Any] = Future()
            failed.set_exception(error)
            over = [failed] * len(taken)
        is_last = taken[-1] is None
        for (done, _), tried in zip(filter(None, taken), over, strict=False):
            if (fault := tried.exception()) is not None:
                done.set_exception(fault)
            else:
                done.set_result(tried.result())
        return None if is_last else self._queue.get()


def _tried(work: Callable[[], Any]) -> Future[Any]:
    """Return what came of a function."""
    tried: Future[Any] = Future()
    try:
        tried.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised again in the thread of the caller
        tried.set_exception(error)
    return tried
