"""The rules of the field ``preempts`` of a policy: which running jobs a waiting job may stop."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator

from placeopt.model import Job, Option
from placeopt.scheduling.attained_service import StoppingLevels
from placeopt.scheduling.placement_amounts import (
    gpu_milli_of,
    requested_amounts,
)
from placeopt.scheduling.preemption_policy import Candidate, PreemptionRule, Request
from placeopt.scheduling.rules import PREEMPTION_RULES
from placeopt.scheduling.waiting_queue import lacks_run_time


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
        return stopped_by_inference(candidates) if request.job.kind == "inference" else []


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
        predicted = request.job.option(request.option.id).run_time_ms
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


STOPS_MAX = 3
"""CPU jobs that a job with GPUs may stop at once while others wait; chosen on other draws than those that are shown."""


class GpuJobsFirst(InferenceFirst):
    """
    Inference stops training and CPU jobs, last submitted first; jobs with GPUs stop CPU jobs, of most cores first.

    While CPU jobs wait, those that are stopped find no room elsewhere, and the queue grows by their cores for as long
    as the job with GPUs runs: then it may stop `STOPS_MAX` of them. Ours, chosen on four
    weeks of one generator.
    """

    def may_stop_for(self, key: Hashable) -> bool:
        return key != "cpu"

    def most_stops(self, request: Request) -> int | None:
        """Return the limit for jobs with GPUs while CPU jobs wait."""
        if request.job.kind == "inference" or not any(job.kind == "cpu" for job in self.context.waiting()):
            return None
        return STOPS_MAX

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
        if request.job.kind == "inference":
            return stopped_by_inference(candidates)
        if not request.option.demand.gpus:
            return []
        return _with_more(
            [candidate for candidate in candidates if not candidate.demand.gpus],
            lambda candidate: candidate.demand.cpu_millicores,
            -1,
        )


class InferenceThenService(MoreServiceLeft):
    """Inference stops training and CPU jobs, last submitted first; other jobs those with more GPU time left."""

    def key(self, job: Job, now_ms: int) -> Hashable:
        return job.kind, super().key(job, now_ms)

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
        if request.job.kind == "inference":
            return stopped_by_inference(candidates)
        return super().stoppable(request, candidates)


def stopped_by_inference(candidates: list[Candidate]) -> list[Candidate]:
    """Return the candidates that inference stops."""
    return [candidate for candidate in candidates if candidate.job.kind in ("training", "cpu")]


def _with_more(candidates: list[Candidate], amount: Callable[[Candidate], int], least: int) -> list[Candidate]:
    """Return the candidates that have more of something than ``least``, the most first."""
    amounts = [(amount(candidate), candidate) for candidate in candidates]
    return [candidate for have, candidate in sorted(amounts, key=lambda entry: -entry[0]) if have > least]


PREEMPTION_RULES.register("never", NoPreemption)
PREEMPTION_RULES.register("inference", InferenceFirst)
PREEMPTION_RULES.register("priority", LowerPriority)
PREEMPTION_RULES.register("las", HigherServiceLevel, StoppingLevels)
PREEMPTION_RULES.register("srtf", LongerRunTimeLeft)
PREEMPTION_RULES.register("srsf", MoreServiceLeft)
PREEMPTION_RULES.register("priced", InferenceThenService)
PREEMPTION_RULES.register("host", GpuJobsFirst)
