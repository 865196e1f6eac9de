"""One thread that does all that touches the cluster, and a bounded queue before it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from placeopt.service.refused import Refused

T = TypeVar("T")


class Writer:
    """
    Runs functions one after the other, in the order in which they came, in a thread of its own.

    Parameters
    ----------
    most_waiting
        Functions that may wait; a further one is refused at once, so that callers see the load and not a silence.
    """

    def __init__(self, most_waiting: int) -> None:
        self._queue: queue.Queue[tuple[Future[Any], Callable[[], Any]] | None] = queue.Queue(most_waiting)
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
        while (entry := self._queue.get()) is not None:
            done, work = entry
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised again in the thread of the caller
                done.set_exception(error)
        while True:  # came between the last look at `_closed` and the end
            try:
                late = self._queue.get_nowait()
            except queue.Empty:
                return
            if late is not None:
                late[0].set_exception(Refused(503, "the service is about to end"))
