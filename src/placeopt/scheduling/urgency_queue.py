"""A queue by urgency over GPU or run time: a job's urgency is what a second of its delay costs the policy's goals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from placeopt.model import Cluster, Job, Option
from placeopt.model.base import Milliseconds
from placeopt.scheduling.occupancy import Held
from placeopt.scheduling.placement_amounts import (
    gpu_milli_of,
    largest_share,
    requested_amounts,
)
from placeopt.scheduling.rules import Rule
from placeopt.scheduling.waiting_queue import JobQueue

QUIET_GAPS = 20
"""No more arrivals are expected when none came for this many times their mean distance, ..."""
QUIET_PART = 10
"""... nor for this part of the time over which they came: lulls of real traces are as long as an hour of a day."""
UNKNOWN_MS = 10**13
"""Run time of a job that states none: it comes after all others."""


Weight = Annotated[int, Field(ge=0, le=1_000_000)]


class Goals(Rule):
    """
    The highest urgency first; the weights of its goals.

    A goal is measured in jobs that end a second later, so weights of 1 count alike. What a second of delay of a job
    costs is the job's urgency, the sum over the goals.
    """

    completion: Weight = 1
    """Mean completion time: every job counts 1."""
    in_time: Weight = 1
    """Jobs that end by their expected completion time or deadline: a job counts 1 as long as it still can."""
    makespan: Weight = 1
    """
    Last end: a job that takes t times as long as all work that is left would on all GPUs, t >= 1, counts t^2 times as
    many as wait, once no more arrivals are expected.
    """
    fairness: Weight = 0
    """Mean slowdown with waiting: a job counts mean run time / its own."""


@dataclass(frozen=True)
class WaitingJob:
    """What the queue reads of a waiting job; times in ms."""

    job: Job
    number: int
    """In order of arrival in the queue."""
    shape: Hashable
    is_service: bool
    work_ms: int
    """The least GPU time of its options."""
    work_run_ms: int
    """Its run time in that option."""
    shortest_ms: int
    """Its shortest run time."""

    @property
    def due_ms(self) -> int | None:
        """When it should have ended."""
        due = self.job.expected_completion_ms
        return self.job.deadline_ms if due is None else due


class UrgencyQueue(JobQueue):
    """
    Services first, the highest priority and then the earliest first; then the highest urgency over GPU time.

    Over run time instead if ``until_end``: no job is stopped, so one that starts keeps its node from jobs that need all
    of it for as long as it runs, on however few GPUs.

    GPU time of what takes more of the cluster's CPU or memory than of its GPUs: that of the GPUs that go with it. The
    urgency by each goal is stated at `placeopt.scheduling.Goals`. A job is expected to end last if no more arrivals are
    expected and it takes longer than all jobs that are left would take on all GPUs.
    """

    def __init__(
        self, cluster: Cluster, goals: Goals, is_service: Callable[[str], bool], *, until_end: bool = False
    ) -> None:
        self._until_end = until_end
        self._total = cluster.amounts
        self._num_gpus = max(1, self._total[0] // 1000)
        self._is_service = is_service
        self._goals = goals
        self._waiting: dict[str, WaitingJob] = {}
        self._ends: dict[str, tuple[int, int]] = {}  # running job -> expected end in ms, GPU-milli
        self._seen: set[str] = set()
        self._arrived_ms = (0, 0)  # first and last arrival
        self._run_sum_ms = 0
        self._num_added = 0
        self._now_ms = 0
        self._drain_ms = self._urgencies = 0.0  # of the present round
        self.num_jobs = 0

    def add(self, job: Job, shape: Hashable) -> None:
        frugal = min(job.options, key=self.work_ms)
        entry = WaitingJob(
            job=job,
            number=self._num_added,
            shape=shape,
            is_service=self._is_service(job.id),
            work_ms=self.work_ms(frugal),
            work_run_ms=_run_ms(frugal),
            shortest_ms=min(map(_run_ms, job.options)),
        )
        if job.id not in self._seen and not entry.is_service:
            self._arrived_ms = (self._arrived_ms[0] if self._seen else job.arrival_ms, job.arrival_ms)
            self._seen.add(job.id)
            self._run_sum_ms += entry.work_run_ms
        self._waiting[job.id] = entry
        self._num_added += 1
        self.num_jobs += 1

    def take(self, job: str, shape: Hashable) -> None:
        del shape
        del self._waiting[job]
        self.num_jobs -= 1

    def started(self, held: Held) -> None:
        """Note when a job is expected to end."""
        job, placement = held.job, held.placement
        if not self._is_service(job.id):
            option = job.option(placement.option)
            self._ends[job.id] = self._now_ms + (option.run_time_ms or 0), gpu_milli_of(placement)

    def ended(self, held: Held, now_ms: Milliseconds) -> None:
        del now_ms
        self._ends.pop(held.job.id, None)

    def in_order(self, skipped: set[Hashable], now_ms: int) -> Iterator[tuple[str, Hashable]]:
        """Yield jobs and shapes, by the urgencies when the round begins."""
        self._now_ms = now_ms
        self._drain_ms = self._drain()
        self._urgencies = sum(map(self._urgency, self._waiting.values()))
        passed = set(skipped)
        for entry in sorted((entry for entry in self._waiting.values() if entry.shape not in passed), key=self._key):
            if entry.shape not in passed:
                yield entry.job.id, entry.shape
                if entry.job.id in self._waiting:
                    passed.add(entry.shape)

    def options_in_order(self, job: Job) -> list[str]:
        """
        Return the options of a waiting job, the one that costs the goals least first.

        An option costs the run time, times the job's urgency, and the time that its GPU time takes on all GPUs, times
        the urgencies of all other jobs that wait. If some options end in time, all others come after them.
        """
        entry, now = self._waiting[job.id], self._now_ms
        own = self._urgency(entry)
        due = entry.due_ms if self._goals.in_time else None

        def cost(option: Option) -> tuple[bool, float]:
            late = due is not None and now + entry.shortest_ms <= due < now + _run_ms(option)
            others = (self._urgencies - own) * self.work_ms(option) / self._num_gpus
            return late, own * _run_ms(option) + others

        return [option.id for option in sorted(job.options, key=cost)]

    def work_ms(self, option: Option) -> int:
        """Return the GPU time of an option with its fewest workers, in GPUs x ms; at least 1."""
        workers = option.fewest
        part = largest_share(requested_amounts(option, workers), self._total, of_nothing=0.0)
        return max(1, int(_run_ms(option) * part * self._num_gpus))

    def _drain(self) -> float:
        """Return how long all work that is left takes on all GPUs, in ms; infinite while arrivals are expected."""
        first, last = self._arrived_ms
        if self._now_ms - last < (last - first) * max(QUIET_GAPS / max(1, len(self._seen) - 1), 1 / QUIET_PART):
            return float("inf")
        work = sum(entry.work_ms for entry in self._waiting.values() if not entry.is_service)
        work += sum(max(0, end - self._now_ms) * milli // 1000 for end, milli in self._ends.values())
        return work / self._num_gpus

    def _urgency(self, entry: WaitingJob) -> float:
        goals = self._goals
        urgency = float(goals.completion)
        if entry.due_ms is not None and self._now_ms + entry.shortest_ms <= entry.due_ms:
            urgency += goals.in_time
        if entry.work_run_ms >= self._drain_ms:
            longer = entry.work_run_ms / max(1.0, self._drain_ms)  # squared: over GPU time, the longest comes first
            urgency += goals.makespan * len(self._waiting) * longer**2
        if goals.fairness:
            urgency += goals.fairness * self._run_sum_ms / (max(1, len(self._seen)) * entry.work_run_ms)
        return urgency

    def _key(self, entry: WaitingJob) -> tuple[float, ...]:
        if entry.is_service:
            return (0, -entry.job.priority, entry.job.arrival_ms, entry.number)
        cost_ms = entry.work_run_ms if self._until_end else entry.work_ms
        return (1, -self._urgency(entry) / cost_ms, entry.job.arrival_ms, entry.number)


def _run_ms(option: Option) -> int:
    return UNKNOWN_MS if option.run_time_ms is None else max(1, option.run_time_ms)
