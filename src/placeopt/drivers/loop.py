"""The loop of a driver: a round every interval, until it is stopped; a host that does not answer is waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from placeopt.drivers.answers import Unreachable
from placeopt.drivers.backoff import pause_s

R = TypeVar("R")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Between two attempts to reach a host system that does not answer."""


def run_rounds(
    turn: Callable[[], R],
    on_round: Callable[[R], None],
    on_message: Callable[[str], None],
    *,
    every_s: float,
    stop: threading.Event,
    rounds: int | None = None,
) -> None:
    """
    Call ``turn`` every ``every_s`` seconds, from beginning to beginning, until ``stop`` is set or after ``rounds``.

    ``on_round`` is called with what each turn returns. A turn that raises `Unreachable` is repeated after growing
    pauses; ``on_message`` is called when these begin and end. Any other exception ends the loop.
    """
    done = silent = 0
    while not stop.is_set() and done != rounds:
        began = time.monotonic()
        try:
            result = turn()
        except Unreachable as fault:
            silent += 1
            pause = pause_s(silent, FIRST_PAUSE_S, LONGEST_PAUSE_S)
            on_message(f"no answer: {fault}; next attempt in {pause:g} s")
            stop.wait(pause)
            continue
        if silent:
            on_message(f"there is an answer again, after {silent} attempt{'s' * (silent > 1)}")
            silent = 0
        on_round(result)
        done += 1
        if done != rounds:
            stop.wait(max(0.0, began + every_s - time.monotonic()))
