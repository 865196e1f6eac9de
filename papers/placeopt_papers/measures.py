"""Measures of a simulation, by the names that figures and tables use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from placeopt.simulation import Distribution, History, JobColumns, JobHistory, Occupancy, Summary, occupancy_between
from placeopt_papers import job_measures as jobs

REPLICAS_WANTED = ((1, 4), (5, 8), (9, 12))
"""Classes of load by the replicas that it wants, in which late requests are counted."""
SLOW_MS = ((128, 512), (1024, 1_000_000))
"""Classes of DynamoML's figure 9 that its text names: most answers of one system, some of another."""
ALLOCATED_AT = (100, 130)
"""Demand of the jobs arrived one at a time, in percent of the GPUs, at which allocation is measured."""


@dataclass(frozen=True)
class Measure:
    """
    A measure: title, unit, whether more is better, and its value for a simulation.

    ``of_all``: whether it is None if a job never ends; over the other jobs it would favour who leaves jobs out.
    """

    title: str
    unit: str
    more: bool
    of: Callable[[Summary, History], float | None]
    of_all: bool = False


def _over(of: Callable[[Summary], float | None], divisor: float = 1.0) -> Callable[[Summary, History], float | None]:
    """Return a figure of the summary in another unit."""

    def measured(summary: Summary, history: History) -> float | None:
        del history
        value = of(summary)
        return None if value is None else value / divisor

    return measured


def _jobs(
    of: Callable[..., float | None], *words: object, **named: object
) -> Callable[[Summary, History], float | None]:
    """Return a measure of the history."""
    return lambda _, history: of(history, *words, **named)


def _mean_of(name: str) -> Callable[[Summary], float | None]:
    def mean(summary: Summary) -> float | None:
        spread: Distribution | None = getattr(summary, name)
        return None if spread is None else spread.mean

    return mean


def _wait(job: JobHistory) -> int:
    return (job.start_ms or 0) - job.arrival_ms


def _run_s(history: History) -> float | None:
    """Return the mean time from start to end, in seconds."""
    return jobs.mean(
        [jobs.run_ms(job) / 1000 for job in jobs.jobs_that_end(history) if job.start_ms is not None and job.end_ms]
    )


def _coming(history: History, of: Callable[[Occupancy], float]) -> float:
    """Return a percentage of the occupancy from the first to the last arrival, without the queue drained afterwards."""
    came = [job.arrival_ms for job in jobs.jobs_that_end(history)]
    return 100 * of(occupancy_between(history, min(came, default=0), max(came, default=0)))


def _normalised(history: History) -> float | None:
    """
    Return the mean of (end - arrival) / run time alone in the first option.

    GENIE eq. 15 and 16 use the wall time of a task; read with its waiting, since the text speaks of long waits.
    """
    ended = {job.job: job.end_ms for job in jobs.jobs_that_end(history) if job.end_ms is not None}
    return jobs.mean(
        [
            (ended[arrival.job.id] - arrival.job.arrival_ms) / arrival.actual_ms(arrival.job.options[0].id)
            for arrival in history.scenario.arrivals
            if arrival.job.id in ended
        ]
    )


def _gpu_at_once(history: History) -> float | None:
    """Return the percentage of GPU jobs that started on arrival or in the first step after."""
    step = history.scenario.physics.step_ms or 0
    of_gpus = [job for job in jobs.jobs_that_end(history) if job.gpu_milli]
    return jobs.percent([job.start_ms is not None and job.start_ms - job.arrival_ms <= step for job in of_gpus])


def _first_slowdown(history: History) -> float | None:
    """Return the slowdown of the scenario's first job."""
    table = JobColumns.of(history)
    return float(table.slowdown[0]) if len(table) and np.isfinite(table.run[0]) else None


def _fourth_run_s(history: History) -> float | None:
    """Return the seconds from start to end of the scenario's fourth job: job 3 of SC'17's table 1."""
    found = jobs.jobs_that_end(history)
    return jobs.run_ms(found[3]) / 1000 if len(found) > 3 and found[3].end_ms is not None else None


MEASURES: dict[str, Measure] = {
    "last_end_s": Measure("last end", "s", False, _over(lambda s: s.last_end_s), of_all=True),
    "makespan_min": Measure("makespan", "min", False, _over(lambda s: s.makespan_s, 60), of_all=True),
    "makespan_h": Measure("makespan", "h", False, _over(lambda s: s.makespan_s, 3600), of_all=True),
    "completion_s": Measure("completion", "s", False, _over(_mean_of("completion_s")), of_all=True),
    "run_s": Measure("run time", "s", False, _jobs(_run_s), of_all=True),
    "training_min": Measure("training", "min", False, _jobs(jobs.training_min, jobs.run_ms), of_all=True),
    "training_wait_min": Measure("training, wait", "min", False, _jobs(jobs.training_min, _wait), of_all=True),
    "training_all_min": Measure(
        "training with wait",
        "min",
        False,
        _jobs(jobs.training_min, lambda job: (job.end_ms or 0) - job.arrival_ms),
        of_all=True,
    ),
    "training_longest_min": Measure("longest training", "min", False, _jobs(jobs.longest_training_min), of_all=True),
    "training_in_5_percent": Measure(
        "training <= 5 min", "%", True, _jobs(jobs.training_within_percent, 5), of_all=True
    ),
    "one_worker_percent": Measure("time with 1 worker", "%", False, _jobs(jobs.time_with_workers_percent, (1,))),
    "two_workers_percent": Measure("time with 2 workers", "%", True, _jobs(jobs.time_with_workers_percent, (2,))),
    "more_workers_percent": Measure(
        "time with 3 or 4 workers", "%", True, _jobs(jobs.time_with_workers_percent, (3, 4))
    ),
    "service_gpus": Measure("GPUs of inference by minute 7", "", True, _jobs(jobs.most_service_gpus, 7)),
    "wait_s": Measure("wait", "s", False, _over(_mean_of("wait_s")), of_all=True),
    "wait_min": Measure("wait", "min", False, _over(_mean_of("wait_s"), 60), of_all=True),
    "wait_median_min": Measure(
        "median wait", "min", False, _over(lambda s: None if s.wait_s is None else s.wait_s.median, 60), of_all=True
    ),
    "wait_deviation_min": Measure("deviation of waits", "min", False, _jobs(jobs.wait_deviation_min), of_all=True),
    "slowdown": Measure("slowdown", "", False, _over(_mean_of("slowdown")), of_all=True),
    "solo_over_placed": Measure("mean of solo / placed time", "", True, _jobs(jobs.solo_over_placed), of_all=True),
    "slowdown_with_wait": Measure("slowdown with wait", "", False, _over(_mean_of("slowdown_with_wait")), of_all=True),
    "fourth_run_s": Measure("run time of the fourth job", "s", False, _jobs(_fourth_run_s)),
    "first_slowdown": Measure("slowdown of the first job", "", False, _jobs(_first_slowdown)),
    "slowed": Measure("jobs slowed > 10 %", "", False, _over(lambda s: s.slowed), of_all=True),
    "delayed": Measure("jobs slowed or stopped > 10 %", "", False, _over(lambda s: s.delayed), of_all=True),
    "in_time_percent": Measure("in time", "%", True, _over(lambda s: s.in_time, 0.01)),
    "normalised": Measure("latency / that on 1 GPU", "", False, _jobs(_normalised), of_all=True),
    "utilisation_percent": Measure("GPU utilisation", "%", True, _over(lambda s: s.occupancy.utilisation, 0.01)),
    "utilisation_of_active_percent": Measure(
        "utilisation of active GPUs", "%", True, _jobs(_coming, lambda found: found.utilisation_of_active)
    ),
    "active_percent": Measure("GPUs active", "%", True, _jobs(_coming, lambda found: found.active_rate)),
    "gpu_at_once_percent": Measure("GPU jobs at once", "%", True, _jobs(_gpu_at_once)),
    **{
        f"{kind}_over_{name}_percent": Measure(
            f"{kind.upper()} jobs > {title}",
            "%",
            False,
            _jobs(jobs.waiting_percent, gpu=kind == "gpu", longer_than_s=seconds),
        )
        for kind, name, title, seconds in (
            ("gpu", "1min", "1 min", 60),
            ("gpu", "1h", "1 h", 3600),
            ("cpu", "10s", "10 s", 10),
            ("cpu", "1min", "1 min", 60),
        )
    },
    "cpu_held_percent": Measure("CPU cores held", "%", True, _jobs(jobs.cpu_held_percent)),
    "more_cores_percent": Measure("jobs with 1 to 5 more cores", "%", True, _jobs(jobs.cores_changed_percent, 1, 5)),
    "fewer_cores_percent": Measure(
        "jobs with 1 to 20 fewer cores", "%", True, _jobs(jobs.cores_changed_percent, -20, -1)
    ),
    "user_wait_h": Measure("99th percentile of a user's waits", "h", False, _jobs(jobs.worst_user_wait_h), of_all=True),
    "late_percent": Measure(
        "requests late", "%", False, _over(lambda s: None if s.serving is None else s.serving.late_share, 0.01)
    ),
    **{
        f"late_{least}_{most}_percent": Measure(
            f"late at {least} to {most} replicas", "%", False, _jobs(jobs.late_percent, least, most)
        )
        for least, most in REPLICAS_WANTED
    },
    **{
        f"slow_{least}_{most}_percent": Measure(
            f"answers of {least} to {most} ms", "%", False, _jobs(jobs.slow_percent, least, most)
        )
        for least, most in SLOW_MS
    },
    "decision_cpu_s": Measure(
        "CPU time of a round", "s", False, _over(lambda s: s.decision_cpu_s / s.rounds if s.rounds else None)
    ),
    "decision_percent": Measure(
        "CPU time of decisions / makespan",
        "%",
        False,
        _over(lambda s: s.decision_cpu_s / s.makespan_s if s.makespan_s else None, 0.01),
        of_all=True,
    ),
    **{
        f"allocated_{at}_percent": Measure(f"GPUs allocated at {at} %", "%", True, lambda *_: None)
        for at in ALLOCATED_AT
    },
}


def allocated(by_arrived: Mapping[int, float]) -> dict[str, float | None]:
    """Return the measures of jobs placed one at a time: percent of the GPUs allocated, by percent that arrived."""
    return {f"allocated_{at}_percent": by_arrived.get(at) for at in ALLOCATED_AT}


def measure_all(summary: Summary, history: History) -> dict[str, float | None]:
    """Return all measures of a simulation."""
    return {
        name: None if summary.stranded and measure.of_all else measure.of(summary, history)
        for name, measure in MEASURES.items()
    }
