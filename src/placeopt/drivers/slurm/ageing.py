"""
What a waiting job is worth: the more, the longer it waits in proportion to what it asks for.

The response ratio (Hansen, highest response ratio next, 1971): waiting time and time limit together, over the time
limit. Of jobs that exclude each other those go first that are worth most together.
"""

from __future__ import annotations

from typing import Literal

from placeopt.importers.priority_rule import PriorityRule
from placeopt.model import Instance, Job, Option
from placeopt.model.base import MAX_VALUE

Worth = Literal["jobs", "gpus"]
STEPS = 4
"""Parts of a ratio of 1 that a value tells apart: a job's record changes when its wait has grown by as much."""
LIMIT_MIN_MS = 60_000
"""Shorter time limits, and absent ones, count as a minute: Slurm counts in minutes."""
RATIO_MAX = 1000
"""A job is worth at most as many times what it was when it came."""


def aged(instance: Instance, rule: PriorityRule, worth: Worth) -> Instance:
    """
    Return the instance with waiting jobs worth `STEPS` times their response ratio, rounded down, times a base.

    ``worth``: ``gpus``: the base is the job's value in the instance, which keeps GPUs busy; ``jobs``: it is the value
    of one of its GPUs, the same for every job of a class, which keeps the mean wait short. ``rule``: That of the values
    in the instance; a job without GPUs counts as one GPU of no class.
    """
    runs = {held.job for held in instance.running}
    jobs = tuple(job if job.id in runs else _aged(job, instance.now_ms, rule, worth) for job in instance.jobs)
    return instance.model_copy(update={"jobs": jobs})


def ratio_steps(waited_ms: int, limit_ms: int | None) -> int:
    """Return `STEPS` times the response ratio, rounded down; `STEPS` for a job that has just come."""
    limit = max(limit_ms or 0, LIMIT_MIN_MS)
    return min(STEPS * RATIO_MAX, STEPS + STEPS * max(0, waited_ms) // limit)


def _aged(job: Job, now_ms: int, rule: PriorityRule, worth: Worth) -> Job:
    waited_ms = now_ms - job.arrival_ms
    options = tuple(
        option.model_copy(
            update={"value": min(MAX_VALUE, _base(option, rule, worth) * ratio_steps(waited_ms, option.run_time_ms))}
        )
        for option in job.options
    )
    return job.model_copy(update={"options": options})


def _base(option: Option, rule: PriorityRule, worth: Worth) -> int:
    if worth == "gpus":
        return option.value
    gpus = sum(leaf.workers * leaf.demand.gpus for leaf in option.leaves)
    return option.value // gpus if gpus else rule.value_per_gpu
