"""While a command runs: progress on standard error, and Ctrl-C, which ends a solve with its best plan."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from placeopt.cli.output import ExitCode, write_error
from placeopt.readable import number, percent, time_unit

if TYPE_CHECKING:
    from rich.text import Text

    from placeopt.solving.bounds import Progress


QUIET_S = 2.0
"""Shorter commands show no progress."""
EVERY_S = 2.0
"""Seconds between plain lines."""


class Ticker:
    """
    Shows the latest progress; a context manager. Its thread only reads the state that the caller sets.

    ``started``: ``time.monotonic()`` of the command's start.
    """

    def __init__(self, started: float, *, quiet: bool) -> None:
        self._started = started
        self._doing = "reading"
        self._news: Progress | None = None
        self._over = threading.Event()
        self._thread = None if quiet else threading.Thread(target=self._show, name="placeopt-progress", daemon=True)

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop showing progress; may be called twice."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(1.0)

    def doing(self, what: str) -> None:
        """Set the text of the current activity, for phases without progress of a round."""
        self._doing, self._news = what, None

    def news(self, progress: Progress) -> None:
        """Set the latest progress of the round."""
        self._news = progress

    def line(self) -> str:
        """Return the progress on one line; what a narrow terminal cuts off stands last."""
        elapsed, news = time.monotonic() - self._started, self._news
        if news is None:
            return f"{elapsed:6.1f} s  {self._doing}"
        name, best, bound = "value", news.value, news.value_bound
        if best is not None and best == bound and news.cost is not None:
            name, best, bound = "cost", news.cost, news.cost_bound
        return (
            f"{elapsed:6.1f} s  {news.stage:<14}  gap {percent(news.gap)}  {name} {number(best)}  bound {number(bound)}"
        )

    def _show(self) -> None:
        if self._over.wait(max(0.0, self._started + QUIET_S - time.monotonic())):
            return
        if sys.stderr is not None and sys.stderr.isatty():
            self._show_live()
            return
        while True:
            write_error(self.line())
            if self._over.wait(EVERY_S):
                return

    def _show_live(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True, markup=False, highlight=False, emoji=False)
        with Live(console=console, get_renderable=self._styled, refresh_per_second=8, transient=True):
            self._over.wait()

    def _styled(self) -> Text:
        from rich.text import Text

        mark = "|/-\\"[int(8 * (time.monotonic() - self._started)) % 4]
        return Text(f"{mark} {self.line()}", no_wrap=True, overflow="ellipsis")


def time_left(done: int, whole: int, spent_s: float) -> str:
    """Return about how long the rest takes at the pace so far; empty as long as too little is done to tell."""
    if done <= 0 or done >= whole or spent_s < QUIET_S:
        return ""
    left_s = spent_s * (whole - done) / done
    seconds, unit = time_unit(left_s)
    return f"about {left_s / seconds:,.0f} {unit} left"


_CODES = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}

SHOW_CURSOR = b"\x1b[?25h\n"


class Interruption:
    """
    Turns signals into an event; a context manager that puts the former handlers back.

    ``event`` is set at the first signal; ``Engine.solve`` takes it as ``cancel``. ``code`` is the exit code for the
    signal, None while there was none. ``keeps`` names what is kept, in the message at the first signal. ``raises``: the
    first signal also raises `KeyboardInterrupt`, for work that takes no event.
    """

    def __init__(self, keeps: str = "the best plan so far", *, raises: bool = False) -> None:
        self.event = threading.Event()
        self._message = f"\nstopping with {keeps}; once more to quit at once\n".encode()
        self.code: ExitCode | None = None
        self._raises = raises
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python sets no handlers
            for number in _CODES:
                self._former[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for sign, handler in self._former.items():
            signal.signal(sign, handler)

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
        if self._raises:
            raise KeyboardInterrupt


def _tell(message: bytes) -> None:
    """Write past all streams: a handler must not wait for a stream's lock."""
    try:
        os.write(2, message)
    except OSError:
        return
