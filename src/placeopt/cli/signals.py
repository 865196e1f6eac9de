"""Ctrl-C and SIGTERM during a solve: the first ends it with the best plan, the second kills."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from placeopt.cli.exits import ExitCode

_CODES = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}

SHOW_CURSOR = b"\x1b[?25h\n"


class Interruption:
    """
    Turns signals into an event; a context manager that puts the former handlers back.

    Attributes
    ----------
    event
        Set at the first signal; what ``Engine.solve`` takes as ``cancel``.
    code
        Exit code for the signal, None while there was none.

    Parameters
    ----------
    keeps
        Names what is kept, in the message at the first signal.
    """

    def __init__(self, keeps: str = "the best plan so far") -> None:
        self.event = threading.Event()
        self._message = f"\nstopping with {keeps}; once more to quit at once\n".encode()
        self.code: ExitCode | None = None
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python sets no handlers
            for number in _CODES:
                self._former[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.code is not None:
            _tell(SHOW_CURSOR if os.isatty(2) else b"")  # a live line hides it
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self.code = _CODES[signal.Signals(number)]
        self.event.set()
        _tell(self._message)


def _tell(message: bytes) -> None:
    """Write past all streams: a handler must not wait for a stream's lock."""
    try:
        os.write(2, message)
    except OSError:
        return
