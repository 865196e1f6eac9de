"""Weighted fair queuing over clusters of similar jobs (Horus, algorithm 1)."""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Iterator
from statistics import median
from typing import Annotated, cast

import numpy as np
from pydantic import Field

from placeopt.model import Job
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.queue_orders import QueueContext, QueueOrder
from placeopt.scheduling.rules import QUEUE_ORDERS, Rule
from placeopt.scheduling.waiting_queue import JobQueue

Features = tuple[int, int, int, int]
"""Tasks, GPU utilisation, GPUs per task, GPU memory."""
ITERATIONS_MAX = 50
"""Of k-means; it ends earlier where nothing changes."""


class Clusters(Rule):
    """Weighted fair queuing over clusters of alike jobs."""

    clusters: Annotated[int, Field(ge=1, le=100)]
    """Number of clusters (Horus: k)."""
    batch: Annotated[int, Field(ge=1, le=100_000)]
    """Jobs that are picked between updates of the waiting times (Horus: beta)."""

    def check(self, scheduling: Scheduling) -> None:
        if scheduling.strict:
            raise ValueError("strict: 'clusters' weighs queues against each other; there is no first job to wait for")


class WeightedFairQueue(JobQueue):
    """
    k queues of similar jobs; longer queues, and those that wait longer, are served more often.

    Waiting jobs are divided into k clusters by their features. From each, in order of arrival, as many are picked as
    its weight says, ``max(length, median wait x length)``, until a batch of beta is full; then weights are computed
    again from the remaining jobs, until every job was picked once.

    Horus section 4.2.2. The paper leaves open, and we chose: features are scaled to 0..1; the first centre is the least
    demanding kind of job, each further one the kind farthest from the earlier ones (by the L1 distance of the paper);
    waits are in seconds; within a batch jobs are interleaved as in fair queuing, the i-th of a cluster at i / weight.
    """

    def __init__(self, clusters: int, batch: int) -> None:
        self._clusters, self._batch = clusters, batch
        self._shapes: dict[Hashable, list[tuple[int, int, str]]] = {}  # arrival, number, job
        self._features: dict[Hashable, Features] = {}
        self._num_added = 0
        self.num_jobs = 0

    def add(self, job: Job, shape: Hashable) -> None:
        option = job.options[0]
        demand = option.demand
        self._features[shape] = (
            option.workers,
            demand.gpu_utilisation_percent,
            demand.gpus,
            demand.gpu_memory_mib,
        )
        insort(self._shapes.setdefault(shape, []), (job.arrival_ms, self._num_added, job.id))
        self._num_added += 1
        self.num_jobs += 1

    def in_order(self, skipped: set[Hashable], now_ms: int) -> Iterator[tuple[str, Hashable]]:
        """Yield jobs and shapes, batch by batch."""
        refused = set(skipped)
        shapes = list(self._shapes)
        cluster = similar_clusters([self._features[shape] for shape in shapes], self._clusters)
        queues: list[list[tuple[int, int, str, Hashable]]] = [[] for _ in range(self._clusters)]
        for shape, number in zip(shapes, cluster, strict=True):
            queues[number].extend((*job, shape) for job in self._shapes[shape])
        for queue in queues:
            queue.sort(key=lambda job: job[:2])
        while True:
            queues = [[job for job in queue if job[3] not in refused] for queue in queues]
            batch = self._pick(queues, now_ms)
            if not batch:
                return
            picked = {job[2] for job in batch}
            for _, _, name, shape in batch:
                if shape in refused:
                    continue
                before = len(self._shapes.get(shape, ()))
                yield name, shape
                if len(self._shapes.get(shape, ())) == before:
                    refused.add(shape)
            queues = [[job for job in queue if job[2] not in picked] for queue in queues]

    def _pick(
        self, queues: list[list[tuple[int, int, str, Hashable]]], now_ms: int
    ) -> list[tuple[int, int, str, Hashable]]:
        """Return the next batch."""
        ranked = []
        for number, queue in enumerate(queues):
            if queue:
                weight = weight_of([now_ms - job[0] for job in queue])
                ranked += [((i + 1) / weight, number, job) for i, job in enumerate(queue[: self._batch])]
        ranked.sort(key=lambda entry: entry[:2])
        return [job for _, _, job in ranked[: self._batch]]

    def take(self, job: str, shape: Hashable) -> None:
        jobs = self._shapes[shape]
        del jobs[next(i for i, entry in enumerate(jobs) if entry[2] == job)]
        self.num_jobs -= 1
        if not jobs:
            del self._shapes[shape], self._features[shape]


def weight_of(waits_ms: list[int]) -> float:
    """Return the weight of a queue: ``max(length, median wait in s x length)``."""
    return len(waits_ms) * max(1.0, median(waits_ms) / 1000)


def similar_clusters(features: list[Features], clusters: int) -> list[int]:
    """
    Return the cluster of each kind of job, of at most ``clusters``, by k-means with the L1 distance.

    Example: utilisations of 10, 12 and 90 %, all else equal, in two clusters: the first two share one.
    """
    if not features:
        return []
    points = np.array(features, dtype=float)
    points /= np.maximum(points.max(axis=0), 1e-12)
    centres = [points[int(points.sum(axis=1).argmin())]]
    while len(centres) < min(clusters, len(np.unique(points, axis=0))):
        apart = np.min([np.abs(points - centre).sum(axis=1) for centre in centres], axis=0)
        centres.append(points[int(apart.argmax())])
    nearest = np.full(len(points), -1)
    for _ in range(ITERATIONS_MAX):
        before = nearest
        nearest = np.array([np.abs(points - centre).sum(axis=1) for centre in centres]).argmin(axis=0)
        if (nearest == before).all():
            break
        centres = [
            points[nearest == c].mean(axis=0) if (nearest == c).any() else centre for c, centre in enumerate(centres)
        ]
    return [int(c) for c in nearest]


def _by_clusters(context: QueueContext) -> JobQueue:
    order = cast(Clusters, context.scheduling.order)
    return WeightedFairQueue(order.clusters, order.batch)


QUEUE_ORDERS.register("clusters", QueueOrder(_by_clusters), Clusters)
