"""A decision as a plan of the round that it was made in."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from placeopt.model import Instance, Placement, Plan
from placeopt.model.plan import InstanceRef, Level, Moved, PolicyRef, Preempted, Shrunk, Unplaced, UnplacedReason
from placeopt.scheduling.decision import Decision
from placeopt.scheduling.placement_amounts import Shares, gpu_milli_of, workers_of

WhyWaiting = Callable[[str], tuple[UnplacedReason, str]]
"""Job that waits -> the class of its reason, and the reason in words."""


def plan_of_decision(decision: Decision, before: Instance, shares: Shares, why_waiting: WhyWaiting) -> Plan:
    """
    Return the plan of a whole round that carries out a decision; nothing is proven by it.

    ``before``: The round, whose policy is that of the decision.
    """
    held = {running.job: running.placement for running in before.running}
    decided = (*decision.start, *decision.move, *decision.resize)
    changed = {one.job: one for one in decided if one.job not in held or one != shares.requested(held[one.job])}
    again = {placement.job for placement in decision.start} & held.keys()
    stopped = [job for job in decision.stop if job not in again]
    gone = set(stopped)
    stay = {job: placement for job, placement in held.items() if job not in changed and job not in gone}
    placed = {**stay, **changed}
    shrunk = [placement for placement in decision.resize if workers_of(placement) < workers_of(held[placement.job])]
    fewer = {placement.job for placement in shrunk}
    moved = [
        *(placement for placement in decision.start if placement.job in again and placement.job in changed),
        *decision.move,
        *(placement for placement in decision.resize if placement.job not in fewer),
    ]
    policy = before.policy
    return Plan(
        instance=InstanceRef(name=before.name, digest=before.digest, revision=before.revision),
        policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
        status="feasible",
        limit="none",
        levels=(Level(name="value", sense="max", objective=_worth(before, placed), bound=None),),
        gap=None,
        placements=shares.granted(tuple(placed.values())),
        unplaced=tuple(
            Unplaced(job=job.id, reason=reason, detail=detail)
            for job in before.jobs
            if job.id not in placed
            for reason, detail in [why_waiting(job.id)]
        ),
        moved=tuple(
            Moved.model_validate({"job": placement.job, "from": _nodes(held[placement.job]), "to": _nodes(placement)})
            for placement in moved
        ),
        shrunk=tuple(Shrunk(job=placement.job, workers=workers_of(placement)) for placement in shrunk),
        preempted=tuple(
            Preempted(job=job, freed_gpu_milli=gpu_milli_of(shares.requested(held[job]))) for job in stopped
        ),
    )


def _worth(before: Instance, placed: Mapping[str, Placement]) -> int:
    jobs = {job.id: job for job in before.jobs}
    options = ((jobs[job].option(held.option), workers_of(held)) for job, held in placed.items())
    return sum(option.value if option.groups else option.worth(workers) for option, workers in options)


def _nodes(placement: Placement) -> tuple[str, ...]:
    return tuple(assignment.node for assignment in placement.assignments)
