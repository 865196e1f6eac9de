"""Rounds for a cluster that stays, which takes no jobs of groups."""

from __future__ import annotations

from placeopt.model import Instance
from placeopt.problem.trees import with_members


def without_groups(instance: Instance) -> tuple[Instance, tuple[str, ...]]:
    """
    Return a round whose jobs an engine keeps between rounds, and the names of those that it leaves out.

    Parameters
    ----------
    instance
        Any round.

    Returns
    -------
    tuple
        The round without waiting workers of jobs with groups or preferred levels; what runs of such a job is a job for
        each leaf, which stays where it is. And the jobs of which workers wait.
    """
    flat, trees = with_members(instance)
    if not trees:
        return instance, ()
    waiting = {flat.jobs[member].id for tree in trees for member in tree.members if member not in tree.runs}
    left = {tree.job for tree in trees}
    plain = {job.id: job for job in instance.jobs if job.id not in left}
    jobs = tuple(plain.get(job.id, job) for job in flat.jobs if job.id not in waiting)
    kept = flat.model_copy(update={"jobs": jobs, "cluster": instance.cluster})  # with blocks, as for jobs that come
    return kept, tuple(tree.job for tree in trees if len(tree.runs) < len(tree.members))
