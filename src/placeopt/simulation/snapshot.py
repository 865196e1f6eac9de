"""A moment of a simulation as a round: what runs where, and what waits."""

from __future__ import annotations

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.model import Instance, Job, Placement, Policy, Running
from placeopt.model.policy import Interference
from placeopt.problem.grants import granted
from placeopt.simulation.history import History, Span
from placeopt.simulation.scheduling.resource_estimator import ResourceEstimator


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
    scenario = history.scenario
    estimator = ResourceEstimator(scenario, history.scheduling)
    records = {arrival.job.id: estimator.of_running(arrival.job) for arrival in scenario.arrivals}
    jobs, running = [], []
    for one in history.jobs:
        if one.arrival_ms > at_ms or (one.end_ms is not None and one.end_ms <= at_ms):
            continue
        job = records[one.job]
        span = next((span for span in one.spans if span.start_ms <= at_ms and _lasts(span, at_ms)), None)
        if span is not None:
            job = _as_held(job, span.placement)
            option = next(option for option in job.options if option.id == span.placement.option)
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
        cluster=scenario.cluster,
        jobs=tuple(jobs),
        running=tuple(granted(running, records, policy)),
        slowdowns=scenario.slowdowns,
        policy=policy,
    )


def _policy(history: History) -> Policy:
    placed_by, physics = history.scheduling.policy, history.scenario.physics
    if placed_by.share_mode != "overcommit":
        return Policy()
    return Policy(
        share_mode=placed_by.share_mode,
        jobs_per_gpu_max=placed_by.jobs_per_gpu_max,
        interference=Interference(model=physics.interference, curve=physics.curve),
    )


def _as_held(job: Job, placement: Placement) -> Job:
    """Return the job with the cores that each of its workers has, where a policy gave others than requested."""
    cores = max(one.cpu_millicores // len(one.workers) for one in placement.assignments)
    options = tuple(
        option.model_copy(update={"demand": option.demand.model_copy(update={"cpu_millicores": cores})})
        if option.id == placement.option and option.demand.cpu_millicores != cores
        else option
        for option in job.options
    )
    return job.model_copy(update={"options": options}) if options != job.options else job


def _lasts(span: Span, at_ms: int) -> bool:
    return span.end_ms is None or span.end_ms > at_ms


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
