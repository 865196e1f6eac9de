"""The cluster after a plan is carried out, or without its waiting jobs."""

from __future__ import annotations

from placeopt.arguments import checked
from placeopt.check import violations
from placeopt.errors import BadInput
from placeopt.model import Instance, Plan, Running
from placeopt.terms.queue_ceilings import in_amounts
from placeopt.whatif.instance_edit import edit_instance


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
