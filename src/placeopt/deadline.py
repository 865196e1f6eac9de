"""When a call ends: at its time limit, or once its caller cancels it."""

from __future__ import annotations

import math
import threading
import time

from placeopt.errors import OutOfTime


class Deadline(threading.Event):
    """
    An event that is set once a call is over: at its time limit, when its caller cancels it, or by ``set``.

    It is passed down to every part of the call, and whatever takes an event ``cancel`` takes it, too. A copy in another
    process has the seconds that are left; it does not see the caller's event.

    Parameters
    ----------
    time_limit_s
        Seconds from now; infinity for a call that only its caller ends.
    cancel
        The caller's event.
    """

    def __init__(self, time_limit_s: float = math.inf, cancel: threading.Event | None = None) -> None:
        super().__init__()
        self._began, self._cancel = time.monotonic(), cancel
        self.at = self._began + time_limit_s
        """The moment of the limit, of ``time.monotonic()``."""

    def __reduce__(self) -> tuple[type[Deadline], tuple[float]]:
        """Return the copy for another process, whose clock may be another one."""
        return Deadline, (0.0 if self.is_set() else self.left_s,)

    @property
    def spent_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    @property
    def left_s(self) -> float:
        """Seconds until the limit, at least 0."""
        return max(0.0, self.at - time.monotonic())

    def leaves(self, seconds: float) -> bool:
        """Return whether the call goes on for more than so many seconds."""
        return not self.is_set() and self.left_s > seconds

    def is_set(self) -> bool:
        """Return whether the call is over."""
        return super().is_set() or time.monotonic() >= self.at or (self._cancel is not None and self._cancel.is_set())

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the call is over, ``timeout`` seconds at most; return whether it is."""
        seconds = min(self.left_s, math.inf if timeout is None else timeout)
        waits = super().wait if self._cancel is None else self._cancel.wait
        waits(None if math.isinf(seconds) else seconds)
        return self.is_set()

    def check(self, doing: str) -> None:
        """Raise ``OutOfTime`` once the call is over; ``doing``: what was not finished."""
        if self.is_set():
            raise OutOfTime(f"the time was over while {doing}")


FOREVER = Deadline()
"""That of calls without a limit."""
