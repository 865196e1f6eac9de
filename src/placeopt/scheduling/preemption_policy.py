"""What a rule of preemption is: what it reads, and what it answers; the rules are in `preemption_rules`."""

from __future__ import annotations

from abc import ABC, abstractmethod
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


class PreemptionRule(ABC):
    """
    Which running jobs a waiting job may stop; every rule derives from this class.

    ``stops_jobs``: whether it lets any job stop another. ``reads_expected_ends``: whether it reads when running jobs
    are expected to end. ``lacks_estimate`` returns whether a job lacks the estimate that the rule reads, so that the
    simulation warns; None: it reads none.
    """

    stops_jobs = True
    reads_expected_ends = False
    lacks_estimate: LacksEstimate | None = None

    def __init__(self, context: PreemptionContext) -> None:
        self.context = context

    def key(self, job: Job, now_ms: int) -> Hashable:
        """
        Return what the rule reads of a waiting job, beside its demand; jobs of equal keys are treated alike.

        Parameters
        ----------
        job
            A waiting job.
        now_ms
            Time of the simulation, in milliseconds.

        Returns
        -------
        hashable
            What the rule reads of the job.
        """
        del job, now_ms
        return None

    def constant_until(self, now_ms: int) -> int | None:
        """
        Return until when the rule gives the same answers as long as the same jobs run in the same placements.

        Until then a job for which no evictions made room is not tried again.

        Parameters
        ----------
        now_ms
            Time of the simulation, in milliseconds.

        Returns
        -------
        int or None
            A later time, the next millisecond by default; None: for good.
        """
        return now_ms + 1

    def may_stop_for(self, key: Hashable) -> bool:
        """
        Return whether a waiting job of this key might stop another.

        Parameters
        ----------
        key
            As `key` returns it.

        Returns
        -------
        bool
            Whether it might.
        """
        del key
        return True

    def may_claim(self, job: Job, option: Option) -> bool:
        """
        Return whether a waiting job might stop another in an option, whatever runs where.

        Parameters
        ----------
        job
            A waiting job.
        option
            One of its options.

        Returns
        -------
        bool
            Whether it might, whatever runs where.
        """
        del job, option
        return True

    def most_stops(self, request: Request) -> int | None:
        """
        Return how many jobs a waiting one may stop at once.

        Parameters
        ----------
        request
            The waiting job, its option and the time.

        Returns
        -------
        int or None
            The largest number; None, the default: any.
        """
        del request
        return None

    @abstractmethod
    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
        """
        Return the running jobs that may be stopped for a waiting one.

        Parameters
        ----------
        request
            The waiting job, its option and the time.
        candidates
            Running jobs, the last submitted first.

        Returns
        -------
        iterable of Candidate
            Those that may be stopped, the first to be stopped first.
        """
