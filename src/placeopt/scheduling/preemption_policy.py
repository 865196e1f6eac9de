"""What a rule of preemption is: what it reads, and what it answers; the rules are in `preemption_rules`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from placeopt.model import Demand, Job, Option, Placement
from placeopt.scheduling.attained_service import AttainedService
from placeopt.scheduling.free_resources import FreeResources
from placeopt.scheduling.waiting_queue import JobQueue, LacksEstimate


@dataclass(frozen=True)
class Candidate:
    """A running job that may be evicted."""

    job: Job
    placement: Placement
    option: Option
    """The one that it runs in."""
    may_stop: bool = True
    """False: it may only lose workers."""

    @property
    def demand(self) -> Demand:
        """What one of its workers needs."""
        return self.option.demand


@dataclass(frozen=True)
class PreemptionContext:
    """What a rule can read, apart from the jobs."""

    restart_ms: int
    """How long a stopped job takes to start again."""
    service: AttainedService
    queue: JobQueue
    resources: FreeResources
    waiting: Callable[[], Iterable[Job]]
    """Return the jobs that wait."""


@dataclass(frozen=True)
class Request:
    """A waiting job in one of its options, at a moment."""

    job: Job
    option: Option
    now_ms: int
    expected_ends: Mapping[str, int]
    """Of running jobs; empty unless the rule reads it."""
    context: PreemptionContext


@dataclass(frozen=True)
class PreemptionRule:
    """
    Which running jobs a waiting job may stop: a function, and what is known of its answers before it is asked.

    All but ``victims`` spare calls of it, or say what it reads.
    """

    victims: Callable[[Request, list[Candidate]], Iterable[Candidate]]
    """Return the running jobs that may be stopped, the first to be stopped first; given the last submitted first."""
    stops_jobs: bool = True
    """Whether any job may stop another."""
    reads_expected_ends: bool = False
    """Whether it reads when running jobs are expected to end."""
    lacks_estimate: LacksEstimate | None = None
    """Return whether a job lacks the estimate that is read, so that the simulation warns; None: none is read."""
    key: Callable[[PreemptionContext, Job, int], Hashable] = lambda *_: None
    """Return what it reads of a waiting job at a time, beside its demand; jobs of equal keys are treated alike."""
    constant_until: Callable[[PreemptionContext, int], int | None] = lambda _, now_ms: now_ms + 1
    """
    Return the time, later than a given one, until which the answers stay as long as the same jobs run in the same
    placements; None: for good. Until then a job for which no evictions made room is not tried again.
    """
    may_stop_for: Callable[[Hashable], bool] = lambda _: True
    """Return whether a waiting job of a key might stop another."""
    may_claim: Callable[[PreemptionContext, Job, Option], bool] = lambda *_: True
    """Return whether a waiting job might stop another in an option, whatever runs where."""
    most_stops: Callable[[Request], int | None] = lambda _: None
    """Return how many jobs a waiting one may stop at once; None: any number."""
