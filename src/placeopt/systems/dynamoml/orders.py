"""DynamoML's queue: inference before all others (3.3)."""

from __future__ import annotations

from placeopt.model import Job
from placeopt.scheduling.queue_orders import sorted_by
from placeopt.scheduling.rules import QUEUE_ORDERS
from placeopt.scheduling.waiting_queue import Key


def inference_first(job: Job) -> Key:
    """Return the key for: inference first, then all others, each in order of arrival (DynamoML 3.3)."""
    return (int(job.kind != "inference"), job.arrival_ms)


QUEUE_ORDERS.register("inference_first", sorted_by(inference_first))
