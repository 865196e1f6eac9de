"""Placements, running jobs and plans: placements as a plan, the cluster after a plan, running jobs as a placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from placeopt.arguments import checked
from placeopt.check import violations
from placeopt.edits import edit_instance
from placeopt.errors import BadInput
from placeopt.model import Group, Instance, Placement, Plan, Running
from placeopt.model.base import FormatVersion, Record
from placeopt.model.plan import InstanceRef, Level, PolicyRef, Unplaced
from placeopt.problem import in_amounts
from placeopt.problem.classes import Admission, effective_labels
from placeopt.problem.grants import bounds_of, granted


class Placements(Record):
    """Placements of jobs and nothing else, as another scheduler made them."""

    document: Literal["placements"] = "placements"
    """What the file is."""
    format_version: FormatVersion = 2
    placements: tuple[Placement, ...]


@checked
def plan_of(instance: Instance, placements: Sequence[Placement]) -> Plan:
    """
    Return placements as a plan under the instance's own policy; jobs that are not named wait, running ones stay.

    Shares between request and limit are granted again, whatever the placements state; others are left to the referee.
    `review` computes objective and costs after the check.
    """
    policy = instance.policy
    named = {placement.job for placement in placements}
    stay = tuple(held.placement for held in instance.running if held.job not in named)
    runs = {held.job for held in stay}
    return Plan(
        instance=InstanceRef(name=instance.name, digest=instance.digest, revision=instance.revision),
        policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
        status="feasible",
        limit="none",
        levels=(Level(name="value", sense="max", objective=0, bound=None),),
        gap=None,
        placements=tuple(_granted(instance, (*stay, *placements))),
        unplaced=tuple(
            Unplaced(job=job.id, reason="not_reached", detail="not placed")
            for job in instance.jobs
            if job.id not in named and job.id not in runs
        ),
    )


def _granted(instance: Instance, placements: Sequence[Placement]) -> Iterator[Placement]:
    """Yield placements with the shares that are granted, but for those that state a share out of range."""
    jobs, policy = {job.id: job for job in instance.jobs}, instance.policy
    for stated, anew in zip(placements, granted(placements, jobs, policy.share_mode), strict=True):
        low, high = bounds_of(stated, jobs, policy.share_mode)
        valid = all(low <= milli <= high for assignment in stated.assignments for milli in assignment.gpus.values())
        yield anew if valid else stated


@checked
def after_plan(instance: Instance, plan: Plan) -> Instance:
    """
    Return the instance with the plan carried out: placed jobs run from now on, all others wait.

    A job that ran before keeps its start and its permissions for changes; a new one may not be changed.

    Raises
    ------
    BadInput
        If the plan is for some jobs only, or not a valid plan of the instance.
    """
    if plan.asked is not None:
        raise BadInput("plan: is for some jobs only; expected a plan of the whole round")
    if broken := violations(instance, plan):
        raise BadInput(f"plan: {broken[0].message} ({broken[0].rule}); expected a valid plan of {instance.name!r}")
    before = {held.job: held for held in instance.running}
    running = []
    for placement in plan.placements:
        held = before.get(placement.job)
        before_fields = {} if held is None else dict(held)
        place = {"job": placement.job, "option": placement.option, "assignments": placement.assignments}
        running.append(Running(**{"started_ms": instance.now_ms, **before_fields, **place}))
    return edit_instance(instance, running=tuple(running), policy=plan.policy.values)


def only_running(instance: Instance) -> Instance:
    """
    Return the instance without its waiting jobs.

    Quotas of its queues become amounts of this cluster, so that running jobs stay valid where nodes are removed.
    """
    runs = {held.job for held in instance.running}
    policy = instance.policy.model_copy(update={"queues": in_amounts(instance.policy.queues, instance.cluster)})
    return edit_instance(instance, jobs=tuple(job for job in instance.jobs if job.id in runs), policy=policy)


@checked
def running_as_plan(instance: Instance) -> tuple[Instance, Plan]:
    """
    Return a round in which no job runs yet, and the plan that places every job where it runs.

    With these `review` compares the placement of another scheduler with the best one of the same jobs. Jobs that could
    not start where they run (the node was drained or tainted since, its labels changed, it is gone, or it lacks the
    GPUs; some of its groups do not run) stay as they are in both, since no scheduler could place them there now.

    Parameters
    ----------
    instance
        A round with running jobs.

    Returns
    -------
    tuple of Instance and Plan
        The round without running jobs, and its plan.
    """
    nodes = {node.id: (n, node) for n, node in enumerate(instance.cluster.nodes)}
    admission = Admission(instance.cluster.nodes, effective_labels(instance))
    jobs = {job.id: job for job in instance.jobs}

    def might_start(held: Running) -> bool:
        job = jobs[held.job]
        option = job.option(held.option)
        workers = Counter(one.group for one in held.assignments for _ in one.workers)
        if option.groups and not _is_whole(option, workers):
            return False
        wanted = option.demand.gpu_models
        for assignment in held.assignments:
            number, node = nodes.get(assignment.node, (-1, None))
            if node is None or not admission.admitted(job)[number]:
                return False
            here = [gpu.model for gpu in instance.cluster.machine_of(node).gpus]
            if any(int(gpu) >= len(here) or (wanted and here[int(gpu)] not in wanted) for gpu in assignment.gpus):
                return False
        return True

    stay = tuple(held for held in instance.running if not might_start(held))
    staying = {held.job for held in stay}
    anew = instance.model_copy(update={"running": stay})
    placements = [held.placement for held in instance.running if held.job not in staying]
    return anew, plan_of(anew, placements)


def _is_whole(group: Group, workers: Mapping[str | None, int]) -> bool:
    """Return whether no worker is missing that must run; ``workers``: leaf -> workers that run."""
    if not group.groups:
        return workers.get(group.id, 0) >= group.fewest
    return all(
        _is_whole(part, workers) or (part.optional and not any(leaf.id in workers for leaf in part.leaves))
        for part in group.groups
    )
