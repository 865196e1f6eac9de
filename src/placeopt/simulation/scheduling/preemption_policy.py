"""Which running jobs a waiting job may stop: the field ``preempts`` of a policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from placeopt.model import Demand, Job, Option, Placement
from placeopt.model.scheduling import PREEMPTION_NAMES
from placeopt.simulation.scheduling.attained_service import AttainedService
from placeopt.simulation.scheduling.drf_queue import JobArrayQueue
from placeopt.simulation.scheduling.free_resources import FreeResources
from placeopt.simulation.scheduling.placement_amounts import (
    Amounts,
    amounts_of,
    gpu_milli_of,
    requested_amounts,
)
from placeopt.simulation.scheduling.rule_registry import RuleRegistry
from placeopt.simulation.scheduling.waiting_queue import JobQueue, LacksEstimate, lacks_run_time


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


class NoPreemption(PreemptionRule):
    """No job stops another."""

    stops_jobs = False

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
        del request, candidates
        return ()


class InferenceFirst(PreemptionRule):
    """Inference stops training and CPU jobs, last submitted first (SODA V-D)."""

    def key(self, job: Job, now_ms: int) -> Hashable:
        del now_ms
        return job.kind

    def constant_until(self, now_ms: int) -> int | None:
        del now_ms
        return None

    def may_stop_for(self, key: Hashable) -> bool:
        return key == "inference"

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
        return _stopped_by_inference(candidates) if request.job.kind == "inference" else []


class LowerPriority(PreemptionRule):
    """Jobs stop those of lower priority, the lowest first, then last submitted."""

    def key(self, job: Job, now_ms: int) -> Hashable:
        del now_ms
        return job.priority

    def constant_until(self, now_ms: int) -> int | None:
        del now_ms
        return None

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
        return _with_more(candidates, lambda candidate: -candidate.job.priority, -request.job.priority)


class HigherServiceLevel(PreemptionRule):
    """Jobs stop those of a higher level of attained service, the highest first."""

    def key(self, job: Job, now_ms: int) -> Hashable:
        return self.context.service.level(job.id, now_ms)

    def constant_until(self, now_ms: int) -> int | None:
        """Return when a running job may next rise a level."""
        return self.context.service.next_rise_ms(now_ms)

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterator[Candidate]:
        level, now_ms = self.context.service.level, request.now_ms
        for higher in range(self.context.service.num_levels - 1, level(request.job.id, now_ms), -1):
            yield from (candidate for candidate in candidates if level(candidate.job.id, now_ms) == higher)


class LongerRunTimeLeft(PreemptionRule):
    """Jobs stop those with more predicted run time left, the most first."""

    reads_expected_ends = True
    lacks_estimate = staticmethod(lacks_run_time)

    def key(self, job: Job, now_ms: int) -> Hashable:
        """Return the predicted run time of the first option."""
        del now_ms
        return job.options[0].run_time_ms

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
        """Return the jobs with more left; none for a job without a prediction."""
        predicted = next(option.run_time_ms for option in request.job.options if option.id == request.option.id)
        if predicted is None:
            return []
        return _with_more(
            candidates, lambda candidate: self.left(request, candidate), self.requested(predicted, request.option)
        )

    def left(self, request: Request, candidate: Candidate) -> int:
        """Return the predicted run time left of a running job, in ms."""
        return request.expected_ends.get(candidate.job.id, request.now_ms) - request.now_ms

    def requested(self, run_time_ms: int, option: Option) -> int:
        """Return what ``left`` is compared with."""
        del option
        return run_time_ms


class MoreServiceLeft(LongerRunTimeLeft):
    """The same with predicted GPU time, less what a restart wastes of it."""

    def left(self, request: Request, candidate: Candidate) -> int:
        """Return the predicted GPU time left of a running job, in GPU-milli x ms."""
        return (super().left(request, candidate) - self.context.restart_ms) * gpu_milli_of(candidate.placement)

    def requested(self, run_time_ms: int, option: Option) -> int:
        """Return the predicted GPU time."""
        return run_time_ms * requested_amounts(option, option.workers)[0]


class GpuJobsFirst(InferenceFirst):
    """Inference stops training and CPU jobs, and jobs with GPUs stop CPU jobs; last submitted first."""

    def may_stop_for(self, key: Hashable) -> bool:
        return key != "cpu"

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
        if request.job.kind == "inference":
            return _stopped_by_inference(candidates)
        if not request.option.demand.gpus:
            return []
        return [candidate for candidate in candidates if not candidate.demand.gpus]


class InferenceThenService(MoreServiceLeft):
    """Inference stops training and CPU jobs, last submitted first; other jobs those with more GPU time left."""

    def key(self, job: Job, now_ms: int) -> Hashable:
        return job.kind, super().key(job, now_ms)

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
        if request.job.kind == "inference":
            return _stopped_by_inference(candidates)
        return super().stoppable(request, candidates)


class BeyondPart(PreemptionRule):
    """A job that stays within the part of its array stops what other arrays hold beyond theirs (SODA V-C)."""

    def may_claim(self, job: Job, option: Option) -> bool:
        """Return whether the job's array would stay within its part, and another array exceeds its own."""
        queue = self.context.queue
        if not isinstance(queue, JobArrayQueue):
            return False
        claimant = queue.user(job)
        if queue.exceeds_part(claimant, requested_amounts(option, option.workers)):
            return False
        return any(queue.exceeds_part(array) for array in queue.arrays if array != claimant)

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterator[Candidate]:
        """Yield jobs of other arrays as long as those exceed their part."""
        queue = self.context.queue
        if not isinstance(queue, JobArrayQueue) or not BeyondPart.may_claim(self, request.job, request.option):
            return
        claimant = queue.user(request.job)
        stopped: dict[str | None, Amounts] = {}
        for candidate in candidates:
            array = queue.user(candidate.job)
            less = stopped.get(array, (0, 0, 0))
            if array == claimant or not queue.exceeds_part(array, less):
                continue
            held = amounts_of(candidate.placement)
            stopped[array] = (less[0] - held[0], less[1] - held[1], less[2] - held[2])
            yield candidate


class InferenceThenParts(BeyondPart):
    """Inference stops training and CPU jobs; other jobs stop what arrays hold beyond their parts (SODA V)."""

    def __init__(self, context: PreemptionContext) -> None:
        super().__init__(context)
        self._inference = InferenceFirst(context)

    def key(self, job: Job, now_ms: int) -> Hashable:
        del now_ms
        return job.kind

    def may_claim(self, job: Job, option: Option) -> bool:
        """Return whether either rule lets the job stop another."""
        return job.kind == "inference" or super().may_claim(job, option)

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterator[Candidate]:
        """Yield the jobs of the first rule that names any."""
        inference = self._inference.stoppable(request, candidates)
        yield from inference or super().stoppable(request, candidates)


class BeyondNodePart(PreemptionRule):
    """
    Jobs with GPUs stop what borrows of their arrays on a node (SODA V-C), last submitted first.

    That is what CPU jobs hold beyond their part of a node's cores and, for large jobs, small ones on their nodes.
    """

    def key(self, job: Job, now_ms: int) -> Hashable:
        del now_ms
        return job.kind

    def may_stop_for(self, key: Hashable) -> bool:
        return key != "cpu"

    def may_claim(self, job: Job, option: Option) -> bool:
        """Return whether the job has GPUs."""
        del job
        return option.demand.gpus > 0

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
        """Return CPU jobs beyond their part, then small jobs where they are not at home."""
        queue = self.context.queue
        if not isinstance(queue, JobArrayQueue) or queue.nodes is None or not request.option.demand.gpus:
            return []
        held = [(candidate.job, candidate.placement) for candidate in candidates]
        borrowing = queue.nodes.borrowing(held, request.job, request.option, self.context.resources)
        return [candidates[number] for number in borrowing]


class InferenceThenNodeParts(BeyondNodePart):
    """Inference stops training and CPU jobs; other jobs with GPUs what borrows of their arrays on a node (SODA V)."""

    def may_claim(self, job: Job, option: Option) -> bool:
        """Return whether either rule lets the job stop another."""
        return job.kind == "inference" or super().may_claim(job, option)

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
        if request.job.kind == "inference":
            return _stopped_by_inference(candidates)
        return super().stoppable(request, candidates)


def _stopped_by_inference(candidates: list[Candidate]) -> list[Candidate]:
    """Return the candidates that inference stops."""
    return [candidate for candidate in candidates if candidate.job.kind in ("training", "cpu")]


def _with_more(candidates: list[Candidate], amount: Callable[[Candidate], int], least: int) -> list[Candidate]:
    """Return the candidates that have more of something than ``least``, the most first."""
    amounts = [(amount(candidate), candidate) for candidate in candidates]
    return [candidate for have, candidate in sorted(amounts, key=lambda entry: -entry[0]) if have > least]


PREEMPTION_RULES: RuleRegistry[type[PreemptionRule]] = RuleRegistry(
    PREEMPTION_NAMES,
    {
        "never": NoPreemption,
        "inference": InferenceFirst,
        "priority": LowerPriority,
        "las": HigherServiceLevel,
        "srtf": LongerRunTimeLeft,
        "srsf": MoreServiceLeft,
        "priced": InferenceThenService,
        "host": GpuJobsFirst,
        "capacity": BeyondPart,
        "arrays": InferenceThenParts,
        "node_capacity": BeyondNodePart,
        "node_arrays": InferenceThenNodeParts,
    },
)
"""Name -> class of the rule."""
