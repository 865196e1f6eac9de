"""Seconds of calls that are made many times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from spec import Row

T = TypeVar("T")


class Watch:
    """Wall-clock seconds of calls, by the name of the call."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def __call__(self, name: str, work: Callable[[], T]) -> T:
        """Return what ``work`` returns, and note its seconds."""
        began = time.perf_counter()
        done = work()
        self.seconds.setdefault(name, []).append(time.perf_counter() - began)
        return done

    def rows(self) -> Iterator[Row]:
        """Yield a row for each call: the median, and the 99th percentile where it has been made often enough."""
        for name, seconds in self.seconds.items():
            row: Row = {"call": name, "calls": len(seconds), "p50_ms": round(1000 * statistics.median(seconds), 3)}
            if len(seconds) >= 100:
                row["p99_ms"] = round(1000 * statistics.quantiles(seconds, n=100, method="inclusive")[98], 3)
            yield row
