"""Running jobs as a placement to review: as if they were submitted anew and placed where they are."""

from __future__ import annotations

from placeopt.aliases import former_names
from placeopt.arguments import checked
from placeopt.model import Instance, Placement, Plan, Running
from placeopt.problem.classes import admits, effective_labels
from placeopt.whatif.plan_review import plan_of

__getattr__ = former_names(__name__)


@checked
def running_as_plan(instance: Instance) -> tuple[Instance, Plan]:
    """
    Return a round in which no job runs yet, and the plan that places every job where it runs.

    With these `review` compares the placement of another scheduler with the best one of the same jobs. Jobs that could
    not start where they run (the node was drained or tainted since, its labels changed, it is gone, or it lacks the
    GPUs) stay as they are in both, since no scheduler could place them there now.

    Parameters
    ----------
    instance
        A round with running jobs.

    Returns
    -------
    tuple of Instance and Plan
        The round without running jobs, and its plan.
    """
    nodes = {node.id: node for node in instance.cluster.nodes}
    labels = dict(zip(nodes, effective_labels(instance), strict=True))
    models = {machine.id: [gpu.model for gpu in machine.gpus] for machine in instance.cluster.machines}
    jobs = {job.id: job for job in instance.jobs}

    def might_start(held: Running) -> bool:
        job = jobs[held.job]
        wanted = next(option for option in job.options if option.id == held.option).demand.gpu_models
        for one in held.assignments:
            node = nodes.get(one.node)
            if node is None or not admits(node, labels[node.id], job):
                return False
            here = models[node.machine]
            if any(int(gpu) >= len(here) or (wanted and here[int(gpu)] not in wanted) for gpu in one.gpus):
                return False
        return True

    stay = tuple(held for held in instance.running if not might_start(held))
    staying = {held.job for held in stay}
    anew = instance.model_copy(update={"running": stay})
    placements = [
        Placement(job=held.job, option=held.option, assignments=held.assignments)
        for held in instance.running
        if held.job not in staying
    ]
    return anew, plan_of(anew, placements)
