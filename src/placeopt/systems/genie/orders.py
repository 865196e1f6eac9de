"""Queue orders of GENIE's baselines, by expected completion time (GENIE 7.1)."""

from __future__ import annotations

from placeopt.heuristics.job_orders import URGENT, due_ms
from placeopt.model import Job
from placeopt.scheduling.queue_orders import sorted_by
from placeopt.scheduling.rules import QUEUE_ORDERS
from placeopt.scheduling.waiting_queue import Key, lacks_latency


def by_completion(job: Job) -> Key:
    """Return the key for: earliest expected completion time first (min-min; GENIE 7.1)."""
    return (due_ms(job), job.arrival_ms)


def by_arrival_and_completion(job: Job) -> Key:
    """Return the key for: least mean of arrival and expected completion first (GENIE 7.1; equal weights are ours)."""
    return (job.arrival_ms + due_ms(job), job.arrival_ms)


def lacks_completion_time(job: Job) -> bool:
    """Return whether a job states no expected completion time, and nothing that implies one (GENIE eq. 9)."""
    return job.expected_completion_ms is None and job.priority < URGENT and lacks_latency(job)


QUEUE_ORDERS.register("min_min", sorted_by(by_completion, lacks_completion_time))
QUEUE_ORDERS.register("arrival_ect", sorted_by(by_arrival_and_completion, lacks_completion_time))
