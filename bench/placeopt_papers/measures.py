"""Measures of a simulation, by the names that figures and tables use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from placeopt.metrics import Distribution, Occupancy
from placeopt.simulation import History, JobHistory, Summary, occupancy_between
from placeopt_papers.job_measures import (
    cores_changed_percent,
    cpu_held_percent,
    jobs_that_end,
    late_percent,
    longest_training_min,
    mean,
    most_service_gpus,
    run_ms,
    solo_over_placed,
    time_with_workers_percent,
    training_min,
    training_within_percent,
    wait_deviation_min,
    waiting_percent,
    worst_user_wait_h,
)

PERCENTILES = 101
REPLICAS_WANTED = ((1, 4), (5, 8), (9, 12))
"""Classes of load by the replicas that it wants, in which late requests are counted."""
STRIPS = 100
ALLOCATED_AT = (100, 130)
"""Demand of the jobs arrived one at a time, in percent of the GPUs, at which allocation is measured."""


@dataclass(frozen=True)
class Measure:
    """A measure: title, unit, whether more is better, and its value for a simulation."""

    title: str
    unit: str
    more: bool
    of: Callable[[Summary, History], float | None]


def _run_s(history: History) -> float | None:
    """Return the mean time from start to end, in seconds."""
    return mean(
        [(_end(job) - job.start_ms) / 1000 for job in jobs_that_end(history) if job.start_ms is not None and job.end_ms]
    )


def _coming(history: History) -> Occupancy:
    """Return the occupancy from the first to the last arrival, without the queue drained afterwards."""
    came = [job.arrival_ms for job in jobs_that_end(history)]
    return occupancy_between(history, min(came, default=0), max(came, default=0))


def _normalised(history: History) -> float | None:
    """
    Return the mean of (end - arrival) / run time alone in the first option.

    GENIE eq. 15 and 16 use the wall time of a task; read with its waiting, since the text speaks of long waits.
    """
    jobs = {job.job: job for job in jobs_that_end(history) if job.end_ms is not None}
    return mean(
        [
            (_end(jobs[arrival.job.id]) - arrival.job.arrival_ms) / arrival.actual_ms(arrival.job.options[0].id)
            for arrival in history.scenario.arrivals
            if arrival.job.id in jobs
        ]
    )


def _gpu_at_once(history: History) -> float | None:
    """Return the percentage of GPU jobs that started on arrival or in the first step after."""
    step = history.scenario.physics.step_ms or 0
    starts = [(job.arrival_ms, job.start_ms) for job in jobs_that_end(history) if job.gpu_milli]
    at_once = sum(start is not None and start - arrival <= step for arrival, start in starts)
    return 100 * at_once / len(starts) if starts else None


def _first_slowdown(history: History) -> float | None:
    """Return the slowdown of the scenario's first job."""
    job = next(iter(jobs_that_end(history)), None)
    if job is None or job.start_ms is None or job.end_ms is None:
        return None
    return job.slowdown


def _fourth_run_s(history: History) -> float | None:
    """Return the seconds from start to end of the scenario's fourth job: job 3 of SC'17's table 1."""
    jobs = jobs_that_end(history)
    return run_ms(jobs[3]) / 1000 if len(jobs) > 3 and jobs[3].end_ms is not None else None


def _mean_of(spread: Distribution | None) -> float | None:
    return None if spread is None else spread.mean


def _percent(part: float | None) -> float | None:
    return None if part is None else 100 * part


def _late_between(least: int, most: int, _: Summary, history: History) -> float | None:
    return late_percent(history, least, most)


MEASURES: dict[str, Measure] = {
    "last_end_s": Measure("last end", "s", False, lambda s, _: s.last_end_s),
    "makespan_min": Measure("makespan", "min", False, lambda s, _: None if s.makespan_s is None else s.makespan_s / 60),
    "makespan_h": Measure("makespan", "h", False, lambda s, _: None if s.makespan_s is None else s.makespan_s / 3600),
    "completion_s": Measure("completion", "s", False, lambda s, _: _mean_of(s.completion_s)),
    "run_s": Measure("run time", "s", False, lambda _, h: _run_s(h)),
    "training_min": Measure("training", "min", False, lambda _, h: training_min(h, run_ms)),
    "training_wait_min": Measure(
        "training, wait", "min", False, lambda _, h: training_min(h, lambda job: (job.start_ms or 0) - job.arrival_ms)
    ),
    "training_all_min": Measure(
        "training with wait", "min", False, lambda _, h: training_min(h, lambda job: job.completion_ms or 0)
    ),
    "training_longest_min": Measure("longest training", "min", False, lambda _, h: longest_training_min(h)),
    "training_in_5_percent": Measure("training <= 5 min", "%", True, lambda _, h: training_within_percent(h, 5)),
    "one_worker_percent": Measure("time with 1 worker", "%", False, lambda _, h: time_with_workers_percent(h, (1,))),
    "two_workers_percent": Measure("time with 2 workers", "%", True, lambda _, h: time_with_workers_percent(h, (2,))),
    "more_workers_percent": Measure(
        "time with 3 or 4 workers", "%", True, lambda _, h: time_with_workers_percent(h, (3, 4))
    ),
    "service_gpus": Measure("GPUs of inference by minute 7", "", True, lambda _, h: most_service_gpus(h, 7)),
    "wait_s": Measure("wait", "s", False, lambda s, _: _mean_of(s.wait_s)),
    "wait_min": Measure("wait", "min", False, lambda s, _: None if s.wait_s is None else s.wait_s.mean / 60),
    "wait_median_min": Measure(
        "median wait", "min", False, lambda s, _: None if s.wait_s is None else s.wait_s.median / 60
    ),
    "wait_deviation_min": Measure("deviation of waits", "min", False, lambda _, h: wait_deviation_min(h)),
    "slowdown": Measure("slowdown", "", False, lambda s, _: _mean_of(s.slowdown)),
    "solo_over_placed": Measure("mean of solo / placed time", "", True, lambda _, h: solo_over_placed(h)),
    "slowdown_with_wait": Measure("slowdown with wait", "", False, lambda s, _: _mean_of(s.slowdown_with_wait)),
    "fourth_run_s": Measure("run time of the fourth job", "s", False, lambda _, h: _fourth_run_s(h)),
    "first_slowdown": Measure("slowdown of the first job", "", False, lambda _, h: _first_slowdown(h)),
    "slowed": Measure("jobs slowed > 10 %", "", False, lambda s, _: float(s.slowed)),
    "delayed": Measure("jobs slowed or stopped > 10 %", "", False, lambda s, _: float(s.delayed)),
    "in_time_percent": Measure("in time", "%", True, lambda s, _: _percent(s.in_time)),
    "normalised": Measure("latency / that on 1 GPU", "", False, lambda _, h: _normalised(h)),
    "utilisation_percent": Measure("GPU utilisation", "%", True, lambda s, _: 100 * s.occupancy.utilisation),
    "utilisation_of_active_percent": Measure(
        "utilisation of active GPUs", "%", True, lambda _, h: 100 * _coming(h).utilisation_of_active
    ),
    "active_percent": Measure("GPUs active", "%", True, lambda _, h: 100 * _coming(h).active_rate),
    "at_once_percent": Measure("start at once", "%", True, lambda s, _: _percent(s.started_at_once)),
    "gpu_at_once_percent": Measure("GPU jobs at once", "%", True, lambda _, h: _gpu_at_once(h)),
    "gpu_over_1min_percent": Measure(
        "GPU jobs > 1 min", "%", False, lambda _, h: waiting_percent(h, gpu=True, longer_than_s=60)
    ),
    "gpu_over_1h_percent": Measure(
        "GPU jobs > 1 h", "%", False, lambda _, h: waiting_percent(h, gpu=True, longer_than_s=3600)
    ),
    "cpu_over_10s_percent": Measure(
        "CPU jobs > 10 s", "%", False, lambda _, h: waiting_percent(h, gpu=False, longer_than_s=10)
    ),
    "cpu_over_1min_percent": Measure(
        "CPU jobs > 1 min", "%", False, lambda _, h: waiting_percent(h, gpu=False, longer_than_s=60)
    ),
    "cpu_held_percent": Measure("CPU cores held", "%", True, lambda _, h: cpu_held_percent(h)),
    "more_cores_percent": Measure(
        "jobs with 1 to 5 more cores", "%", True, lambda _, h: cores_changed_percent(h, 1, 5)
    ),
    "fewer_cores_percent": Measure(
        "jobs with 1 to 20 fewer cores", "%", True, lambda _, h: cores_changed_percent(h, -20, -1)
    ),
    "user_wait_h": Measure("99th percentile of a user's waits", "h", False, lambda _, h: worst_user_wait_h(h)),
    "late_percent": Measure(
        "requests late", "%", False, lambda s, _: None if s.serving is None else 100 * s.serving.late_share
    ),
    **{
        f"late_{least}_{most}_percent": Measure(
            f"late at {least} to {most} replicas", "%", False, partial(_late_between, least, most)
        )
        for least, most in REPLICAS_WANTED
    },
    "decision_cpu_s": Measure(
        "CPU time of a round", "s", False, lambda s, _: s.decision_cpu_s / s.rounds if s.rounds else None
    ),
    "decision_percent": Measure(
        "CPU time of decisions / makespan",
        "%",
        False,
        lambda s, _: 100 * s.decision_cpu_s / s.makespan_s if s.makespan_s else None,
    ),
    **{
        f"allocated_{at}_percent": Measure(f"GPUs allocated at {at} %", "%", True, lambda *_: None)
        for at in ALLOCATED_AT
    },
}


def allocated(by_arrived: Mapping[int, float]) -> dict[str, float | None]:
    """Return the measures of jobs placed one at a time: percent of the GPUs allocated, by percent that arrived."""
    return {f"allocated_{at}_percent": by_arrived.get(at) for at in ALLOCATED_AT}


OVER_ALL_JOBS = (
    *("last_end_s", "makespan_min", "makespan_h", "completion_s", "run_s", "training_min", "training_wait_min"),
    *("training_all_min", "training_longest_min", "training_in_5_percent", "user_wait_h", "decision_percent"),
    *(
        "wait_s",
        "wait_min",
        "wait_median_min",
        "wait_deviation_min",
        "slowdown",
        "solo_over_placed",
        "slowdown_with_wait",
        "slowed",
        "delayed",
        "normalised",
    ),
)
"""Measures that are None if a job never ends: over the other jobs they would reward policies that leave jobs out."""


def measure_all(summary: Summary, history: History) -> dict[str, float | None]:
    """Return all measures of a simulation; those of ``OVER_ALL_JOBS`` are None if a job never ends."""
    return {
        name: None if summary.stranded and name in OVER_ALL_JOBS else measure.of(summary, history)
        for name, measure in MEASURES.items()
    }


def percentiles(values: list[float]) -> tuple[float, ...]:
    """Return percentiles 0 to 100, rounded to four significant digits; empty if there are no values."""
    if not values:
        return ()
    quantiles = np.percentile(np.asarray(values), np.linspace(0, 100, PERCENTILES))
    return tuple(float(f"{value:.4g}") for value in quantiles)


def waits_s(history: History) -> list[float]:
    """Return the waiting time of every job that started."""
    return [(job.start_ms - job.arrival_ms) / 1000 for job in jobs_that_end(history) if job.start_ms is not None]


def slowdowns(history: History) -> list[float]:
    """Return (end - arrival) / run time alone of every job that ended."""
    return [job.slowdown_with_wait for job in jobs_that_end(history) if job.slowdown_with_wait is not None]


def held_over_time(history: History, gpus: int) -> tuple[tuple[float, float], ...]:
    """
    Return the part of the GPUs' time that was granted in each of ``STRIPS`` strips from first arrival to last end.

    Above 1 where jobs share GPUs.
    """
    done = [job for job in history.jobs if job.start_ms is not None and job.end_ms is not None]
    if not done or not gpus:
        return ()
    first, last = min(job.arrival_ms for job in history.jobs), max(_end(job) for job in done)
    edges = np.linspace(first, last, STRIPS + 1)
    width = (last - first) / STRIPS
    if width <= 0:
        return ()
    granted = np.zeros(STRIPS)
    for job in done:
        for span in job.spans:
            end = _end(job) if span.end_ms is None else span.end_ms
            inside = np.minimum(edges[1:], end) - np.maximum(edges[:-1], span.start_ms)
            milli = sum(sum(assignment.gpus.values()) for assignment in span.placement.assignments)
            granted += np.maximum(inside, 0.0) * milli / 1000
    parts = granted / (width * gpus)
    return tuple(
        (float(f"{(edge - first) / 3_600_000:.5g}"), float(f"{part:.4g}"))
        for edge, part in zip(edges[1:].tolist(), parts.tolist(), strict=True)
    )


def _end(job: JobHistory) -> int:
    return job.end_ms or 0
