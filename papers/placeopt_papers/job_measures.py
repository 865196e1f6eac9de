"""Measures of some jobs of a simulation: training, GPU and CPU jobs, replicas of services."""

from __future__ import annotations

from collections.abc import Callable, Collection
from statistics import fmean, pstdev

import numpy as np

from placeopt.simulation import Endpoint, History, JobColumns, JobHistory
from placeopt.simulation.autoscaler import wanted_replicas
from placeopt.simulation.endpoints import Stay, answers, replicas, serving

MINUTE_MS = 60_000
"""Milliseconds."""


def jobs_that_end(history: History) -> list[JobHistory]:
    """Return the jobs that end by themselves: all but services."""
    return [job for job in history.jobs if not job.service]


def training_jobs(history: History) -> list[JobHistory]:
    """Return the training jobs that ended."""
    trains = {arrival.job.id for arrival in history.scenario.arrivals if arrival.job.kind == "training"}
    return [job for job in jobs_that_end(history) if job.job in trains and job.end_ms is not None]


def training_min(history: History, of: Callable[[JobHistory], int]) -> float | None:
    """Return the mean of a time of training jobs, in minutes."""
    return mean([of(job) / MINUTE_MS for job in training_jobs(history)])


def training_within_percent(history: History, minutes: int) -> float | None:
    """Return the percentage of training jobs that ran no longer than some minutes."""
    return percent([run_ms(job) <= minutes * MINUTE_MS for job in training_jobs(history)])


def longest_training_min(history: History) -> float | None:
    """Return the longest run of a training job, in minutes."""
    return max((run_ms(job) / MINUTE_MS for job in training_jobs(history)), default=None)


def time_with_workers_percent(history: History, numbers: Collection[int]) -> float | None:
    """Return the percentage of the run time of training jobs in which they have one of these numbers of workers."""
    inside = every = 0
    for job in training_jobs(history):
        for span in job.spans:
            took = (span.end_ms or 0) - span.start_ms
            every += took
            inside += took * (sum(len(one.workers) for one in span.placement.assignments) in numbers)
    return 100 * inside / every if every else None


def most_service_gpus(history: History, until_min: int) -> float | None:
    """Return the most GPUs that replicas of services of whole GPUs hold at once in the first minutes; None: no such."""
    changes: list[tuple[int, int]] = []
    for job in history.jobs:
        if not job.service or job.job.startswith("notebook"):
            continue
        for span in job.spans:
            gpus = sum(milli == 1000 for one in span.placement.assignments for milli in one.gpus.values())
            changes.append((span.start_ms, gpus))
            if span.end_ms is not None:
                changes.append((span.end_ms, -gpus))
    held, most = 0, 0
    for at, change in sorted(changes):
        if at >= until_min * MINUTE_MS:
            break
        held += change
        most = max(most, held)
    return float(most) if changes else None


def late_percent(history: History, least: int, most: int) -> float | None:
    """Return the percentage of late requests among those that come while a load wants so many replicas with GPUs."""
    ran = []
    for endpoint, stays in _stays(history):
        follows = history.scheduling.replicas.model_copy(update={"on_cpu": False})
        nothing = {"rate_milli" if endpoint.think_time_ms is None else "clients": 0}
        load = tuple(
            step
            if least <= wanted_replicas(endpoint, step.amount, follows)[0] <= most
            else step.model_copy(update=nothing)
            for step in endpoint.load
        )
        ran.append((endpoint.model_copy(update={"load": load}), stays))
    found = serving(ran, max((endpoint.until_ms for endpoint, _ in ran), default=0))
    return None if found is None else 100 * found.late_share


def slow_percent(history: History, least_ms: int, most_ms: float) -> float | None:
    """Return the percentage of requests whose answer takes a mean time above ``least_ms``, up to ``most_ms``."""
    every = [
        some
        for endpoint, stays in _stays(history)
        for _, found in answers(endpoint, stays, endpoint.until_ms)
        for some in found
    ]
    slow = sum(some.requests for some in every if least_ms < some.latency_ms <= most_ms)
    return 100 * slow / sum(some.requests for some in every) if every else None


def _stays(history: History) -> list[tuple[Endpoint, list[Stay]]]:
    """Return the endpoints, and when their replicas with GPUs ran."""
    spans = {job.job: job.spans for job in history.jobs if job.service}
    return [
        (
            endpoint,
            [
                (endpoint.gpu, span.start_ms, endpoint.until_ms if span.end_ms is None else span.end_ms)
                for arrival in replicas(endpoint, history.scheduling)
                for span in spans.get(arrival.job.id, ())
            ],
        )
        for endpoint in history.scenario.endpoints
    ]


def waits_ms(history: History, *, gpu: bool) -> list[int | None]:
    """Return the wait of every GPU job, or of every CPU job, replicas of services included; None: it never started."""
    cpu_kind = {arrival.job.id for arrival in history.scenario.arrivals if arrival.job.kind == "cpu"}
    return [
        None if job.start_ms is None else job.start_ms - job.arrival_ms
        for job in history.jobs
        if (job.job in cpu_kind) != gpu
    ]


def waiting_percent(history: History, *, gpu: bool, longer_than_s: int) -> float | None:
    """Return the percentage of GPU or CPU jobs that wait longer; those that never start do."""
    return percent([wait is None or wait > 1000 * longer_than_s for wait in waits_ms(history, gpu=gpu)])


def wait_deviation_min(history: History) -> float | None:
    """Return the standard deviation of the waits of jobs, in minutes."""
    waits = [(job.start_ms - job.arrival_ms) / 60_000 for job in jobs_that_end(history) if job.start_ms is not None]
    return pstdev(waits) if waits else None


def worst_user_wait_h(history: History) -> float | None:
    """Return the largest 99th percentile of waiting times of a user's jobs, in hours."""
    of_user: dict[str, list[float]] = {}
    for job in jobs_that_end(history):
        if job.user is not None and job.start_ms is not None:
            of_user.setdefault(job.user, []).append((job.start_ms - job.arrival_ms) / 3_600_000)
    return max((float(np.percentile(waits, 99)) for waits in of_user.values()), default=None)


def cpu_held_percent(history: History) -> float | None:
    """Return the percentage of the CPU cores' time that jobs hold from the first to the last arrival."""
    came = [job.arrival_ms for job in jobs_that_end(history)]
    first, last = min(came, default=0), max(came, default=0)
    _, there, _ = history.scenario.cluster.amounts
    held = 0
    for job in history.jobs:
        for span in job.spans:
            took = min(last, last if span.end_ms is None else span.end_ms) - max(first, span.start_ms)
            held += max(0, took) * sum(assignment.cpu_millicores for assignment in span.placement.assignments)
    return 100 * held / (there * (last - first)) if there and last > first else None


def cores_changed_percent(history: History, least: int, most: int) -> float | None:
    """Return the percentage of training jobs that got between ``least`` and ``most`` more cores than they asked for."""
    asked = {
        arrival.job.id: arrival.job.options[0].demand.cpu_millicores * arrival.job.options[0].workers
        for arrival in history.scenario.arrivals
        if arrival.job.options[0].demand.gpus
    }
    found = [
        sum(assignment.cpu_millicores for assignment in job.placement.assignments) - asked[job.job]
        for job in jobs_that_end(history)
        if job.placement is not None and job.job in asked
    ]
    return percent([1000 * least <= change <= 1000 * most for change in found])


def solo_over_placed(history: History) -> float | None:
    """Return the mean of run time alone / time in placements: SC'17 eq. 4 over the jobs that ended."""
    ended = JobColumns.of(history).ended
    return mean((1 / ended.slowdown[ended.placed > 0]).tolist())


def run_ms(job: JobHistory) -> int:
    """Return the time from the first start to the end of a job that ended."""
    return (job.end_ms or 0) - (job.start_ms or 0)


def mean(values: list[float]) -> float | None:
    """Return the mean; None of nothing."""
    return fmean(values) if values else None


def percent(those: list[bool]) -> float | None:
    """Return the percentage of True; None of nothing."""
    return 100 * sum(those) / len(those) if those else None
