"""What a policy makes of a job's request in a round: the option that it runs in, and what that is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from placeopt.model import Cluster, Job, Option
from placeopt.model.base import MAX_VALUE
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.resource_estimator import best_option
from placeopt.scheduling.rules import OPTION_CHOICES

VALUE_OF_MS = 10**11
"""Value of a job of one millisecond where the value of a job is its rate."""


def requests(scheduling: Scheduling, cluster: Cluster) -> Callable[[Job], Job]:
    """Return what makes a job, as a policy believes it to be, as it requests it: by its ``choice`` and ``worth``."""
    choice = OPTION_CHOICES[scheduling.choice]
    score = None if choice is None else choice(cluster)

    def requested(job: Job) -> Job:
        if score is not None and len(job.options) > 1:
            job = job.model_copy(update={"options": (best_option(job.options, score),)})
        if scheduling.worth == "rate":
            job = job.model_copy(update={"options": tuple(by_rate(option) for option in job.options)})
        return job

    return requested


def as_requested(jobs: Iterable[Job], scheduling: Scheduling, cluster: Cluster) -> tuple[Job, ...]:
    """Return jobs as a policy requests them on a cluster."""
    return tuple(map(requests(scheduling, cluster), jobs))


def by_rate(option: Option) -> Option:
    """Return the option with its rate as value: ``VALUE_OF_MS`` / its predicted run time, at least 1."""
    if not option.run_time_ms or option.workers_min is not None:
        return option
    value = min(MAX_VALUE, max(1, VALUE_OF_MS // option.run_time_ms))
    return option.model_copy(update={"value": value})
