"""Rounds solved for a question, and those in which only placing counts, with a proven bound on what is placed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from placeopt.deadline import FOREVER, Deadline
from placeopt.edits import edit_instance
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Job, Plan
from placeopt.model.costs import Weights
from placeopt.model.policy import Changes, Postpone
from placeopt.solving.params import SolveParams

LEAST_S = 0.001
"""Time limit of a round that begins as its question ends: rounds take no limit of 0."""
ROUND_SHARE = 0.25
"""Part of the time of a question, or of what remains of it, that one of many rounds may take."""
NO_COSTS = Weights(communication=0, interference=0, fragmentation=0)


@dataclass(frozen=True)
class Limits:
    """Time of a whole question, and how its rounds are solved."""

    time_limit_s: float = 60.0
    threads: int | None = None
    seed: int = 0
    method: str = "auto"

    @property
    def params(self) -> SolveParams:
        """The options of a solve."""
        return SolveParams(method=self.method, time_limit_s=self.time_limit_s, threads=self.threads, seed=self.seed)


def solve_round(
    engine: Engine,
    instance: Instance,
    limits: Limits,
    deadline: Deadline = FOREVER,
    previous: Plan | None = None,
) -> Plan:
    """Return the plan of a round within its limits and those of its question, no worse than a plan that is known."""
    seconds = max(LEAST_S, min(limits.time_limit_s, deadline.left_s))
    options = replace(limits, time_limit_s=seconds).params.keywords()
    return engine.solve(instance, previous=previous, cancel=deadline, **options)


@dataclass(frozen=True)
class Trial:
    """
    A solved round in which only placing counts.

    The weight of the jobs placed by ``plan``, the proven maximum of any plan, and the weight of all jobs.
    """

    placed: int
    most: int
    total: int
    plan: Plan

    @property
    def fits(self) -> bool | None:
        """Whether all jobs fit: True with a plan, False with a proof that there is none, else None."""
        return True if self.placed == self.total else False if self.most < self.total else None


def placing_only(instance: Instance, weight: Callable[[Job], int] | None = None, *, changes: bool = False) -> Instance:
    """
    Return the round in which a job has its weight as value in every option, and costs do not count.

    ``weight`` of a job is at least 1 where it has to start; None: the GPU-milli that it requests. With ``changes``
    running jobs may be moved, shrunk and preempted as the policy allows, at no price; otherwise they stay. Minimal
    utilities hold as the policy states; look-ahead does not.
    """
    of = weight or (lambda job: max(1, job.gpu_milli))
    jobs = tuple(_with_value(job, of(job)) for job in instance.jobs)
    policy = instance.policy
    allowed = Changes()
    if changes:
        free = {"move_price": 0, "preemption_price": 0, "shrink_price_per_worker": 0}
        allowed = policy.changes.model_copy(update=free)
    postpone = Postpone() if policy.postpone.rule == "lookahead" else policy.postpone  # every job that fits starts
    new = {"weights": NO_COSTS, "changes": allowed, "postpone": postpone}
    return edit_instance(instance, jobs=jobs, policy=policy.model_copy(update=new), reading=())


def attempt(engine: Engine, instance: Instance, limits: Limits, deadline: Deadline = FOREVER) -> Trial:
    """Solve a round made by `placing_only`; one that is cut short returns what is known by then."""
    plan = solve_round(engine, instance, limits, deadline)
    value = plan.levels[0]
    total = sum(max(option.value for option in job.options) for job in instance.jobs)
    return Trial(value.objective, total if value.bound is None else min(value.bound, total), total, plan)


def _with_value(job: Job, value: int) -> Job:
    """Return the job with the same value in every option, and none for workers beyond its fewest."""
    options = tuple(option.valued(value) for option in job.options)
    return job.model_copy(update={"options": options, "conditions_unread": False})
