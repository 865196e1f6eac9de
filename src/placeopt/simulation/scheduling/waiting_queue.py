"""Queues of waiting jobs, by shape: a pass over one costs its shapes and what starts, not its jobs."""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Protocol

from placeopt.model import Job, Placement
from placeopt.problem.allowance import due_ms, latency_of

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


def by_service(job: Job) -> Key:
    """Least predicted GPU time first, of the first option; those that state no run time last."""
    option = job.options[0]
    workers = option.workers if option.workers_min is None else option.workers_min
    milli = workers * option.demand.gpus * option.demand.gpu_milli
    predicted = option.run_time_ms
    return (int(predicted is None), (predicted or 0) * max(1, milli), job.arrival_ms)


def by_completion(job: Job) -> Key:
    """Earliest expected completion time first (min-min; GENIE 7.1)."""
    return (due_ms(job), job.arrival_ms)


def by_arrival_and_completion(job: Job) -> Key:
    """Least mean of arrival and expected completion time first (weighted fair; GENIE 7.1; equal weights are ours)."""
    return (job.arrival_ms + due_ms(job), job.arrival_ms)


def by_allowance(job: Job) -> Key:
    """
    Shortest waiting allowance first, w = ECT - (latency + now) (GENIE eq. 13), by the latency of the first option.

    All allowances shrink alike, so the order of two jobs never changes.
    """
    return (due_ms(job) - latency_of(job.options[0]), job.arrival_ms)


def inference_first(job: Job) -> Key:
    """Inference before all others, each in order of arrival (DynamoML 3.3)."""
    return (int(job.kind != "inference"), job.arrival_ms)


def by_aged_priority(aging_ms: int) -> Callable[[Job], Key]:
    """
    Highest priority first, and a wait of ``aging_ms`` counts as much as one of priority.

    All waits grow alike, so the order of two jobs never changes: arrival - priority x aging.
    """
    return lambda job: (job.arrival_ms - job.priority * aging_ms, job.arrival_ms)


KEYS: Mapping[str, Callable[[Job], Key]] = {
    "fcfs": by_arrival,
    "priority": by_priority,
    "srtf": by_run_time,
    "srsf": by_service,
    "min_min": by_completion,
    "arrival_ect": by_arrival_and_completion,
    "swaf": by_allowance,
    "inference_first": inference_first,
}


class JobQueue(Protocol):
    """
    Jobs that wait.

    ``in_order`` yields jobs and their shapes, the first to be considered first. One that starts is taken out with
    ``take`` before the next is asked for; if it stays, its shape is passed over from then on, and so are those in
    ``skipped``: jobs of one shape ask for the same.
    """

    number: int

    def add(self, job: Job, shape: Hashable) -> None:
        """Let a job wait."""

    def in_order(self, skipped: set[Hashable], now_ms: int) -> Iterator[tuple[str, Hashable]]:
        """See the class."""

    def take(self, job: str, shape: Hashable) -> None:
        """Take a job out of the queue."""

    def holds(self, job: Job, placement: Placement, sign: int) -> None:
        """Note what a job holds from now on, or (``sign`` -1) no more."""


class SortedQueue:
    """A queue by a key that does not change while a job waits; ties go by the order of coming."""

    def __init__(self, order: str | Callable[[Job], Key]) -> None:
        """``order``: a name in ``KEYS``, or what gives a job its key."""
        self._key = KEYS[order] if isinstance(order, str) else order
        self._shapes: dict[Hashable, list[tuple[Key, str]]] = {}  # the first in the order is the last of its list
        self._came = 0
        self.number = 0

    def add(self, job: Job, shape: Hashable) -> None:
        """Let a job wait."""
        entry = (tuple(-k for k in (*self._key(job), self._came)), job.id)
        insort(self._shapes.setdefault(shape, []), entry)
        self._came += 1
        self.number += 1

    def in_order(self, skipped: set[Hashable], now_ms: int) -> Iterator[tuple[str, Hashable]]:
        """See ``JobQueue``."""
        del now_ms
        heap = [(tuple(-k for k in jobs[-1][0]), name) for name, jobs in self._shapes.items() if name not in skipped]
        heapq.heapify(heap)  # keys differ, so shapes are never compared
        while heap:
            _, name = heapq.heappop(heap)
            jobs = self._shapes[name]
            before = len(jobs)
            yield jobs[-1][1], name
            if jobs and len(jobs) < before:
                heapq.heappush(heap, (tuple(-k for k in jobs[-1][0]), name))

    def take(self, job: str, shape: Hashable) -> None:
        """See ``JobQueue``. The first of its shape is found at once."""
        jobs = self._shapes[shape]
        del jobs[next(i for i in range(len(jobs) - 1, -1, -1) if jobs[i][1] == job)]
        self.number -= 1
        if not jobs:
            del self._shapes[shape]

    def holds(self, job: Job, placement: Placement, sign: int) -> None:
        """See ``JobQueue``; this one does not ask."""
