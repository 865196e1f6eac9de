"""The plan of a round whose time was over before it was compiled: everything stays, and no waiting job was reached."""

from __future__ import annotations

import time

from placeopt.check import judge
from placeopt.environment import versions
from placeopt.errors import BadInput
from placeopt.model import Instance, Job, Plan, Policy
from placeopt.model.plan import InstanceRef, Level, PolicyRef, Seconds, Stage, Unplaced
from placeopt.solving.draft import standing_records
from placeopt.solving.params import SolveParams


def plan_without_time(
    instance: Instance, policy: Policy, why: str, params: SolveParams, *, started: float, read_s: float | None
) -> Plan:
    """
    Return a plan for the waiting jobs (``plan.asked``) that places none of them; running jobs stay as they are.

    It states no costs: these need the distances for which there was no time. Its bound on value is what all waiting
    jobs are worth in their best options, whether they fit or not.

    Parameters
    ----------
    instance, policy
        The round, and the policy that the plan names.
    why
        What was not done in time.
    params
        How to solve; the plan states the seed, and no times in deterministic mode.
    started
        When the call began, on ``time.monotonic``.
    read_s
        Seconds that reading took.

    Raises
    ------
    BadInput
        If the running placements contradict each other.
    """
    running = {held.job for held in instance.running}
    waiting = [job for job in instance.jobs if job.id not in running]
    bound, unpriced = sum(_most_value(job) for job in waiting), policy.weights.any_cost
    now, timed = time.monotonic(), not params.deterministic
    plan = Plan(
        format_version=1,
        instance=InstanceRef(name=instance.name, digest=None, revision=instance.revision),
        policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
        status="feasible" if bound or unpriced else "optimal",
        limit="time" if bound or unpriced else "none",
        asked=tuple(job.id for job in waiting),
        levels=(Level(name="value", sense="max", objective=0, bound=bound),),
        gap=float(bound) if bound else None if unpriced else 0.0,
        bound_relaxes=("everything",) if bound else (),
        placements=(),
        unplaced=tuple(Unplaced(job=job.id, reason="not_reached", detail=f"stopped by time: {why}") for job in waiting),
        stages=(
            Stage(
                name="compile",
                outcome="skipped",
                detail=why,
                objective=0,
                bound=bound,
                seconds=now - started if timed else None,
            ),
        ),
        seconds=Seconds(read=read_s, compile=now - started - (read_s or 0.0), total=now - started)
        if timed
        else Seconds(),
        seed=params.seed,
        versions=versions(),
    )
    found, standing = judge(instance, plan)
    if found:
        raise BadInput(f"running placements: {found[0].rule}: {found[0].message}")
    return plan.model_copy(update={"standing": standing_records(standing)}) if standing else plan


def _most_value(job: Job) -> int:
    """Return the value of a job in its best option, with as many workers as that takes."""
    return max(
        (
            option.value + option.value_per_extra_worker * (option.workers - (option.workers_min or option.workers))
            for option in job.options
        ),
        default=0,
    )
