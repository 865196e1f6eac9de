"""The rules of the field ``preempts`` of a policy: which running jobs a waiting job may stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from placeopt.model import Job
from placeopt.scheduling.attained_service import StoppingLevels
from placeopt.scheduling.placement_amounts import gpu_milli_of, requested_amounts
from placeopt.scheduling.preemption_policy import Candidate, PreemptionContext, PreemptionRule, Request
from placeopt.scheduling.rules import PREEMPTION_RULES
from placeopt.scheduling.waiting_queue import lacks_run_time

STOPS_MAX = 3
"""CPU jobs that a job with GPUs may stop at once while others wait; chosen on other draws than those that are shown."""


def kind_of(context: PreemptionContext, job: Job, now_ms: int) -> str:
    """Return the kind of a job, as the key of a rule."""
    del context, now_ms
    return job.kind


def stopped_by_inference(request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
    """Inference stops training and CPU jobs, last submitted first (SODA V-D)."""
    stops = ("training", "cpu") if request.job.kind == "inference" else ()
    return (candidate for candidate in candidates if candidate.job.kind in stops)


def _of_lower_priority(request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
    """Jobs stop those of lower priority, the lowest first, then last submitted."""
    return _with_more(candidates, lambda candidate: -candidate.job.priority, -request.job.priority)


def _of_higher_level(request: Request, candidates: list[Candidate]) -> Iterator[Candidate]:
    """Jobs stop those of a higher level of attained service, the highest first."""
    service, now_ms = request.context.service, request.now_ms
    for higher in range(service.num_levels - 1, service.level(request.job.id, now_ms), -1):
        yield from (candidate for candidate in candidates if service.level(candidate.job.id, now_ms) == higher)


def _with_longer_left(request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
    """Jobs stop those with more predicted run time left, the most first; one without a prediction stops none."""
    predicted = request.job.option(request.option.id).run_time_ms
    if predicted is None:
        return ()
    return _with_more(candidates, lambda candidate: _left_ms(request, candidate), predicted)


def _with_more_service_left(request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
    """The same with predicted GPU time, in GPU-milli x ms, less what a restart wastes of it."""
    predicted = request.job.option(request.option.id).run_time_ms
    if predicted is None:
        return ()
    return _with_more(
        candidates,
        lambda one: (_left_ms(request, one) - request.context.restart_ms) * gpu_milli_of(one.placement),
        predicted * requested_amounts(request.option, request.option.workers)[0],
    )


def _inference_then_service(request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
    """Inference stops training and CPU jobs, last submitted first; other jobs those with more GPU time left."""
    rule = stopped_by_inference if request.job.kind == "inference" else _with_more_service_left
    return rule(request, candidates)


def _gpu_jobs_first(request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
    """Inference stops training and CPU jobs, last submitted first; GPU jobs stop CPU jobs, of most cores first."""
    if request.job.kind == "inference":
        return stopped_by_inference(request, candidates)
    if not request.option.demand.gpus:
        return ()
    on_cores = [candidate for candidate in candidates if not candidate.demand.gpus]
    return _with_more(on_cores, lambda candidate: candidate.demand.cpu_millicores, -1)


def _few_while_cpu_jobs_wait(request: Request) -> int | None:
    """
    Return `STOPS_MAX` for jobs with GPUs while CPU jobs wait.

    Those that are stopped find no room elsewhere then, and the queue grows by their cores for as long as the job with
    GPUs runs. Ours, chosen on four weeks of one generator.
    """
    if request.job.kind == "inference" or not any(job.kind == "cpu" for job in request.context.waiting()):
        return None
    return STOPS_MAX


def _left_ms(request: Request, candidate: Candidate) -> int:
    """Return the predicted run time left of a running job."""
    return request.expected_ends.get(candidate.job.id, request.now_ms) - request.now_ms


def _with_more(candidates: list[Candidate], amount: Callable[[Candidate], int], least: int) -> list[Candidate]:
    """Return the candidates that have more of something than ``least``, the most first."""
    amounts = [(amount(candidate), candidate) for candidate in candidates]
    return [candidate for have, candidate in sorted(amounts, key=lambda entry: -entry[0]) if have > least]


INFERENCE = PreemptionRule(
    stopped_by_inference,
    key=kind_of,
    constant_until=lambda *_: None,
    may_stop_for=lambda kind: kind == "inference",
)
BY_RUN_TIME = PreemptionRule(
    _with_longer_left,
    reads_expected_ends=True,
    lacks_estimate=lacks_run_time,
    key=lambda _, job, __: job.options[0].run_time_ms,
)

PREEMPTION_RULES.register("never", PreemptionRule(lambda *_: (), stops_jobs=False))
PREEMPTION_RULES.register("inference", INFERENCE)
PREEMPTION_RULES.register(
    "priority",
    PreemptionRule(
        _of_lower_priority,
        key=lambda _, job, __: job.priority,
        constant_until=lambda *_: None,
    ),
)
PREEMPTION_RULES.register(
    "las",
    PreemptionRule(
        _of_higher_level,
        key=lambda context, job, now_ms: context.service.level(job.id, now_ms),
        constant_until=lambda context, now_ms: context.service.next_rise_ms(now_ms),
    ),
    StoppingLevels,
)
PREEMPTION_RULES.register("srtf", BY_RUN_TIME)
PREEMPTION_RULES.register("srsf", replace(BY_RUN_TIME, victims=_with_more_service_left))
PREEMPTION_RULES.register(
    "priced",
    replace(
        BY_RUN_TIME,
        victims=_inference_then_service,
        key=lambda _, job, __: (job.kind, job.options[0].run_time_ms),
    ),
)
PREEMPTION_RULES.register(
    "host",
    replace(
        INFERENCE,
        victims=_gpu_jobs_first,
        may_stop_for=lambda kind: kind != "cpu",
        most_stops=_few_while_cpu_jobs_wait,
    ),
)
