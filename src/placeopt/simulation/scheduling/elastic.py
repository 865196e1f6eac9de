"""Elastic jobs placed job by job: with how many workers they are asked for, and where further ones go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from placeopt.model import Job, Option, Placement
from placeopt.simulation.scheduling.free_resources import FreeResources, with_one_more


@dataclass
class ElasticJob:
    """A running job that may have up to ``most`` workers."""

    job: Job
    placement: Placement
    option: Option
    most: int

    @property
    def workers(self) -> int:
        """How many it has."""
        return sum(len(one.workers) for one in self.placement.assignments)


def grow_jobs(room: FreeResources, jobs: Iterable[ElasticJob], *, spread: bool) -> list[Placement]:
    """
    Return the placements of those jobs that find room for more workers; ``room`` is left as it was.

    Parameters
    ----------
    spread
        One job after the other gets all that it may have, each worker on the node with the most idle GPUs (Kubernetes'
        way). Otherwise jobs get one in turns, those with the fewest first, on the nodes where they are.
    """
    mine = list(jobs)
    before = {id(one): one.placement for one in mine}
    if spread:
        for one in mine:
            while one.workers < one.most and _add(room, one, spread=True):
                pass
    else:
        open_ = list(mine)
        while open_:
            one = min(open_, key=lambda growing: growing.workers)
            if one.workers >= one.most or not _add(room, one, spread=False):
                open_.remove(one)
    out = []
    for one in mine:
        if one.placement is not before[id(one)]:
            out.append(one.placement)
            room.take(one.placement, one.option.demand, -1)
            room.take(before[id(one)], one.option.demand)
    return out


def with_workers(job: Job, option: str, workers: int) -> Job:
    """Return a job that has one of its elastic options as a gang of so many workers."""
    options = tuple(
        one.model_copy(update={"workers": workers, "workers_min": None, "value_per_extra_worker": 0})
        if one.id == option and one.workers_min is not None
        else one
        for one in job.options
    )
    edges = tuple(edge for edge in job.communication.edges if max(edge.ranks) < max(one.workers for one in options))
    update: dict[str, object] = {"options": options}
    if len(edges) < len(job.communication.edges):
        update["communication"] = job.communication.model_copy(update={"edges": edges})
    return job.model_copy(update=update)


def _add(room: FreeResources, growing: ElasticJob, *, spread: bool) -> bool:
    """Give a job one more worker; false if there is no room for it."""
    nodes = room.allowed(growing.job)
    if spread:
        nodes = sorted(nodes, key=room.free_gpus, reverse=True)
    else:
        here = {one.node for one in growing.placement.assignments}
        nodes = [node for node in nodes if node in here]
    if growing.option.single_node:
        nodes = [node for node in nodes if node == growing.placement.assignments[0].node]
    found = room.worker(growing.option, nodes, growing.placement)
    if found is None:
        return False
    larger = with_one_more(growing.placement, growing.option.demand, *found)
    room.take(growing.placement, growing.option.demand, -1)
    room.take(larger, growing.option.demand)
    growing.placement = larger
    return True
