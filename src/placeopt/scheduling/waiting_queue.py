"""Queues of waiting jobs, their sort keys, and whether jobs state the estimates that keys read."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Callable, Hashable, Iterator

from placeopt.heuristics.job_orders import due_ms, latency_of
from placeopt.model import Job
from placeopt.scheduling.occupancy import Follower, Held

Key = tuple[int, ...]


def by_arrival(job: Job) -> Key:
    """Return the key for: first come, first served."""
    return (job.arrival_ms,)


def by_priority(job: Job) -> Key:
    """Return the key for: highest priority first, then in order of arrival."""
    return (-job.priority, job.arrival_ms)


def by_run_time(job: Job) -> Key:
    """Return the key for: shortest predicted run time of the first option first; jobs that state none last."""
    predicted = job.options[0].run_time_ms
    return (int(predicted is None), predicted or 0, job.arrival_ms)


def by_service(job: Job) -> Key:
    """Return the key for: least predicted GPU time of the first option first; jobs without a run time last."""
    option = job.options[0]
    milli, predicted = option.least_gpu_milli, option.run_time_ms
    return (int(predicted is None), (predicted or 0) * max(1, milli), job.arrival_ms)


def by_allowance(job: Job) -> Key:
    """
    Return the key for: shortest waiting allowance first, w = ECT - (latency + now) (GENIE eq. 13).

    The latency is that of the first option. All allowances shrink alike, so the order of two jobs never changes.
    """
    return (due_ms(job) - latency_of(job.options[0]), job.arrival_ms)


def by_aged_priority(aging_ms: int | None) -> Callable[[Job], Key]:
    """
    Return the function of the key for: highest priority first, where a wait of ``aging_ms`` counts as one of priority.

    All waits grow alike, so the order of two jobs never changes: arrival - priority x aging. None: waits do not count.
    """
    if aging_ms is None:
        return by_priority
    return lambda job: (job.arrival_ms - job.priority * aging_ms, job.arrival_ms)


class JobQueue(Follower[Held], ABC):
    """Waiting jobs, by shape: jobs of one shape request the same. ``num_jobs`` of them wait."""

    num_jobs: int

    @abstractmethod
    def add(self, job: Job, shape: Hashable) -> None:
        """Add a waiting job."""

    @abstractmethod
    def in_order(self, skipped: set[Hashable], now_ms: int) -> Iterator[tuple[str, Hashable]]:
        """
        Yield jobs and their shapes in the order of the queue.

        The caller removes a job that starts with ``take`` before it takes the next one. Where a job stays, the
        other jobs of its shape are passed over, as are the shapes in ``skipped``.
        """

    @abstractmethod
    def take(self, job: str, shape: Hashable) -> None:
        """Remove a job."""


class SortedQueue(JobQueue):
    """
    A queue by a key that does not change while a job waits, the smallest first; ties go by the order of arrival in it.
    """

    def __init__(self, key: Callable[[Job], Key]) -> None:
        self._key = key
        self._shapes: dict[Hashable, list[tuple[Key, str]]] = {}  # the first in the order is the last of its list
        self._num_added = 0
        self.num_jobs = 0

    def add(self, job: Job, shape: Hashable) -> None:
        entry = (tuple(-k for k in (*self._key(job), self._num_added)), job.id)
        insort(self._shapes.setdefault(shape, []), entry)
        self._num_added += 1
        self.num_jobs += 1

    def in_order(self, skipped: set[Hashable], now_ms: int) -> Iterator[tuple[str, Hashable]]:
        """Yield jobs and shapes; the cost grows with shapes and started jobs, not with waiting jobs."""
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
        """Remove a job; the first of its shape takes constant time."""
        jobs = self._shapes[shape]
        del jobs[next(i for i in range(len(jobs) - 1, -1, -1) if jobs[i][1] == job)]
        self.num_jobs -= 1
        if not jobs:
            del self._shapes[shape]


LacksEstimate = Callable[[Job], bool]
"""Whether a job lacks the estimate that a rule reads."""


def lacks_run_time(job: Job) -> bool:
    """Return whether an option states no run time."""
    return any(option.run_time_ms is None for option in job.options)


def lacks_latency(job: Job) -> bool:
    """Return whether an option states neither run time nor latency."""
    return any(option.run_time_ms is None and option.latency_ms is None for option in job.options)
