"""Orders of the queue in rounds that place job by job: the field ``order`` of a policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, cast

from pydantic import Field

from placeopt.model import Job
from placeopt.model.base import Milliseconds
from placeopt.scheduling.attained_service import Levels
from placeopt.scheduling.division import Division
from placeopt.scheduling.drf_queue import DrfQueue
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.rules import QUEUE_ORDERS, Rule
from placeopt.scheduling.setting import Setting
from placeopt.scheduling.urgency_queue import Goals, UrgencyQueue
from placeopt.scheduling.waiting_queue import (
    JobQueue,
    Key,
    LacksEstimate,
    SortedQueue,
    by_aged_priority,
    by_allowance,
    by_arrival,
    by_run_time,
    by_service,
    lacks_latency,
    lacks_run_time,
)


@dataclass(frozen=True)
class QueueContext:
    """What a queue can be made from."""

    setting: Setting
    scheduling: Scheduling
    division: Division | None
    """None: the policy divides the cluster into no parts."""
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
    if context.division is not None:
        return context.division.queue(cluster, fair=True)
    order = context.scheduling.order
    return DrfQueue(cluster, gpus_alone=isinstance(order, DominantShare) and order.dominant == "gpu")


def _by_priority(context: QueueContext) -> JobQueue:
    order = context.scheduling.order
    return SortedQueue(by_aged_priority(order.aging_ms if isinstance(order, Priority) else None))


def _by_level(context: QueueContext) -> JobQueue:
    return SortedQueue(lambda job: (context.service_level(job.id), job.arrival_ms))


def _by_urgency(context: QueueContext) -> JobQueue:
    goals, until_end = cast(Goals, context.scheduling.order), context.scheduling.preempts.rule == "never"
    return UrgencyQueue(context.setting.cluster, goals, context.is_service, until_end=until_end)


class Priority(Rule):
    """The highest priority first."""

    aging_ms: Annotated[Milliseconds, Field(ge=1)] | None = None
    """Waiting time that counts as much as one unit of priority. None: no aging."""


class DominantShare(Rule):
    """The user with the least dominant share first; of a divided cluster that is the order of each array's own jobs."""

    dominant: Literal["largest", "gpu"] = "largest"
    """
    What a user's dominant share is of: the resource of which the user has the largest part, or GPUs alone (SODA's
    KELP-DRF). Arrays are compared by the largest.
    """

    def check(self, scheduling: Scheduling) -> None:
        if scheduling.strict:
            raise ValueError("strict: 'drf' weighs queues against each other; there is no first job to wait for")
        if self.dominant != "largest" and scheduling.divides is not None:
            raise ValueError("dominant: goes with a cluster that is not divided")


QUEUE_ORDERS.register("fcfs", sorted_by(by_arrival))
QUEUE_ORDERS.register("priority", QueueOrder(_by_priority), Priority)
QUEUE_ORDERS.register("srtf", sorted_by(by_run_time, lacks_run_time))
QUEUE_ORDERS.register("srsf", sorted_by(by_service, lacks_run_time))
QUEUE_ORDERS.register("urgency", QueueOrder(_by_urgency, lacks_run_time), Goals)
QUEUE_ORDERS.register("swaf", sorted_by(by_allowance, lacks_latency))
QUEUE_ORDERS.register("drf", QueueOrder(_by_dominant_share), DominantShare)
QUEUE_ORDERS.register("las", QueueOrder(_by_level), Levels)


def queue_order(scheduling: Scheduling) -> QueueOrder:
    """Return the order that a policy names; the order of arrival if it names none."""
    return QUEUE_ORDERS[scheduling.order or "fcfs"]
