"""The state of a timeline at later times, and when jobs that wait find room at the earliest."""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING

import numpy as np

from placeopt.problem import Placement

if TYPE_CHECKING:
    from placeopt.heuristics.timeline import Timeline


class FutureState:
    """The state of a timeline at later and later times: what ends by then is gone, what is reserved is there."""

    def __init__(self, line: Timeline) -> None:
        self._line = line
        started = ((start.end_ms, job) for job, start in line.started.items() if start.end_ms is not None)
        self._ending = merge(line.ending, sorted(started))
        self._next = next(self._ending, None)
        self._gone: list[tuple[int, Placement | None]] = []
        self._there: set[int] = set()

    def advance(self, time_ms: int) -> None:
        """Move the state to a time, not before the last one."""
        line = self._line
        for job in [job for job in self._there if time_ms >= (line.reserved[job].end_ms or 0)]:
            line.put(job, None)
            self._there.remove(job)
        while self._next is not None and self._next[0] <= time_ms:
            job = self._next[1]
            self._gone.append((job, line.state.placements[job]))
            line.put(job, None)
            self._next = next(self._ending, None)
        for job, start in line.reserved.items():
            if job not in self._there and start.start_ms <= time_ms < (start.end_ms or 0):
                line.put(job, start.placement)
                self._there.add(job)

    def restore(self) -> None:
        """Move the state back to the present."""
        for job in self._there:
            self._line.put(job, None)
        for job, placement in reversed(self._gone):
            self._line.put(job, placement)


def earliest_starts(line: Timeline) -> dict[int, int]:
    """Return class -> first time at which one of its options has room beside what runs, of classes that wait."""
    problem, candidates = line.problem, line.candidates
    waiting = [k for j, k in enumerate(problem.job_class.tolist()) if j not in problem.running]
    options = {k: np.flatnonzero(problem.options.job_class == k).tolist() for k in dict.fromkeys(waiting)}
    if candidates.excludes_gpus:  # who shares a GPU may find less room there once others have left
        return dict.fromkeys(options, line.now)
    earliest: dict[int, int] = {}
    ahead = FutureState(line)
    for time_ms in (line.now, *sorted({end for end in line.ends.values() if end <= line.latest})):
        if not options:
            break
        ahead.advance(time_ms)
        found = [k for k, rows in options.items() if any(candidates.has_room(option) for option in rows)]
        for k in found:
            earliest[k] = time_ms
            del options[k]
    ahead.restore()
    return earliest


def nodes_of(placement: Placement | None) -> tuple[int, ...]:
    """Return the nodes of a placement, each once; none without one."""
    return () if placement is None else tuple(dict.fromkeys(placement.nodes))
