"""The result of a simulation, job by job, and a moment of it as a round."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.model import Instance, Job, Placement, Policy, Running
from placeopt.model.policy import Interference
from placeopt.problem.grants import granted
from placeopt.scheduling.adapt import adapted
from placeopt.scheduling.elastic import with_workers
from placeopt.scheduling.placement_amounts import with_cores, workers_of
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.resource_estimator import ResourceEstimator
from placeopt.simulation.records.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Span:
    """
    A job in one placement, from ``start_ms`` to ``end_ms``; None: it still runs there.

    Shares are the requests; what was granted above changes within a span, with every start and end on the GPU.
    """

    placement: Placement
    start_ms: int
    end_ms: int | None
    host_wait_ms: int = 0
    """How long its GPUs waited there for CPU cores and memory bandwidth, rounded down."""


@dataclass(frozen=True, slots=True)
class JobHistory:
    """
    One job; None: the event has not happened.

    ``alone_ms`` is its run time alone and well placed in the option that it got first, else in its first one; with an
    elastic option, with as many workers as it requests.
    """

    job: str
    user: str | None
    arrival_ms: int
    gpu_milli: int
    """Requested in its last placement, or in the first option."""
    alone_ms: int
    start_ms: int | None = None
    end_ms: int | None = None
    due_ms: int | None = None
    """Deadline, or else expected completion time."""
    placement: Placement | None = None
    """The last one."""
    spans: tuple[Span, ...] = ()
    """Its placements in order; a single one unless it was changed."""
    service: bool = False
    """It has no end of its own."""
    stops: int = 0
    """Number of stops, to wait again or to restart elsewhere at once."""
    moves: int = 0
    """Number of moves by a plan."""
    resizes: int = 0
    failures: int = 0
    """Number of times that it ran out of GPU memory."""

    @property
    def host_wait_ms(self) -> int:
        """How long its GPUs waited for CPU cores and memory bandwidth, in all its placements."""
        return sum(span.host_wait_ms for span in self.spans)

    @property
    def placed_ms(self) -> int:
        """
        Time in placements that it has left, restarts and lost work included.

        From start to end, that is all the time except waits after a stop or a failure.
        """
        return sum(span.end_ms - span.start_ms for span in self.spans if span.end_ms is not None)


@dataclass(frozen=True)
class Rounds:
    """Number of rounds, and the time in seconds of their decisions."""

    held: int = 0
    cut: int = 0
    """Number of decisions that the time limit cut short, so that another run may decide otherwise."""
    wall_s: array[float] = field(default_factory=lambda: array("d"))
    cpu_s: array[float] = field(default_factory=lambda: array("d"))


@dataclass(frozen=True)
class History:
    """A simulation, finished or cancelled."""

    scenario: Scenario
    scheduling: Scheduling
    seed: int
    now_ms: int
    finished: bool
    """No event is left: jobs that have not ended never will."""
    jobs: tuple[JobHistory, ...]
    """In the order of the scenario."""
    rounds: Rounds

    @property
    def stranded(self) -> tuple[str, ...]:
        """The jobs that wait forever, in the queue or on their GPUs for more workers, and those that were withdrawn."""
        return tuple(job.job for job in self.jobs if job.end_ms is None) if self.finished else ()


@checked
def round_at(history: History, at_ms: int, *, name: str | None = None) -> Instance:
    """
    Return the round that a scheduler would see at a moment of a simulation.

    Jobs that run then stand where they were placed last, with the cores that the policy gave them and the shares that
    the round's policy grants; expected ends follow from predicted run times, since a scheduler has no others. Other
    jobs that have arrived and not ended wait. Ended jobs are left out, and so is memory bandwidth that the policy
    ignores.

    The round's policy is placeopt's own, so that all policies are compared equally. Where GPUs were overcommitted it
    allows the same, and jobs slow each other as in the scenario.

    Raises
    ------
    BadInput
        If no job runs and none waits then.
    """
    scenario = history.scenario.as_seen()
    estimator = ResourceEstimator(scenario.setting(), history.scheduling)
    records = {arrival.job.id: estimator.of_running(arrival.job) for arrival in scenario.arrivals}
    jobs, running = [], []
    for job_history in history.jobs:
        if job_history.arrival_ms > at_ms or (job_history.end_ms is not None and job_history.end_ms <= at_ms):
            continue
        job = records[job_history.job]
        lasting = (span for span in job_history.spans if span.end_ms is None or span.end_ms > at_ms)
        span = next((span for span in lasting if span.start_ms <= at_ms), None)
        if span is not None:
            job = _as_held(job, span.placement)
            option = job.option(span.placement.option)
            ends = None if option.run_time_ms is None else max(at_ms, span.start_ms + option.run_time_ms)
            running.append(
                Running(
                    job=job.id,
                    option=option.id,
                    assignments=span.placement.assignments,
                    started_ms=span.start_ms,
                    expected_end_ms=ends,
                )
            )
        jobs.append(job)
    if not jobs:
        raise BadInput(f"at_ms: {at_ms}: nothing runs and nothing waits then in {scenario.name!r}")
    policy = _policy(history)
    origin = f"{scenario.name} under {history.scheduling.name}, seed {history.seed}, after {at_ms // 1000} s."
    return Instance(
        name=name or f"{scenario.name}-at-{at_ms // 1000}s",
        now_ms=at_ms,
        note=f"{origin} {scenario.note}"[:10_000],
        cluster=next(cluster for at, cluster in reversed(scenario.clusters) if at <= at_ms),
        jobs=tuple(jobs),
        running=tuple(granted(running, records, policy.share_mode)),
        slowdowns=scenario.slowdowns,
        policy=policy,
    )


def _policy(history: History) -> Policy:
    placed_by, physics = adapted(history.scheduling, history.scenario.setting()).policy, history.scenario.physics
    if placed_by.share_mode != "overcommit":
        return Policy()
    return Policy(
        share_mode=placed_by.share_mode,
        jobs_per_gpu_max=placed_by.jobs_per_gpu_max,
        interference=Interference(model=physics.interference, curve=physics.curve),
    )


def _as_held(job: Job, placement: Placement) -> Job:
    """
    Return the job with the workers and their cores that it has, where a policy gave others than requested.

    A gang of which a part is placed, as a round cannot state it, is one of the workers that hold GPUs.
    """
    option, workers = job.option(placement.option), workers_of(placement)
    if not option.groups and not option.fewest <= workers <= option.workers:
        job = with_workers(job, option.id, workers)
    cores = max(assignment.cpu_millicores // len(assignment.workers) for assignment in placement.assignments)
    return with_cores(job, placement.option, cores)


def longest_queue_ms(history: History) -> int:
    """Return the first moment at which the most jobs wait for their first start; jobs that never start keep waiting."""
    events = [(job.arrival_ms, 1) for job in history.jobs]
    events += [(job.start_ms, -1) for job in history.jobs if job.start_ms is not None]
    waiting, most, moment = 0, -1, 0
    for at, change in sorted(events):  # a job that starts at once leaves before the next arrives
        waiting += change
        if waiting > most:
            most, moment = waiting, at
    return moment
