"""Run time estimates that a policy goes by and jobs do not state; and the truth in their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from placeopt.model import Job
from placeopt.model.scenario import Arrival, Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.problem.allowance import URGENT
from placeopt.solving.methods import method_of

NAMED = 10
"""Jobs that are listed by name."""


@dataclass(frozen=True)
class MissingEstimates:
    """Jobs without a run time estimate under a policy that goes by one: it cannot tell them apart by it."""

    jobs: int
    first: tuple[str, ...]
    """The first ten of them, in the order of the scenario."""
    read_by: tuple[str, ...]
    """The parts of the policy that read estimates of these jobs."""

    @property
    def words(self) -> str:
        """Say what is missing, after the name of the policy."""
        names = ", ".join(self.first) + (f" and {self.jobs - len(self.first):,} more" if self.jobs > NAMED else "")
        jobs = "1 job states" if self.jobs == 1 else f"{self.jobs:,} jobs state"
        return f"goes by run time estimates ({', '.join(self.read_by)}), and {jobs} none: {names}"


def missing_estimates(scenario: Scenario, scheduling: Scheduling) -> MissingEstimates | None:
    """
    Return which jobs lack an estimate that the policy goes by; None if it goes by none, or none is missing.

    An estimate is ``run_time_ms`` of a job's options. An expected completion time stands in for it where the policy
    asks for that alone, and ``latency_ms`` where it asks for latencies (GENIE). Services have no run time.
    """
    parts = _parts(scheduling)
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
    Return the scenario with perfect predictions: every option's ``run_time_ms`` is the true one, stated before or not.

    The truth stays what it was; services keep no run time. Latencies and rates that jobs state stay.
    """
    return scenario.model_copy(update={"arrivals": tuple(map(_known, scenario.arrivals))})


def _known(arrival: Arrival) -> Arrival:
    if arrival.service:
        return arrival
    options = tuple(
        option.model_copy(update={"run_time_ms": arrival.actual_ms(option.id)}) for option in arrival.job.options
    )
    return arrival.model_copy(update={"job": arrival.job.model_copy(update={"options": options})})


def _parts(scheduling: Scheduling) -> dict[str, Callable[[Arrival], bool]]:
    """Return the parts of a policy that read run times, and which jobs lack what they read."""
    parts: dict[str, Callable[[Arrival], bool]] = {}
    order, preempts = scheduling.order, scheduling.preempts
    if order in ("srtf", "srsf"):
        parts[f"order {order}"] = _no_run_time
    if order in ("min_min", "arrival_ect"):
        parts[f"order {order}"] = lambda arrival: _no_due(arrival.job)
    if order == "swaf" or _is_swaf(scheduling):
        parts["order swaf"] = lambda arrival: _no_latency(arrival.job)
    if preempts in ("srtf", "srsf"):
        parts[f"preempts {preempts}"] = _no_run_time
    if preempts != "never" and scheduling.restarts_max_thousandths is not None:
        parts["limit of restarts"] = _no_run_time
    if scheduling.worth == "rate":
        parts["worth by rate"] = lambda arrival: _no_run_time(arrival) and arrival.job.options[0].workers_min is None
    if scheduling.arrays is not None and scheduling.arrays.parts == "demand":
        parts["parts of arrays by demand"] = _no_run_time
    if scheduling.policy.postpone.rule == "lookahead":
        parts["look-ahead"] = _no_run_time
    return parts


def _is_swaf(scheduling: Scheduling) -> bool:
    rule = method_of(scheduling.method).greedy
    return rule.shape == "swaf" or (rule.order or scheduling.policy.order) == "swaf"


def _no_run_time(arrival: Arrival) -> bool:
    return any(option.run_time_ms is None for option in arrival.job.options)


def _no_latency(job: Job) -> bool:
    return any(option.run_time_ms is None and option.latency_ms is None for option in job.options)


def _no_due(job: Job) -> bool:
    """Tell whether a job has no expected completion time, and nothing that one follows from (GENIE eq. 9)."""
    return job.expected_completion_ms is None and job.priority < URGENT and _no_latency(job)
