"""Elastic jobs in rounds that place job by job: the field ``elastic`` of a policy, and the growth of running jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from placeopt.model import Job, Option, Placement
from placeopt.scheduling.free_resources import FreeResources
from placeopt.scheduling.placement_amounts import with_added_worker, workers_of
from placeopt.scheduling.rules import ELASTIC_RULES


@dataclass(frozen=True)
class ElasticRule:
    """
    How many workers jobs get; by default all that they request, or none.

    With ``assembles`` the workers of every job, elastic or not, are placed one by one as resources become free, each
    but the first on the node with the most idle GPUs; they hold their GPUs idle until all that the job requests are
    placed, and it begins then. A host whose plans state whole gangs (``Setting.in_parts``) starts them with the fewest.
    With ``follows_load`` an elastic job starts with fewer workers where all do not fit; while a job waits, running ones
    lose workers down to their fewest, and while none waits, they grow on the nodes where they run.
    """

    assembles: bool = False
    follows_load: bool = False

    @property
    def resizes(self) -> bool:
        """Whether the number of workers of a running job may change."""
        return self.assembles or self.follows_load


ELASTIC_RULES.register("asked", ElasticRule())
ELASTIC_RULES.register("pods", ElasticRule(assembles=True))  # Kubernetes' way
ELASTIC_RULES.register("load", ElasticRule(follows_load=True))  # DynamoML's


@dataclass
class ElasticJob:
    """A running job that may have up to ``most`` workers."""

    job: Job
    placement: Placement
    option: Option
    most: int

    @property
    def workers(self) -> int:
        """Number of workers that it has."""
        return workers_of(self.placement)


def grow_jobs(resources: FreeResources, jobs: Iterable[ElasticJob], *, spread: bool) -> list[Placement]:
    """
    Return the larger placements of the jobs that can grow; ``resources`` is restored.

    With ``spread`` one job after the other gets all the workers that it may have, each on the node with the most idle
    GPUs. Otherwise the job with the fewest workers gets one, again and again, on the nodes where it runs.
    """
    growing = list(jobs)
    before = {elastic.job.id: elastic.placement for elastic in growing}
    if spread:
        for elastic in growing:
            while elastic.workers < elastic.most and _add_worker(resources, elastic, spread=True):
                pass
    else:
        remaining = list(growing)
        while remaining:
            elastic = min(remaining, key=lambda elastic: elastic.workers)
            if elastic.workers >= elastic.most or not _add_worker(resources, elastic, spread=False):
                remaining.remove(elastic)
    grown = [elastic for elastic in growing if elastic.placement is not before[elastic.job.id]]
    for elastic in grown:
        resources.exchange(elastic.placement, before[elastic.job.id], elastic.option.demand)
    return [elastic.placement for elastic in grown]


def with_workers(job: Job, option: str, workers: int) -> Job:
    """Return a job whose option is a gang of ``workers``."""
    gang = {"workers": workers, "workers_min": None, "value_per_worker": 0}
    options = tuple(
        known.model_copy(update={**gang, "value": known.worth(workers)}) if known.id == option else known
        for known in job.options
    )
    edges = tuple(
        edge for edge in job.communication.edges if max(edge.ranks) < max(option.workers for option in options)
    )
    update: dict[str, object] = {"options": options}
    if len(edges) < len(job.communication.edges):
        update["communication"] = job.communication.model_copy(update={"edges": edges})
    return job.model_copy(update=update)


def _add_worker(resources: FreeResources, elastic: ElasticJob, *, spread: bool) -> bool:
    """Give a job one more worker; return False where none fits."""
    nodes = resources.admitting(elastic.job)
    if spread:
        nodes = sorted(nodes, key=resources.idle_gpus, reverse=True)
    else:
        used = {assignment.node for assignment in elastic.placement.assignments}
        nodes = [node for node in nodes if node in used]
    if elastic.option.single_node:
        nodes = [node for node in nodes if node == elastic.placement.assignments[0].node]
    new_worker = resources.worker(elastic.option, nodes, elastic.placement)
    if new_worker is None:
        return False
    larger = with_added_worker(elastic.placement, elastic.option.demand, *new_worker)
    resources.exchange(elastic.placement, larger, elastic.option.demand)
    elastic.placement = larger
    return True
