"""
What a waiting job is worth: the more, the longer it waits in proportion to what it asks for.

The response ratio (Hansen, highest response ratio next, 1971): waiting time and time limit together, over the time
limit. A job is worth its GPUs times the ratio, so rounds fill the cluster, and of jobs that exclude each other the one
whose wait is longest for its length goes first.
"""

from __future__ import annotations

from placeopt.model import Instance, Job

STEPS = 4
"""Parts of a ratio of 1 that a value tells apart: a job's record changes when its wait has grown by as much."""
LIMIT_MIN_MS = 60_000
"""Shorter time limits, and absent ones, count as a minute: Slurm counts in minutes."""
RATIO_MAX = 1000
"""A job is worth at most as many times what it was when it came."""


def aged(instance: Instance) -> Instance:
    """Return the instance with the values of waiting jobs multiplied by `STEPS` times their ratio, rounded down."""
    runs = {held.job for held in instance.running}
    jobs = tuple(job if job.id in runs else _aged(job, instance.now_ms) for job in instance.jobs)
    return instance.model_copy(update={"jobs": jobs})


def ratio_steps(waited_ms: int, limit_ms: int | None) -> int:
    """Return `STEPS` times the response ratio, rounded down; `STEPS` for a job that has just come."""
    limit = max(limit_ms or 0, LIMIT_MIN_MS)
    return min(STEPS * RATIO_MAX, STEPS + STEPS * max(0, waited_ms) // limit)


def _aged(job: Job, now_ms: int) -> Job:
    options = tuple(
        option.model_copy(update={"value": option.value * ratio_steps(now_ms - job.arrival_ms, option.run_time_ms)})
        for option in job.options
    )
    return job.model_copy(update={"options": options})
