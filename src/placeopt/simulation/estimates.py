"""Run time estimates that a policy reads and jobs do not state; and actual run times in their place."""

from __future__ import annotations

from dataclasses import dataclass

from placeopt.model.scenario import Arrival, Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.simulation.scheduling.preemption_rules import PREEMPTION_RULES
from placeopt.simulation.scheduling.queue_orders import queue_order
from placeopt.simulation.scheduling.read_estimates import LacksEstimate, lacks_latency, lacks_run_time
from placeopt.simulation.scheduling.scheduler import uses_allowances

NAMED = 10
"""Number of jobs that are listed by name."""


@dataclass(frozen=True)
class MissingEstimates:
    """Jobs without a run time estimate under a policy that reads one and cannot distinguish them by it."""

    jobs: int
    first: tuple[str, ...]
    """The first ten of them, in the order of the scenario."""
    read_by: tuple[str, ...]
    """The parts of the policy that read estimates of these jobs."""

    @property
    def words(self) -> str:
        """What is missing, in words that follow the name of the policy."""
        names = ", ".join(self.first) + (f" and {self.jobs - len(self.first):,} more" if self.jobs > NAMED else "")
        jobs = "1 job states" if self.jobs == 1 else f"{self.jobs:,} jobs state"
        return f"goes by run time estimates ({', '.join(self.read_by)}), and {jobs} none: {names}"


def missing_estimates(scenario: Scenario, scheduling: Scheduling) -> MissingEstimates | None:
    """
    Return which jobs lack an estimate that the policy reads; None if it reads none, or none is missing.

    An estimate is ``run_time_ms`` of a job's options. An expected completion time replaces it where the policy reads
    that alone, and ``latency_ms`` where it reads latencies (GENIE). Services have no run time.
    """
    parts = _reading_parts(scheduling)
    jobs: dict[str, None] = {}
    read_by: dict[str, None] = {}
    for arrival in scenario.arrivals if parts else ():
        for words, lacks in parts.items():
            if not arrival.service and lacks(arrival):
                jobs[arrival.job.id] = None
                read_by[words] = None
    if not jobs:
        return None
    return MissingEstimates(len(jobs), tuple(jobs)[:NAMED], tuple(words for words in parts if words in read_by))


def with_actual_estimates(scenario: Scenario) -> Scenario:
    """
    Return the scenario with perfect predictions: every option's ``run_time_ms`` is the actual one, stated or not.

    Actual run times do not change; services get no run time. Stated latencies and rates stay.
    """
    return scenario.model_copy(update={"arrivals": tuple(map(_with_actual, scenario.arrivals))})


def _with_actual(arrival: Arrival) -> Arrival:
    if arrival.service:
        return arrival
    options = tuple(
        option.model_copy(update={"run_time_ms": arrival.actual_ms(option.id)}) for option in arrival.job.options
    )
    return arrival.model_copy(update={"job": arrival.job.model_copy(update={"options": options})})


def _reading_parts(scheduling: Scheduling) -> dict[str, LacksEstimate]:
    """Return the parts of a policy that read run times, and whether a job lacks what they read."""
    order, preemption = queue_order(scheduling), PREEMPTION_RULES[scheduling.preempts]
    parts: dict[str, LacksEstimate] = {}
    if order.lacks_estimate is not None:
        parts[f"order {scheduling.order}"] = order.lacks_estimate
    if uses_allowances(scheduling):
        parts["order swaf"] = lacks_latency
    if preemption.lacks_estimate is not None:
        parts[f"preempts {scheduling.preempts}"] = preemption.lacks_estimate
    if preemption.stops_jobs and scheduling.restarts_max_thousandths is not None:
        parts["limit of restarts"] = lacks_run_time
    if scheduling.worth == "rate":
        parts["worth by rate"] = lambda arrival: lacks_run_time(arrival) and arrival.job.options[0].workers_min is None
    if scheduling.arrays is not None and scheduling.arrays.parts == "demand":
        parts["parts of arrays by demand"] = lacks_run_time
    if scheduling.policy.postpone.rule == "lookahead":
        parts["look-ahead"] = lacks_run_time
    return parts
