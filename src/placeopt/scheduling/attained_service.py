"""Attained service: the GPU time that jobs have held, and its levels (LAS)."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from typing import Annotated

from pydantic import Field

from placeopt.model.base import Milliseconds
from placeopt.scheduling.occupancy import Follower, Held, Occupancy
from placeopt.scheduling.placement_amounts import gpu_milli_of
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.rules import Rule

GPU_SECOND = 1_000_000
"""In thousandths of a GPU x milliseconds."""


class Levels(Rule):
    """Least attained service, by levels."""

    levels_gpu_s: Annotated[tuple[Annotated[int, Field(ge=0, le=10**12)], ...], Field(min_length=1)]
    """Attained service in GPU-seconds from which on a job is one level higher; ascending."""

    def check(self, scheduling: Scheduling) -> None:
        if list(self.levels_gpu_s) != sorted(set(self.levels_gpu_s)):
            raise ValueError("levels_gpu_s: must ascend")
        if len({rule.levels_gpu_s for rule in scheduling.rules if isinstance(rule, Levels)}) > 1:
            raise ValueError("levels_gpu_s: order and preempts must state the same")


class StoppingLevels(Levels):
    """Jobs stop those of a higher level of attained service."""

    quantum_ms: Annotated[Milliseconds, Field(ge=1)] | None = None
    """A round is held at multiples of it while a job waits."""


def levels_of(scheduling: Scheduling) -> tuple[int, ...]:
    """Return the levels by which a policy orders or stops jobs; none: it does neither."""
    return next((rule.levels_gpu_s for rule in scheduling.rules if isinstance(rule, Levels)), ())


def quantum_of(scheduling: Scheduling) -> int | None:
    """Return at multiples of what a policy holds rounds while a job waits; None: it has no such."""
    stops = scheduling.preempts
    return stops.quantum_ms if isinstance(stops, StoppingLevels) else None


class AttainedService(Follower[Held]):
    """
    GPU time that jobs have held so far, whether they run or not, and the level that it makes.

    A job starts at level 0 and rises one level at each of the bounds. CPU jobs attain nothing. Least attained service
    with levels: Tiresias, Gu et al., NSDI'19, section 3.2.
    """

    def __init__(self, levels_gpu_s: tuple[int, ...], occupancy: Occupancy[Held]) -> None:
        self._levels = [level * GPU_SECOND for level in levels_gpu_s]
        self._running = occupancy.running
        self._attained: dict[str, int] = {}
        """Before the present start, for a job that runs."""
        self._rises_ms: list[int] = []  # a heap; those of jobs that have stopped stay in it until then

    @property
    def num_levels(self) -> int:
        """Number of levels."""
        return len(self._levels) + 1

    def started(self, held: Held) -> None:
        """Note when a job will rise a level."""
        gpu_milli, had = gpu_milli_of(held.placement), self._attained.get(held.job.id, 0)
        for bound in self._levels[bisect_right(self._levels, had) :] if gpu_milli else ():
            heapq.heappush(self._rises_ms, held.since_ms - (had - bound) // gpu_milli)

    def next_rise_ms(self, now_ms: int) -> int | None:
        """Return when a running job may next rise a level: until then all levels stay; None: at no time."""
        while self._rises_ms and self._rises_ms[0] <= now_ms:
            heapq.heappop(self._rises_ms)
        return self._rises_ms[0] if self._rises_ms else None

    def ended(self, held: Held, now_ms: Milliseconds) -> None:
        """Keep what a job has attained that leaves its place."""
        self._attained[held.job.id] = self._attained.get(held.job.id, 0) + _attained_in(held, now_ms)

    def attained(self, job: str, now_ms: int) -> int:
        """Return what a job has attained by now, in thousandths of a GPU x milliseconds."""
        held = self._running.get(job)
        return self._attained.get(job, 0) + (0 if held is None else _attained_in(held, now_ms))

    def level(self, job: str, now_ms: int) -> int:
        """Return the level of a job."""
        return bisect_right(self._levels, self.attained(job, now_ms))

    def learn_from(self, earlier: AttainedService, now_ms: int) -> None:
        """Take over what jobs attained as another one counted it; what runs counts on from now."""
        for job in (*earlier._attained, *earlier._running):
            held = self._running.get(job)
            self._attained[job] = earlier.attained(job, now_ms) - (0 if held is None else _attained_in(held, now_ms))

    def forget(self, job: str) -> None:
        """Drop a job that has ended."""
        self._attained.pop(job, None)


def _attained_in(held: Held, now_ms: Milliseconds) -> int:
    """Return what a job has attained in its present place, in thousandths of a GPU x milliseconds."""
    return (now_ms - held.since_ms) * gpu_milli_of(held.placement)
