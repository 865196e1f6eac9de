"""Lines of progress: what an 80-column terminal shows of them."""

from __future__ import annotations

import time

import pytest

from placeopt.cli.progress import Ticker, time_left
from placeopt.solving.bounds import Progress


def test_the_gap_is_within_80_columns() -> None:
    """Values of openb in GPU-milli, the longest name of a stage: the gap once stood last, and was cut off."""
    ticker = Ticker(time.monotonic() - 1000, quiet=True)
    fields = {"stage": "branch and price", "value": 5_999_657_000_000, "value_bound": 6_001_234_000_000}
    ticker.news(Progress.__new__(Progress))
    news = ticker._news
    for name in Progress.__dataclass_fields__:
        object.__setattr__(news, name, fields.get(name))
    object.__setattr__(news, "gap", 0.000_12)
    assert "gap 0.012 %" in ticker.line()[:78]


@pytest.mark.parametrize(
    ("done", "whole", "spent_s", "words"),
    [
        (0, 10, 60.0, ""),
        (10, 10, 60.0, ""),
        (5, 10, 1.0, ""),
        (5, 10, 60.0, "about 60.0 s left"),
        (1, 1000, 36.0, "about 10.00 h left"),
    ],
)
def test_time_left(done: int, whole: int, spent_s: float, words: str) -> None:
    """At the pace so far; nothing is said before there is one."""
    assert time_left(done, whole, spent_s) == words
