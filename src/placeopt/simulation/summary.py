"""The figures of a simulation, by which policies are compared."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

import numpy as np

from placeopt.arguments import checked
from placeopt.simulation.endpoints import Serving, replicas, serving
from placeopt.simulation.gpu_time import GpuUse, Occupancy, occupancy
from placeopt.simulation.history import History, Span
from placeopt.simulation.job_columns import JobColumns
from placeopt.simulation.job_warnings import MissingEstimates, NeverEnds, missing_estimates, never_ending
from placeopt.simulation.statistics import Distribution, distribution_of, jain_index


@dataclass(frozen=True)
class UserFigures:
    """Figures of a user's jobs that ended."""

    user: str
    ended: int
    wait_s: float
    """Mean of first start - arrival."""
    slowdown_with_wait: float
    """Mean of (end - arrival) / run time alone and well placed."""


@dataclass(frozen=True)
class Summary:
    """
    Figures of one simulation; None where no job counts. Times are in seconds.

    Times and slowdowns are of the jobs that ended: with ``stranded`` above 0, or unless ``finished``, they are means
    over a part of the jobs and do not compare with those of a policy under which all end. ``started_at_once`` and
    ``in_time`` are of all jobs of a finished simulation: a job that never ends is not in time. All figures except
    ``services`` are of jobs that end by themselves.
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
    """The first ten of them, with the reason; jobs that block others come first."""
    missing_estimates: MissingEstimates | None
    """Jobs without a run time estimate that the policy reads; None if none is missing."""
    services: int
    """Jobs without an end of their own; they count in GPU time, stops, moves and resizes."""
    stops: int
    """Number of stops of running jobs, to wait again or restart elsewhere."""
    moves: int
    """Number of moves of running jobs by plans of whole rounds."""
    resizes: int
    """Number of changes of the number of workers."""
    failures: int
    """Number of times that jobs ran out of GPU memory."""
    last_end_s: float | None
    makespan_s: float | None
    """From the first arrival to the last end."""
    completion_s: Distribution | None
    """End - arrival."""
    wait_s: Distribution | None
    """First start - arrival."""
    stopped_s: Distribution | None
    """Waiting time between the first start and the end, after stops and failures."""
    slowdown: Distribution | None
    """Time in placements / run time alone and well placed: without waiting, with restarts and lost work."""
    slowdown_with_wait: Distribution | None
    """(End - arrival) / run time alone and well placed."""
    slowed: int
    """Jobs whose slowdown, without waiting, is beyond the scenario's limit: SLO violations by placement."""
    delayed: int
    """Jobs for which (end - first start) / run time is beyond it: also jobs that were stopped for long."""
    started_at_once: float | None
    """Part of the jobs that started without waiting."""
    in_time: float | None
    """Part of the jobs with a deadline or an expected completion time that ended by then: QoS guarantee."""
    fairness: float | None
    """Jain's index over users of their jobs' mean slowdown with waiting; None without users."""
    users: tuple[UserFigures, ...]
    """By name; ``fairness`` is computed from these."""
    occupancy: Occupancy
    serving: Serving | None
    """Service of endpoints; None without requests."""
    rounds: int
    rounds_cut: int
    """Rounds that the time limit cut short; another run may decide otherwise."""
    decision_ms: Distribution | None
    """Wall time of a round's decision; None without rounds."""
    decision_cpu_s: float
    """CPU time of all decisions, of this process alone."""


@checked
def summarise(history: History, *, reasons: bool = True) -> Summary:
    """
    Return the figures of a simulation, from its first arrival to its last end, or to where it was cancelled.

    Parameters
    ----------
    history
        As `simulate` returns it.
    reasons
        Whether to find the reason for each job that never ends, which takes some milliseconds for each kind of job.

    Returns
    -------
    Summary
        Times in seconds; None where no job counts.
    """
    jobs = JobColumns.of(history)
    done = jobs.ended
    counted = jobs if history.finished else done
    at_once, in_time = counted.at_once(history.scenario.physics.step_ms), counted.in_time
    first = min((job.arrival_ms for job in history.jobs), default=0)
    until = max((span.end_ms or 0 for job in history.jobs for span in job.spans), default=0)
    until = until if history.finished else history.now_ms
    last_end_ms = float(done.end.max(initial=0))
    users = _users(done)
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
        last_end_s=last_end_ms / 1000 if len(done) else None,
        makespan_s=(last_end_ms - first) / 1000 if len(done) else None,
        completion_s=distribution_of(done.completion / 1000),
        wait_s=distribution_of(done.wait / 1000),
        stopped_s=distribution_of((done.run - done.placed) / 1000),
        slowdown=distribution_of(done.slowdown),
        slowdown_with_wait=distribution_of(done.slowdown_with_wait),
        slowed=int((done.slowdown > limit).sum()),
        delayed=int((done.run / done.alone > limit).sum()),
        started_at_once=float(at_once.mean()) if len(at_once) else None,
        in_time=float(in_time.mean()) if len(in_time) else None,
        fairness=jain_index([user.slowdown_with_wait for user in users]),
        users=users,
        occupancy=occupancy_between(history, first, until),
        serving=_serving(history, until),
        rounds=history.rounds.held,
        rounds_cut=history.rounds.cut,
        decision_ms=distribution_of(1000 * np.asarray(history.rounds.wall_s)),
        decision_cpu_s=sum(history.rounds.cpu_s),
    )


def occupancy_between(history: History, start_ms: int, end_ms: int) -> Occupancy:
    """Return the use of GPU time in a window; jobs that still run at its end count up to there."""
    return occupancy(_gpu_uses(history, end_ms), history.scenario.hardware.gpus_by_node, start_ms, end_ms)


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


def _users(done: JobColumns) -> tuple[UserFigures, ...]:
    done = done.rows(done.user != "")
    if not len(done):
        return ()
    names, number = np.unique(done.user, return_inverse=True)
    by_user = np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1])
    wait_s, slowdown = done.wait / 1000, done.slowdown_with_wait
    return tuple(
        UserFigures(str(name), len(rows), fmean(wait_s[rows]), fmean(slowdown[rows]))
        for name, rows in zip(names, by_user, strict=True)
    )


def _gpu_uses(history: History, until: int) -> list[GpuUse]:
    percent = {
        (arrival.job.id, option.id): option.demand.gpu_utilisation_percent
        for arrival in history.scenario.arrivals
        for option in arrival.job.options
    }
    uses = []
    for job in history.jobs:
        for span in job.spans:
            end = until if span.end_ms is None else span.end_ms
            milli = {
                (assignment.node, int(gpu)): share
                for assignment in span.placement.assignments
                for gpu, share in assignment.gpus.items()
            }
            used = _used(percent[job.job, span.placement.option], span, end)
            uses.append(GpuUse(start_ms=span.start_ms, end_ms=end, milli=milli, percent=used))
    return uses


def _used(percent: int, span: Span, end: int) -> float:
    """Return the mean utilisation by a job in a span; it is 0 while the GPUs wait for the host."""
    took = end - span.start_ms
    return percent * (took - span.host_wait_ms) / took if span.host_wait_ms and took else percent
