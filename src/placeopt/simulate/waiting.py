"""Waiting jobs by shape, each shape in its order: a pass over the queue costs its shapes and what starts."""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Hashable, Iterator

from placeopt.model import Job
from placeopt.model.scheduling import JobOrder

Key = tuple[int, ...]


def by_arrival(job: Job) -> Key:
    """First come, first served."""
    return (job.arrival_ms,)


def by_priority(job: Job) -> Key:
    """Highest priority first, then first come."""
    return (-job.priority, job.arrival_ms)


def by_run_time(job: Job) -> Key:
    """Shortest predicted run time first, of the first option; those that state none last. (Nothing is preempted.)"""
    predicted = job.options[0].run_time_ms
    return (int(predicted is None), predicted or 0, job.arrival_ms)


KEYS: dict[JobOrder, Callable[[Job], Key]] = {"fcfs": by_arrival, "priority": by_priority, "srtf": by_run_time}


class Waiting:
    """The queue. Keys of a job do not change while it waits; ties go by the order of coming."""

    def __init__(self, order: JobOrder) -> None:
        self._key = KEYS[order]
        self._shapes: dict[Hashable, list[tuple[Key, str]]] = {}  # the first in the order is the last of its list
        self._came = 0
        self.number = 0

    def add(self, job: Job, shape: Hashable) -> None:
        """Let a job wait."""
        entry = (tuple(-k for k in (*self._key(job), self._came)), job.id)
        insort(self._shapes.setdefault(shape, []), entry)
        self._came += 1
        self.number += 1

    def in_order(self, skipped: set[Hashable]) -> Iterator[tuple[str, Hashable]]:
        """
        Yield jobs and their shapes, the first of the order first.

        A job that is to leave the queue is taken out with ``take`` before the next is asked for; if it stays, its
        shape is passed over from then on, and so are those in ``skipped``.
        """
        heap = [
            (tuple(-k for k in jobs[-1][0]), i, name)
            for i, (name, jobs) in enumerate(self._shapes.items())
            if name not in skipped
        ]
        heapq.heapify(heap)
        while heap:
            _, i, name = heapq.heappop(heap)
            jobs = self._shapes[name]
            before = len(jobs)
            yield jobs[-1][1], name
            if jobs and len(jobs) < before:
                heapq.heappush(heap, (tuple(-k for k in jobs[-1][0]), i, name))

    def take(self, shape: Hashable) -> None:
        """Take the first job of a shape out of the queue."""
        jobs = self._shapes[shape]
        jobs.pop()
        self.number -= 1
        if not jobs:
            del self._shapes[shape]

    def remove(self, job: str, shape: Hashable) -> None:
        """Take any job of a shape out of the queue."""
        jobs = self._shapes[shape]
        del jobs[next(i for i in range(len(jobs) - 1, -1, -1) if jobs[i][1] == job)]
        self.number -= 1
        if not jobs:
            del self._shapes[shape]
