"""Plans in code, for the referee and whoever reads plans."""

from collections.abc import Iterable, Mapping
from typing import Any

from helpers.granted_shares import with_due
from placeopt.build import Where, placement
from placeopt.model import (
    Instance,
    InstanceRef,
    Job,
    Level,
    Moved,
    Placement,
    Plan,
    Policy,
    PolicyRef,
    Preempted,
    Shrunk,
    Unplaced,
    Weights,
)

NO_COSTS = Weights(communication=0, interference=0, fragmentation=0)
"""Value alone counts: which jobs start is decided by rules, and costs take most of the time."""


def plan_for(
    instance: Instance,
    placed: Mapping[str, Where | Placement],
    *,
    policy: Policy | None = None,
    moved: Iterable[str] = (),
    shrunk: Iterable[str] = (),
    preempted: Iterable[str] = (),
    asked: Iterable[str] | None = None,
    **fields: Any,
) -> Plan:
    """
    Build the plan that places the jobs of ``placed`` and leaves the others unplaced.

    Running jobs that are neither in ``placed`` nor in ``preempted`` stay where they are. All hold what is granted to
    them, but for jobs whose ``Placement`` is given: these hold what it says. Jobs in ``moved``, ``shrunk`` and
    ``preempted`` get true entries; to make false ones, give whole entries through ``fields``, such as ``unplaced``.
    A plan for some jobs has those ``asked`` for, of which the ones that are not in ``placed`` wait, and nothing else.
    """
    jobs = {job.id: job for job in instance.jobs}
    runs = {running.job: running for running in instance.running}
    preempted = tuple(preempted)
    placements = {
        name: Placement(job=name, option=held.option, assignments=held.assignments)
        for name, held in runs.items()
        if name not in preempted
    }
    for name, where in placed.items():
        placements[name] = where if isinstance(where, Placement) else placement(jobs[name], where)
    policy = instance.policy if policy is None else policy
    given = {name: where for name, where in placed.items() if isinstance(where, Placement)}
    placements = {held.job: given.get(held.job, held) for held in with_due(instance, placements.values(), policy)}
    waiting = [name for name in jobs if name not in placements]
    if asked is not None:
        asked = fields["asked"] = tuple(asked)
        placements = {name: placements[name] for name in placed}
        waiting = [name for name in asked if name not in placed]
        fields.setdefault("instance", InstanceRef(name=instance.name, digest=None, revision=instance.revision))
    return Plan(
        **{
            "instance": InstanceRef(name=instance.name, digest=instance.digest, revision=instance.revision),
            "policy": PolicyRef(name=policy.name, digest=policy.digest, values=policy),
            "status": "feasible",
            "limit": "none",
            "levels": (Level(name="value", sense="max", objective=0, bound=None),),
            "gap": None,
            "placements": tuple(placements.values()),
            "unplaced": tuple(Unplaced(job=name, reason="outvoted", detail="no room") for name in waiting),
            "moved": tuple(
                Moved.model_validate({"job": name, "from": _nodes(runs[name]), "to": _nodes(placements[name])})
                for name in moved
            ),
            "shrunk": tuple(
                Shrunk(job=name, workers=sum(len(a.workers) for a in placements[name].assignments)) for name in shrunk
            ),
            "preempted": tuple(
                Preempted(job=name, freed_gpu_milli=_requested(jobs[name], runs[name])) for name in preempted
            ),
            **fields,
        }
    )


def with_assignment(plan: Plan, job: str = "a", at: int = 0, **fields: Any) -> Plan:
    """Change fields of an assignment of a job; the record is not checked."""
    placements = list(plan.placements)
    i = next(i for i, held in enumerate(placements) if held.job == job)
    assignments = list(placements[i].assignments)
    assignments[at] = assignments[at].model_copy(update=fields)
    placements[i] = placements[i].model_copy(update={"assignments": tuple(assignments)})
    return plan.model_copy(update={"placements": tuple(placements)})


def _requested(job: Job, held: Placement) -> int:
    """Return the thousandths of GPUs that a placed job requests."""
    demand = next(option.demand for option in job.options if option.id == held.option)
    return demand.gpu_milli * sum(len(assignment.gpus) for assignment in held.assignments)


def _nodes(placement: Placement) -> tuple[str, ...]:
    return tuple(assignment.node for assignment in placement.assignments)
