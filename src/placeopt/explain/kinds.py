"""Waiting jobs by what they ask for: those that ask for the same wait for the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from placeopt.model import Instance, Job, Option, Plan
from placeopt.model.plan import UnplacedReason
from placeopt.problem.classes import class_key, label_keys


@dataclass
class JobKind:
    """Waiting jobs that ask for the same, whatever they are worth; the first stands for all."""

    first: Job
    jobs: list[str] = field(default_factory=list)
    planned: Counter[UnplacedReason] = field(default_factory=Counter)
    """Reasons that the plan states."""
    gpu_milli: int = 0
    """Of the smallest option."""


def job_kinds(instance: Instance, plan: Plan) -> list[JobKind]:
    """Return the waiting jobs of a plan by what they ask for, those of most jobs first."""
    record = {job.id: job for job in instance.jobs}
    kinds: dict[tuple[object, ...], JobKind] = {}
    keys, policy = label_keys(instance.jobs), plan.policy.values
    asked: dict[int, tuple[Option, ...]] = {}  # jobs from columns share their options
    traffic = {} if policy.postpone.rule == "utility" else {"communication": None, "profile": None}
    for unplaced in plan.unplaced:
        job = record[unplaced.job]
        options = asked.get(id(job.options))
        if options is None:
            options = asked[id(job.options)] = tuple(
                option.valued(0).model_copy(update={"id": "o", "cost_milli": 0}) for option in job.options
            )
        alike = job.model_copy(update={"options": options, **traffic})
        key = class_key(alike, policy, instance.holds_now, instance.now_ms, keys)
        kind = kinds.setdefault(key, JobKind(job))
        if not kind.jobs:
            kind.gpu_milli = min(option.least_gpu_milli for option in job.options)
        kind.jobs.append(job.id)
        kind.planned[unplaced.reason] += 1
    return sorted(kinds.values(), key=lambda kind: -len(kind.jobs))
