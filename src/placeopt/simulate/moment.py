"""A moment of a simulation as a round: what runs then, where, and what waits."""

from __future__ import annotations

from placeopt.errors import BadInput
from placeopt.model import Instance, Running
from placeopt.simulate.history import History, Span


def round_at(history: History, at_ms: int, *, name: str | None = None) -> Instance:
    """
    Return the round that a scheduler would meet at a moment of a simulation.

    Jobs that run then are where they were placed last; expected ends go by the predicted run time from then on, as
    a scheduler knows no other. Other jobs that have arrived and not ended wait. What has ended is left out.

    Raises
    ------
    BadInput
        If nothing runs and nothing waits then.
    """
    scenario = history.scenario
    records = {arrival.job.id: arrival.job for arrival in scenario.arrivals}
    jobs, running = [], []
    for one in history.jobs:
        if one.arrival_ms > at_ms or (one.end_ms is not None and one.end_ms <= at_ms):
            continue
        job = records[one.job]
        span = next((span for span in one.spans if span.start_ms <= at_ms and _lasts(span, at_ms)), None)
        if span is not None:
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
    told = f"{scenario.name} under {history.scheduling.name}, seed {history.seed}, after {at_ms // 1000} s."
    return Instance(
        name=name or f"{scenario.name}-at-{at_ms // 1000}s",
        now_ms=at_ms,
        note=f"{told} {scenario.note}"[:10_000],
        cluster=scenario.cluster,
        jobs=tuple(jobs),
        running=tuple(running),
        slowdowns=scenario.slowdowns,
    )


def _lasts(span: Span, at_ms: int) -> bool:
    return span.end_ms is None or span.end_ms > at_ms


def longest_queue_ms(history: History) -> int:
    """Return the first moment at which the most jobs wait for their first start; those that never start wait on."""
    events = [(job.arrival_ms, 1) for job in history.jobs]
    events += [(job.start_ms, -1) for job in history.jobs if job.start_ms is not None]
    waiting, most, moment = 0, -1, 0
    for at, change in sorted(events):  # who starts at once leaves before the next comes
        waiting += change
        if waiting > most:
            most, moment = waiting, at
    return moment
