"""The queue that a policy asks for."""

from __future__ import annotations

from collections.abc import Callable

from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.simulation.scheduling.drf_queue import Turns
from placeopt.simulation.scheduling.job_arrays import ArrayTurns, Division
from placeopt.simulation.scheduling.waiting_queue import Queue, Waiting, by_aged_priority
from placeopt.simulation.scheduling.weighted_fair_queue import Clusters


def make_queue(
    scheduling: Scheduling, scenario: Scenario, division: Division | None, level: Callable[[str], int]
) -> Queue:
    """Return the queue of rounds that place job by job; ``level``: of attained service, by job."""
    match scheduling.order:
        case "drf" if division is None:
            return Turns(scenario.cluster)
        case "clusters":
            return Clusters(scheduling.clusters or 1, scheduling.batch or 1)
        case "las":
            return Waiting(lambda job: (level(job.id), job.arrival_ms))
        case "priority" if scheduling.aging_ms is not None:
            return Waiting(by_aged_priority(scheduling.aging_ms))
        case _ if division is not None:
            return ArrayTurns(scenario.cluster, division, fair=scheduling.order == "drf")
        case _:
            return Waiting(scheduling.order or "fcfs")
