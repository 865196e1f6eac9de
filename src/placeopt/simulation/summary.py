"""A simulation in figures: what is compared between policies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import fmean

from placeopt.arguments import checked
from placeopt.metrics import Distribution, GpuUse, Occupancy, distribution_of, jain_index, occupancy
from placeopt.simulation.estimates import MissingEstimates, missing_estimates
from placeopt.simulation.history import History, JobHistory, Span
from placeopt.simulation.replicas import replicas
from placeopt.simulation.serving import Serving, serving
from placeopt.simulation.stranded_jobs import NeverEnds, never_ending


@dataclass(frozen=True)
class UserFigures:
    """What a user's jobs that ended have met with."""

    user: str
    ended: int
    wait_s: float
    """Mean of first start - arrival."""
    slowdown_with_wait: float
    """Mean of (end - arrival) / run time alone and well placed."""


@dataclass(frozen=True)
class Summary:
    """
    Figures of one simulation; None where nothing has come of it so far. Times are in seconds.

    Times and slowdowns are of the jobs that ended: with ``stranded`` above 0, or not ``finished``, they are means over
    a part of the jobs, and do not compare with those of a policy under which all end. ``started_at_once`` and
    ``in_time`` are of all jobs of a simulation that is over: one that never ends is not in time. ``services`` aside,
    all figures are of jobs that end by themselves.
    """

    scenario: str
    policy: str
    seed: int
    finished: bool
    jobs: int
    ended: int
    stranded: int
    """Jobs that will never end."""
    never_ends: tuple[NeverEnds, ...]
    """The first ten of them, with the reason; those that hold others back come first."""
    missing_estimates: MissingEstimates | None
    """Jobs without a run time estimate that the policy goes by; None if none is missing."""
    services: int
    """Jobs without an end of their own; they count in what was granted, and in what was changed."""
    stops: int
    """How often running jobs were stopped, to wait again or restart elsewhere."""
    moves: int
    """How often plans of whole rounds moved running jobs."""
    resizes: int
    """How often jobs got fewer or more workers where they were."""
    failures: int
    """How often jobs ran out of GPU memory."""
    last_end_s: float | None
    makespan_s: float | None
    """From the first arrival to the last end."""
    completion_s: Distribution | None
    """End - arrival."""
    wait_s: Distribution | None
    """First start - arrival."""
    stopped_s: Distribution | None
    """From the first start to the end, what a job waited again after it was stopped or failed."""
    slowdown: Distribution | None
    """Time in its places / run time alone and well placed: without all waiting, with restarts and lost work."""
    slowdown_with_wait: Distribution | None
    """(End - arrival) / run time alone and well placed."""
    slowed: int
    """Jobs whose slowdown, without waiting, is beyond the scenario's limit: SLO violations by placement."""
    delayed: int
    """Jobs for which (end - first start) / run time is: those slowed, and those stopped for as long."""
    started_at_once: float | None
    """Part of the jobs that started and did not wait."""
    in_time: float | None
    """Part of the jobs with a deadline or an expected completion time that ended by then: QoS guarantee."""
    fairness: float | None
    """Jain's index over users of their jobs' mean slowdown with waiting; None without users."""
    users: tuple[UserFigures, ...]
    """By name; what fairness is made of."""
    occupancy: Occupancy
    serving: Serving | None
    """How endpoints were served; None where no requests came."""
    rounds: int
    rounds_cut: int
    """Rounds that the time limit cut short: another run may decide otherwise."""
    decision_ms: Distribution | None
    """Wall time of a round's decision; None for rounds read from a log."""
    decision_cpu_s: float
    """CPU time of all of them, this process alone."""


@checked
def summarise(history: History, *, reasons: bool = True) -> Summary:
    """
    Sum up a simulation, from its first arrival to its last end, or to where it was stopped.

    ``reasons``: whether to say of jobs that never end why; each kind of job takes some milliseconds.
    """
    jobs = [job for job in history.jobs if not job.service]
    done = [job for job in jobs if job.start_ms is not None and job.end_ms is not None]
    ends = [_end(job) for job in done]
    first = min((job.arrival_ms for job in history.jobs), default=0)
    until = max((span.end_ms or 0 for job in history.jobs for span in job.spans), default=0)
    until = until if history.finished else history.now_ms
    alone = [max(1, job.alone_ms) for job in done]
    waits = [_start(job) - job.arrival_ms for job in done]
    since_start = [_end(job) - _start(job) for job in done]
    slow = [job.slowdown for job in done]
    with_wait = [job.slowdown_with_wait or 0.0 for job in done]
    asked = jobs if history.finished else done
    due = [(job.end_ms, job.due_ms) for job in asked if job.due_ms is not None]
    users = _users(done, with_wait)
    limit = history.scenario.slowed_thousandths / 1000
    return Summary(
        scenario=history.scenario.name,
        policy=history.scheduling.name,
        seed=history.seed,
        finished=history.finished,
        jobs=len(jobs),
        ended=len(done),
        stranded=len(history.stranded),
        never_ends=never_ending(history) if reasons else (),
        missing_estimates=missing_estimates(history.scenario, history.scheduling),
        services=len(history.jobs) - len(jobs),
        stops=sum(job.stops for job in history.jobs),
        moves=sum(job.moves for job in history.jobs),
        resizes=sum(job.resizes for job in history.jobs),
        failures=sum(job.failures for job in history.jobs),
        last_end_s=max(ends) / 1000 if ends else None,
        makespan_s=(max(ends) - first) / 1000 if ends else None,
        completion_s=distribution_of([(_end(job) - job.arrival_ms) / 1000 for job in done]),
        wait_s=distribution_of([wait / 1000 for wait in waits]),
        stopped_s=distribution_of(
            [(all_ms - job.placed_ms) / 1000 for all_ms, job in zip(since_start, done, strict=True)]
        ),
        slowdown=distribution_of(slow),
        slowdown_with_wait=distribution_of(with_wait),
        slowed=sum(one > limit for one in slow),
        delayed=sum(all_ms / a > limit for all_ms, a in zip(since_start, alone, strict=True)),
        started_at_once=sum(map(partial(_at_once, step_ms=history.scenario.physics.step_ms or 0), asked)) / len(asked)
        if asked
        else None,
        in_time=sum(end is not None and end <= by for end, by in due) / len(due) if due else None,
        fairness=jain_index([one.slowdown_with_wait for one in users]),
        users=users,
        occupancy=occupancy_between(history, first, until),
        serving=_serving(history, until),
        rounds=history.rounds.held,
        rounds_cut=history.rounds.cut,
        decision_ms=distribution_of([1000 * s for s in history.rounds.wall_s]),
        decision_cpu_s=sum(history.rounds.cpu_s),
    )


def occupancy_between(history: History, start_ms: int, end_ms: int) -> Occupancy:
    """Sum up the GPUs' time in a window; what runs on at its end counts up to there."""
    return occupancy(_stays(history, end_ms), _gpus_of(history), start_ms, end_ms)


def _serving(history: History, until: int) -> Serving | None:
    if not history.scenario.endpoints:
        return None
    spans = {job.job: job.spans for job in history.jobs if job.service}
    ran = []
    for endpoint in history.scenario.endpoints:
        stays = [
            (replica, span.start_ms, until if span.end_ms is None else span.end_ms)
            for arrival in replicas(endpoint, history.scheduling)
            for replica in (endpoint.gpu if arrival.job.options[0].demand.gpus else endpoint.cpu or endpoint.gpu,)
            for span in spans.get(arrival.job.id, ())
        ]
        ran.append((endpoint, stays))
    return serving(ran, until)


def _at_once(job: JobHistory, step_ms: int) -> bool:
    return job.start_ms is not None and job.start_ms - job.arrival_ms <= step_ms


def _start(job: JobHistory) -> int:
    return job.start_ms or 0


def _end(job: JobHistory) -> int:
    return job.end_ms or 0


def _users(done: list[JobHistory], slowdown: list[float]) -> tuple[UserFigures, ...]:
    of_user: dict[str, list[tuple[float, float]]] = {}
    for job, slow in zip(done, slowdown, strict=True):
        if job.user is not None:
            of_user.setdefault(job.user, []).append(((_start(job) - job.arrival_ms) / 1000, slow))
    return tuple(
        UserFigures(user, len(met), fmean(wait for wait, _ in met), fmean(slow for _, slow in met))
        for user, met in sorted(of_user.items())
    )


def _stays(history: History, until: int) -> list[GpuUse]:
    percent = {
        (arrival.job.id, option.id): option.demand.gpu_utilisation_percent
        for arrival in history.scenario.arrivals
        for option in arrival.job.options
    }
    stays = []
    for job in history.jobs:
        for span in job.spans:
            end = until if span.end_ms is None else span.end_ms
            milli = {
                (one.node, int(gpu)): share for one in span.placement.assignments for gpu, share in one.gpus.items()
            }
            used = _used(percent[job.job, span.placement.option], span, end)
            stays.append(GpuUse(start_ms=span.start_ms, end_ms=end, milli=milli, percent=used))
    return stays


def _used(percent: int, span: Span, end: int) -> float:
    """Return the utilisation that a job brings, on the mean of its time: none while its GPUs wait for the host."""
    took = end - span.start_ms
    return percent * (took - span.host_wait_ms) / took if span.host_wait_ms and took else percent


def _gpus_of(history: History) -> dict[str, int]:
    cluster = history.scenario.cluster
    sizes = {machine.id: len(machine.gpus) for machine in cluster.machines}
    return {node.id: sizes[node.machine] for node in cluster.nodes}
