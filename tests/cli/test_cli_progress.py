"""Lines of progress: what an 80-column terminal shows of them."""

from __future__ import annotations

import time

import pytest

from placeopt import Progress
from placeopt.cli.progress import Ticker, time_left


def test_the_gap_is_within_80_columns() -> None:
    """Values of openb in GPU-milli, the longest name of a stage: the gap once stood last, and was cut off."""
    ticker = Ticker(time.monotonic() - 1000, quiet=True)
    ticker.news(Progress(1.0, "branch and price", 5_999_657_000_000, 6_001_234_000_000))
    assert "gap 0.026 %" in ticker.line()[:78]


@pytest.mark.parametrize(
    ("done", "whole", "spent_s", "words"),
    [
        (0, 10, 60.0, ""),
        (10, 10, 60.0, ""),
        (5, 10, 1.0, ""),
        (5, 10, 60.0, "about 60 seconds left"),
        (1, 1000, 36.0, "about 10 hours left"),
    ],
)
def test_time_left(done: int, whole: int, spent_s: float, words: str) -> None:
    """At the pace so far; nothing is said before there is one."""
    assert time_left(done, whole, spent_s) == words
