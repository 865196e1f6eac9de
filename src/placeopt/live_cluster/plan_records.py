"""Records between plans and the cluster: a job that begins to run, and the plan that places nothing."""

from __future__ import annotations

from placeopt.model import Instance, Plan, Policy, Running
from placeopt.model import Placement as PlacementRecord
from placeopt.model.base import trusted
from placeopt.model.plan import InstanceRef, Level, PolicyRef


def running_record(placement: PlacementRecord, started_ms: int, flags: tuple[bool, ...]) -> Running:
    """Return the record of a job that runs; ``flags``: whether it may be moved, shrunk, preempted."""
    movable, shrinkable, preemptible = flags
    fields = {
        "job": placement.job,
        "option": placement.option,
        "assignments": placement.assignments,
        "reached": placement.reached,
        "started_ms": started_ms,
        "expected_end_ms": None,
        "movable": movable,
        "shrinkable": shrinkable,
        "preemptible": preemptible,
        "protected_until_ms": None,
    }
    return trusted(Running, fields)


def empty_plan(instance: Instance, policy: Policy) -> Plan:
    """Return a plan that places nothing: it carries the policy by which what runs is judged."""
    return Plan(
        instance=InstanceRef(name=instance.name, digest=None, revision=instance.revision),
        policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
        status="feasible",
        limit="none",
        levels=(Level(name="value", sense="max", objective=0, bound=None),),
        gap=None,
    )
