"""The queue that a policy asks for."""

from __future__ import annotations

from collections.abc import Callable

from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.simulation.scheduling.drf_queue import DrfQueue
from placeopt.simulation.scheduling.job_arrays import ArrayDivision, JobArrayQueue
from placeopt.simulation.scheduling.waiting_queue import JobQueue, SortedQueue, by_aged_priority
from placeopt.simulation.scheduling.weighted_fair_queue import WeightedFairQueue


def make_queue(
    scheduling: Scheduling, scenario: Scenario, division: ArrayDivision | None, level: Callable[[str], int]
) -> JobQueue:
    """Return the queue of rounds that place job by job; ``level``: of attained service, by job."""
    match scheduling.order:
        case "drf" if division is None:
            return DrfQueue(scenario.cluster)
        case "clusters":
            return WeightedFairQueue(scheduling.clusters or 1, scheduling.batch or 1)
        case "las":
            return SortedQueue(lambda job: (level(job.id), job.arrival_ms))
        case "priority" if scheduling.aging_ms is not None:
            return SortedQueue(by_aged_priority(scheduling.aging_ms))
        case _ if division is not None:
            return JobArrayQueue(scenario.cluster, division, fair=scheduling.order == "drf")
        case _:
            return SortedQueue(scheduling.order or "fcfs")
