"""Plans in one order: by jobs placed of each priority, the highest first, then by GPUs; values that say the same."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass

from placeopt.linear import MAX_EXACT
from placeopt.model import Group, Instance, Job, Option, Placement


@dataclass(frozen=True)
class Score:
    """Jobs placed of each band, the highest priorities first, then thousandths of GPUs: more is better."""

    jobs: tuple[int, ...]
    gpu_milli: int

    def __lt__(self, other: Score) -> bool:
        return (self.jobs, self.gpu_milli) < (other.jobs, other.gpu_milli)


class Ranking:
    """
    The order of plans of a round, of some jobs: others are placed in all plans alike.

    A job is worth more than all of lower bands and all GPUs together, and a GPU share its part of ``unit``; so the
    value of a plan is its score in a notation of mixed radix, and a bound on the value bounds the score.
    """

    def __init__(self, instance: Instance, counted: Set[str]) -> None:
        self.jobs = {job.id: job for job in instance.jobs if job.id in counted}
        number = Counter(job.priority for job in self.jobs.values())
        priorities = sorted(number, reverse=True)
        shares = [_least_share(option) for job in self.jobs.values() for option in job.options]
        self.unit = math.gcd(*shares) or 1
        self._gpus = sum(job.gpu_milli for job in self.jobs.values()) // self.unit
        options = max((len(job.options) for job in self.jobs.values()), default=1)
        for apart in range(min(len(priorities), MAX_EXACT.bit_length()), -1, -1):
            together = priorities[apart:]
            self.bands = [(one, one) for one in priorities[:apart]]
            self.bands += [(together[0], together[-1])] if together else []
            self.sizes = [sum(number[one] for one in number if low <= one <= high) for high, low in self.bands]
            total, self._worths = self._weighted()
            if total * options < MAX_EXACT:  # else the lowest priorities count alike
                break
        self._band = {one: b for b, (high, low) in enumerate(self.bands) for one in priorities if low <= one <= high}

    def _weighted(self) -> tuple[int, list[int]]:
        """Return what all jobs are worth together, and one of each band."""
        total, worths = self._gpus, []
        for size in reversed(self.sizes):
            worths.append(total + 1)
            total += size * (total + 1)
        return total, worths[::-1]

    def valued(self, job: Job) -> Job:
        """Return the job with its value in this order; one that does not count is worth nothing."""
        if job.id not in self.jobs:
            return job.model_copy(update={"options": tuple(option.valued(0) for option in job.options)})
        worth = self._worths[self._band[job.priority]]
        return job.model_copy(update={"options": tuple(self._option(option, worth) for option in job.options)})

    def _option(self, option: Option, worth: int) -> Option:
        fields = {"value": worth + option.gpu_milli // self.unit}
        if option.groups:
            parts = tuple(self._part(group, may_miss=False) for group in option.groups)
            return option.model_copy(update={**fields, "groups": parts})
        return option.model_copy(update={**fields, "value_per_worker": self._each(option, may_miss=False)})

    def _part(self, group: Group, *, may_miss: bool) -> Group:
        may_miss = may_miss or group.optional
        if group.groups:
            return group.model_copy(update={"groups": tuple(self._part(p, may_miss=may_miss) for p in group.groups)})
        return group.model_copy(update={"value_per_worker": self._each(group, may_miss=may_miss)})

    def _each(self, leaf: Group, *, may_miss: bool) -> int:
        """Return what each missing worker takes away."""
        may_miss = may_miss or leaf.workers_min is not None
        return leaf.demand.gpus * leaf.demand.gpu_milli // self.unit if may_miss else 0

    def score(self, placements: Iterable[Placement]) -> Score:
        """Return the score of a plan."""
        jobs, gpu_milli = [0] * len(self.bands), 0
        for placement in placements:
            job = self.jobs.get(placement.job)
            if job is not None:
                jobs[self._band[job.priority]] += 1
                gpu_milli += requested_milli(job.option(placement.option), placement)
        return Score(tuple(jobs), gpu_milli)

    def most(self, bound: int | None) -> Score:
        """Return the best score of plans whose value is at most ``bound``; None: of any value."""
        left, jobs = MAX_EXACT if bound is None else bound, []
        for size, worth in zip(self.sizes, self._worths, strict=True):
            jobs.append(min(size, left // worth))
            left -= jobs[-1] * worth
        return Score(tuple(jobs), self.unit * min(self._gpus, left))


def requested_milli(option: Option, placement: Placement) -> int:
    """Return the thousandths of GPUs that the workers of a placement request, without what is granted above."""
    leaves = {leaf.id if option.groups else None: leaf.demand for leaf in option.leaves}
    return sum(
        len(part.workers) * leaves[part.group].gpus * leaves[part.group].gpu_milli for part in placement.assignments
    )


def _least_share(option: Option) -> int:
    return math.gcd(*(leaf.demand.gpus * leaf.demand.gpu_milli for leaf in option.leaves))


def gained(after: Score, before: Score) -> tuple[int, int]:
    """Return the jobs and the thousandths of GPUs that one score has beyond another."""
    return sum(after.jobs) - sum(before.jobs), after.gpu_milli - before.gpu_milli
