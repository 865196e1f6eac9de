"""The cluster as it stands: what runs now, or what will run once a plan is carried out."""

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
    Return the instance with the plan carried out: what it places runs, since now; what it leaves out waits.

    A job that ran keeps its start and what may be done to it, and a new one may not be changed.

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
        kept = {} if held is None else dict(held)
        place = {"job": placement.job, "option": placement.option, "assignments": placement.assignments}
        running.append(Running(**{"started_ms": instance.now_ms, **kept, **place}))
    return edit_instance(instance, running=tuple(running), policy=plan.policy.values)


def only_running(instance: Instance) -> Instance:
    """
    Return the instance without its waiting jobs.

    Its queues may hold what they may on this cluster, as amounts: where nodes are taken out, what stays is lawful.
    """
    runs = {held.job for held in instance.running}
    policy = instance.policy.model_copy(update={"queues": in_amounts(instance.policy.queues, instance.cluster)})
    return edit_instance(instance, jobs=tuple(job for job in instance.jobs if job.id in runs), policy=policy)
