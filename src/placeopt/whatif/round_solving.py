"""Can these jobs all be placed, and how many of them? Rounds in which only that counts, with a proven bound."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Job, Plan
from placeopt.model.policy import Changes, Postpone, Weights
from placeopt.whatif.instance_edit import edit_instance, requested_gpu_milli

NO_COSTS = Weights(communication=0, interference=0, fragmentation=0)


@dataclass(frozen=True)
class Limits:
    """How long a question may take, and with what; ``time_limit_s`` is of one round."""

    time_limit_s: float = 10.0
    threads: int | None = None
    seed: int = 0
    method: str = "auto"


@dataclass(frozen=True)
class Trial:
    """
    A round in which only placing counts.

    Attributes
    ----------
    placed, most
        Weight of the jobs placed, and the most that any plan places, proven.
    total
        Weight of all jobs.
    plan
        The plan behind ``placed``, of the instance that was solved.
    """

    placed: int
    most: int
    total: int
    plan: Plan

    @property
    def fits(self) -> bool | None:
        """Whether all jobs fit: there is a plan, it is proven that there is none, or, as None, neither."""
        return True if self.placed == self.total else False if self.most < self.total else None


def placing_only(instance: Instance, weight: Callable[[Job], int] | None = None, *, changes: bool = False) -> Instance:
    """
    Return the round in which a job is worth its weight, however it runs, and nothing else counts.

    Minimal utilities hold as the policy says; look-ahead does not.

    Parameters
    ----------
    weight
        Of a job, at least 1; left out, the GPU-milli it asks for.
    changes
        Whether running jobs may be moved, shrunk and preempted as the policy lets them, at no price; otherwise they
        stay.
    """
    of = weight or (lambda job: max(1, requested_gpu_milli(job)))
    jobs = tuple(_worth(job, of(job)) for job in instance.jobs)
    policy = instance.policy
    kept = Changes()
    if changes:
        free = {"move_price": 0, "preemption_price": 0, "shrink_price_per_worker": 0}
        kept = policy.changes.model_copy(update=free)
    postpone = Postpone() if policy.postpone.rule == "lookahead" else policy.postpone  # who could start, starts
    new = {"weights": NO_COSTS, "changes": kept, "postpone": postpone}
    return edit_instance(instance, jobs=jobs, policy=policy.model_copy(update=new))


def attempt(engine: Engine, instance: Instance, limits: Limits, cancel: threading.Event | None = None) -> Trial:
    """Solve a round made by `placing_only`; one that is cancelled says what is known by then."""
    plan = engine.solve(
        instance,
        method=limits.method,
        time_limit_s=limits.time_limit_s,
        threads=limits.threads,
        seed=limits.seed,
        cancel=cancel,
    )
    value = plan.levels[0]
    total = sum(max(option.value for option in job.options) for job in instance.jobs)
    return Trial(value.objective, total if value.bound is None else min(value.bound, total), total, plan)


def _worth(job: Job, weight: int) -> Job:
    """Return the job with every option worth the same, and no more workers than it needs worth anything."""
    options = tuple(option.model_copy(update={"value": weight, "value_per_extra_worker": 0}) for option in job.options)
    return job.model_copy(update={"options": options})
