"""Room that is held for the job that has waited longest, so that no stream of smaller jobs keeps it out for ever."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.model import Assignment, Changes, Hold, Instance, Job, Placement, Postpone, Weights
from placeopt.solving.api import solve

PREFIX = "waiting:"
"""Of the ids of holds that are made here."""
ID_LENGTH = 253


@checked
def hold_room(
    instance: Instance, *, after_ms: int, time_limit_s: float = 1.0, seed: int = 0, deterministic: bool = False
) -> Instance:
    """
    Return a round in which room is held for the job that has waited longest.

    Among jobs that have waited for ``after_ms`` or more, the earliest comes first; where priorities are strict, those
    of the highest priority before it. The first that fits at all gets the room where the fewest GPUs of running jobs
    have to end first: a hold for it on each node, against all others; where priorities are strict, against jobs of its
    priority or a lower one. What runs there stays. Called for each round anew, it needs no memory: while the room is
    held no GPU of it is taken by others, so what has to end first never grows, and the job starts as soon as it has
    ended. Former holds of this function are replaced.

    Parameters
    ----------
    instance
        The round.
    after_ms
        Waiting time, from the job's arrival to ``instance.now_ms``, after which room is held.
    time_limit_s
        Of the call; where it is deterministic, of each job that is tried, as work. What is tried is one job of each
        kind, in their order; where the time is too short, none is held.
    seed, deterministic
        As in ``placeopt.solve``.

    Returns
    -------
    Instance
        The round with the holds; without any where no job has waited so long, or none fits.

    Raises
    ------
    BadInput
        If ``after_ms`` is below 0, or the running jobs contradict each other.
    """
    if after_ms < 0:
        raise BadInput(f"after_ms: {after_ms}, expected a time of 0 or more")
    deadline = time.monotonic() + time_limit_s
    instance = _with_holds(instance, ())
    placed = {held.job for held in instance.running}
    late = [job for job in instance.jobs if job.id not in placed and instance.now_ms - job.arrival_ms >= after_ms]
    tried: set[object] = set()
    strict = instance.policy.priorities == "strict"  # else a priority does not say who goes first
    for job in sorted(late, key=lambda job: (-job.priority if strict else 0, job.arrival_ms)):
        left_s = time_limit_s if deterministic else deadline - time.monotonic()
        if left_s <= 0:
            break
        if (shape := _shape(job)) in tried:
            continue
        tried.add(shape)
        shares = {held.job: max(1, _share(held)) for held in instance.running}
        asked = room_round(instance, job, shares)
        found = solve(asked, time_limit_s=left_s, seed=seed, deterministic=deterministic)
        placement = found.placement_of(job.id)
        if placement is not None:
            return _with_holds(instance, tuple(_holds(job, placement, job.priority if strict else None)))
    return instance


def held_for(instance: Instance) -> str:
    """Return the job for which `hold_room` holds room in a round; empty where there is none."""
    holds = (hold for hold in instance.holds if hold.id.startswith(PREFIX))
    return next((job for hold in holds for job in hold.jobs), "")


def room_round(
    instance: Instance,
    job: Job,
    prices: Mapping[str, int],
    *,
    postpone: Postpone | None = None,
    last_first: bool = False,
) -> Instance:
    """
    Return a round that asks where a job fits if running jobs end, those that are worth least together.

    The job waits alone and is worth more than all ``prices``, of the running jobs that may end; all others stay.
    ``last_first``: a job may only end if those of its queue do that arrived later. All other rules hold but those about
    changes, and look-ahead and minimal utilities unless ``postpone`` states them.
    """
    runs = {held.job for held in instance.running} - {job.id}
    jobs = (_worth(one, prices.get(one.id, 0)) for one in instance.jobs if one.id in runs)
    fixed = {"movable": False, "shrinkable": False, "protected_until_ms": None}
    policy = instance.policy.model_copy(
        update={
            "weights": Weights(communication=0, interference=0, fragmentation=0, relations=0),
            "changes": Changes(preemptions_max=len(prices), last_submitted_first=last_first),
            "priorities": "price",
            "postpone": postpone or Postpone(),
        }
    )
    return instance.model_copy(
        update={
            "jobs": (*jobs, _worth(job, sum(prices.values()) + 1)),
            "running": tuple(
                held.model_copy(update={**fixed, "preemptible": held.job in prices}) for held in instance.running
            ),
            "policy": policy,
        }
    )


def _worth(job: Job, value: int) -> Job:
    return job.model_copy(update={"options": tuple(option.valued(value) for option in job.options)})


def _share(placement: Placement) -> int:
    return sum(milli for assignment in placement.assignments for milli in assignment.gpus.values())


def _shape(job: Job) -> object:
    """Return what decides whether a job fits; equal jobs fit alike."""
    return job.model_copy(update={"id": "", "arrival_ms": 0, "user": None, "origin": None}).model_dump_json()


def _holds(job: Job, placement: Placement, priority: int | None) -> Iterator[Hold]:
    demands = {leaf.id: leaf.demand for leaf in job.option(placement.option).leaves}
    by_node: dict[str, list[Assignment]] = {}
    for assignment in placement.assignments:
        by_node.setdefault(assignment.node, []).append(assignment)
    for number, (node, parts) in enumerate(by_node.items()):
        resources: Counter[str] = Counter()
        for part in parts:
            for name, each in demands[part.group or placement.option].resources.items():
                resources[name] += each * len(part.workers)
        yield Hold.model_validate(
            {
                "id": f"{PREFIX}{number}:{job.id}"[:ID_LENGTH],
                "node": node,
                "gpus": tuple(sorted({int(gpu) for part in parts for gpu in part.gpus})),
                "cpu_millicores": sum(part.cpu_millicores for part in parts),
                "memory_mib": sum(part.memory_mib for part in parts),
                "resources": dict(resources),
                "priority": priority,
                "for": (job.id,),
            }
        )


def _with_holds(instance: Instance, holds: tuple[Hold, ...]) -> Instance:
    others = tuple(hold for hold in instance.holds if not hold.id.startswith(PREFIX))
    return instance.model_copy(update={"holds": (*others, *holds)})
