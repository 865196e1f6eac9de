"""Orders of the queue in rounds that place job by job: the field ``order`` of a policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from placeopt.model import Job
from placeopt.scheduling.drf_queue import ArrayDivision, DrfQueue, JobArrayQueue
from placeopt.scheduling.policy import ORDER_NAMES, Scheduling
from placeopt.scheduling.rule_registry import RuleRegistry
from placeopt.scheduling.setting import Setting
from placeopt.scheduling.urgency_queue import UrgencyQueue
from placeopt.scheduling.waiting_queue import (
    JobQueue,
    Key,
    LacksEstimate,
    SortedQueue,
    by_aged_priority,
    by_allowance,
    by_arrival,
    by_arrival_and_completion,
    by_completion,
    by_run_time,
    by_service,
    inference_first,
    lacks_completion_time,
    lacks_latency,
    lacks_run_time,
)
from placeopt.scheduling.weighted_fair_queue import WeightedFairQueue


@dataclass(frozen=True)
class QueueContext:
    """What a queue can be made from."""

    setting: Setting
    scheduling: Scheduling
    arrays: ArrayDivision | None
    """None: the policy divides the cluster into no arrays."""
    service_level: Callable[[str], int]
    """Returns the level of attained service of a job."""
    is_service: Callable[[str], bool]
    """Returns whether a job has no end of its own."""


@dataclass(frozen=True)
class QueueOrder:
    """
    An order of waiting jobs.

    ``make_queue`` returns an empty queue; ``lacks_estimate`` returns whether a job lacks the estimate that the order
    reads, so that the simulation warns; None: it reads none.
    """

    make_queue: Callable[[QueueContext], JobQueue]
    lacks_estimate: LacksEstimate | None = None


def sorted_by(key: Callable[[Job], Key], lacks_estimate: LacksEstimate | None = None) -> QueueOrder:
    """
    Return the order by a key that does not change while a job waits, the smallest first.

    Parameters
    ----------
    key
        Of a waiting job; it must not change while the job waits.
    lacks_estimate
        Tells whether a job lacks the estimate that the key reads; None if it reads none.

    Returns
    -------
    QueueOrder
        To be registered in `QUEUE_ORDERS`.
    """
    return QueueOrder(lambda _: SortedQueue(key), lacks_estimate)


def _by_dominant_share(context: QueueContext) -> JobQueue:
    cluster = context.setting.cluster
    if context.arrays is not None:
        return JobArrayQueue(cluster, context.arrays, fair=True)
    return DrfQueue(cluster, gpus_alone=context.scheduling.dominant == "gpu")


def _by_array(context: QueueContext) -> JobQueue:
    if context.arrays is None:
        return SortedQueue(by_arrival)
    return JobArrayQueue(context.setting.cluster, context.arrays)


def _by_urgency(context: QueueContext) -> JobQueue:
    scheduling = context.scheduling
    until_end = scheduling.preempts == "never"
    return UrgencyQueue(context.setting.cluster, scheduling.goals, context.is_service, until_end=until_end)


QUEUE_ORDERS: RuleRegistry[QueueOrder] = RuleRegistry(
    ORDER_NAMES,
    {
        "fcfs": sorted_by(by_arrival),
        "priority": QueueOrder(lambda context: SortedQueue(by_aged_priority(context.scheduling.aging_ms))),
        "srtf": sorted_by(by_run_time, lacks_run_time),
        "srsf": sorted_by(by_service, lacks_run_time),
        "urgency": QueueOrder(_by_urgency, lacks_run_time),
        "min_min": sorted_by(by_completion, lacks_completion_time),
        "arrival_ect": sorted_by(by_arrival_and_completion, lacks_completion_time),
        "swaf": sorted_by(by_allowance, lacks_latency),
        "drf": QueueOrder(_by_dominant_share),
        "clusters": QueueOrder(
            lambda context: WeightedFairQueue(context.scheduling.clusters or 1, context.scheduling.batch or 1)
        ),
        "las": QueueOrder(lambda context: SortedQueue(lambda job: (context.service_level(job.id), job.arrival_ms))),
        "inference_first": sorted_by(inference_first),
        "capacity": QueueOrder(_by_array),
    },
)
"""Name -> order."""


def queue_order(scheduling: Scheduling) -> QueueOrder:
    """Return the order that a policy names; the order of arrival if it names none."""
    return QUEUE_ORDERS[scheduling.order or "fcfs"]
