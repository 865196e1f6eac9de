"""Arrivals, ends and rounds in the order of time, with or without time steps."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from operator import itemgetter
from typing import Literal

Kind = Literal["end", "failure", "leave", "edit", "arrival", "round"]

IN_TIME = {"end": 0, "failure": 1, "leave": 2, "edit": 3, "arrival": 4, "round": 5}
"""Events at one moment: ends free their GPUs first, and the round comes last."""
IN_STEPS = {"arrival": 0, "round": 1, "end": 2, "failure": 3, "leave": 4, "edit": 5}
"""Events in one step: the round comes before the ends, as in SC'17's artifact."""


class EventQueue:
    """
    A queue of events, at multiples of ``step_ms``, rounded up; None: at any millisecond.

    Rounds happen at multiples of ``interval_ms`` only; None: at once.
    """

    def __init__(self, step_ms: int | None, interval_ms: int | None) -> None:
        self._step, self._interval = step_ms or 1, interval_ms or 1
        self._rank = IN_TIME if step_ms is None else IN_STEPS
        self._after_end = 0 if step_ms is None else self._step
        self._heap: list[tuple[int, int, int, Kind, str]] = []
        self._num_added = 0
        self._arrivals: list[tuple[int, str]] = []  # the next one last
        self._rounds: set[int] = set()

    def __len__(self) -> int:
        """Return the number of events, superseded ends included."""
        return len(self._heap) + len(self._arrivals)

    def add_arrivals(self, jobs: Iterable[tuple[str, int]]) -> None:
        """Add all arrivals, each a job and its time; they stay out of the heap, which holds what follows from them."""
        self._arrivals = sorted(((self.on_step(at_ms), job) for job, at_ms in jobs), key=itemgetter(0))
        self._arrivals.reverse()

    def add(self, kind: Kind, job: str, at_ms: int) -> None:
        """
        Add a failure, which applies if nothing changes until then, the leaving of a service, or a scenario's event.

        ``job``: Of such an event its number.
        """
        self._add(self.on_step(at_ms), kind, job)

    def noticed(self, start_ms: int, end_ms: int) -> int:
        """Return when the end of a job that started at ``start_ms`` is noticed."""
        return start_ms + self.on_step(end_ms - start_ms)

    def end(self, job: str, at_ms: int) -> None:
        """Add the end of a job; earlier ends of it stay in the queue and are superseded."""
        self._add(at_ms, "end", job)

    def round_after(self, kind: Kind, now_ms: int) -> None:
        """Add a round as soon as possible after an arrival, or after another event."""
        self._round(now_ms + (0 if kind == "arrival" else self._after_end))

    def round_at(self, at_ms: int) -> None:
        """Add a round at the first possible moment from then on."""
        self._round(self.on_step(at_ms))

    def _round(self, at: int) -> None:
        at = -(-at // self._interval) * self._interval
        if at not in self._rounds:
            self._rounds.add(at)
            self._add(at, "round", "")

    def next(self) -> tuple[int, Kind, str]:
        """Remove the next event; return its time, kind and job."""
        if self._arrivals:
            at, job = self._arrivals[-1]
            if not self._heap or (at, self._rank["arrival"]) < self._heap[0][:2]:
                self._arrivals.pop()
                return at, "arrival", job
        at, _, _, kind, job = heapq.heappop(self._heap)
        if kind == "round":
            self._rounds.discard(at)
        return at, kind, job

    def on_step(self, at_ms: int) -> int:
        """Round up to a step."""
        return -(-at_ms // self._step) * self._step

    def _add(self, at: int, kind: Kind, job: str) -> None:
        heapq.heappush(self._heap, (at, self._rank[kind], self._num_added, kind, job))
        self._num_added += 1
