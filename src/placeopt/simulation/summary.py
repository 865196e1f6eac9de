"""The figures of a simulation, by which policies are compared."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from placeopt.arguments import checked
from placeopt.simulation.endpoints import Serving, replicas, serving
from placeopt.simulation.gpu_time import GpuUse, Occupancy, occupancy
from placeopt.simulation.history import History, JobHistory, Span
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
    jobs = [job for job in history.jobs if not job.service]
    done = [job for job in jobs if job.start_ms is not None and job.end_ms is not None]
    ends = [job.end_ms or 0 for job in done]
    first = min((job.arrival_ms for job in history.jobs), default=0)
    until = max((span.end_ms or 0 for job in history.jobs for span in job.spans), default=0)
    until = until if history.finished else history.now_ms
    alone = [max(1, job.alone_ms) for job in done]
    waits = [(job.start_ms or 0) - job.arrival_ms for job in done]
    since_start = [(job.end_ms or 0) - (job.start_ms or 0) for job in done]
    slow = [job.slowdown for job in done]
    with_wait = [job.slowdown_with_wait or 0.0 for job in done]
    counted = jobs if history.finished else done
    due = [(job.end_ms, job.due_ms) for job in counted if job.due_ms is not None]
    users = _users(done, waits, with_wait)
    limit = history.scenario.slowed_thousandths / 1000
    step_ms = history.scenario.physics.step_ms or 0
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
        completion_s=distribution_of([(job.completion_ms or 0) / 1000 for job in done]),
        wait_s=distribution_of([wait / 1000 for wait in waits]),
        stopped_s=distribution_of(
            [(all_ms - job.placed_ms) / 1000 for all_ms, job in zip(since_start, done, strict=True)]
        ),
        slowdown=distribution_of(slow),
        slowdown_with_wait=distribution_of(with_wait),
        slowed=sum(slowdown > limit for slowdown in slow),
        delayed=sum(all_ms / a > limit for all_ms, a in zip(since_start, alone, strict=True)),
        started_at_once=fmean(started_at_once(job, step_ms) for job in counted) if counted else None,
        in_time=sum(end is not None and end <= by for end, by in due) / len(due) if due else None,
        fairness=jain_index([user.slowdown_with_wait for user in users]),
        users=users,
        occupancy=occupancy_between(history, first, until),
        serving=_serving(history, until),
        rounds=history.rounds.held,
        rounds_cut=history.rounds.cut,
        decision_ms=distribution_of([1000 * s for s in history.rounds.wall_s]),
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


def started_at_once(job: JobHistory, step_ms: int) -> bool:
    """Return whether a job started without waiting, or within a time step."""
    return job.start_ms is not None and job.start_ms - job.arrival_ms <= step_ms


def _users(done: list[JobHistory], waits_ms: list[int], slowdowns: list[float]) -> tuple[UserFigures, ...]:
    of_user: dict[str, list[tuple[float, float]]] = {}
    for job, wait_ms, slowdown in zip(done, waits_ms, slowdowns, strict=True):
        if job.user is not None:
            of_user.setdefault(job.user, []).append((wait_ms / 1000, slowdown))
    return tuple(
        UserFigures(user, len(figures), *(fmean(column) for column in zip(*figures, strict=True)))
        for user, figures in sorted(of_user.items())
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
