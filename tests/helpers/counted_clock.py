"""A clock that counts: it goes on by a step whenever it is read, so that the speed of the machine decides nothing."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest


@dataclass
class Clock:
    """``time.monotonic`` of the calls in the block; ``readings`` counts them."""

    start: float
    step_s: float
    readings: int = 0

    def __call__(self) -> float:
        self.readings += 1
        return self.start + self.readings * self.step_s


@contextmanager
def counted_clock(step_s: float) -> Iterator[Clock]:
    """Replace the clock; with a step of 0 it stands still, so no part of a call ends for lack of time."""
    clock = Clock(time.monotonic(), step_s)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", clock)
        yield clock
