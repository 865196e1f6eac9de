"""Whether jobs state the estimates that scheduling rules read."""

from __future__ import annotations

from collections.abc import Callable

from placeopt.heuristics.job_orders import URGENT
from placeopt.model import Job
from placeopt.model.scenario import Arrival

LacksEstimate = Callable[[Arrival], bool]
"""Whether a job lacks the estimate that a rule reads."""


def lacks_run_time(arrival: Arrival) -> bool:
    """Return whether an option states no run time."""
    return any(option.run_time_ms is None for option in arrival.job.options)


def lacks_latency(arrival: Arrival) -> bool:
    """Return whether an option states neither run time nor latency."""
    return _lacks_latency(arrival.job)


def lacks_completion_time(arrival: Arrival) -> bool:
    """Return whether a job states no expected completion time, and nothing that implies one (GENIE eq. 9)."""
    job = arrival.job
    return job.expected_completion_ms is None and job.priority < URGENT and _lacks_latency(job)


def _lacks_latency(job: Job) -> bool:
    return any(option.run_time_ms is None and option.latency_ms is None for option in job.options)
