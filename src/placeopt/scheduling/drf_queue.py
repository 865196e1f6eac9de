"""A queue by dominant share of users (DRF)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from placeopt.model import Cluster, Job
from placeopt.model.base import Milliseconds
from placeopt.scheduling.occupancy import Held
from placeopt.scheduling.placement_amounts import (
    Amounts,
    amounts_of,
    largest_share,
)
from placeopt.scheduling.waiting_queue import JobQueue, SortedQueue, by_arrival


class DrfQueue(JobQueue):
    """
    A queue of users: at every start, the user with the least dominant share comes next.

    A user's jobs come in order of arrival and overtake each other where one does not fit; a user none of whose jobs
    fits is passed over. Shares are of the cluster's GPUs, CPU and memory; with ``gpus_alone`` of its GPUs. Jobs without
    a user are one user. Ties go to the user of the earliest job. Ghodsi et al., NSDI'11; a baseline of SODA, where GPUs
    are the dominant resource (VI-A).
    """

    def __init__(self, cluster: Cluster, *, gpus_alone: bool = False) -> None:
        self._total = cluster.amounts
        self._gpus_alone = gpus_alone
        self._queues: dict[str | None, JobQueue] = {}
        self._held: dict[str | None, Amounts] = {}
        self._shares: dict[str | None, float] = {}
        """Of users whose shares have not changed since."""
        self._user_of_job: dict[str, str | None] = {}
        self.num_jobs = 0

    def user(self, job: Job) -> str | None:
        """Return the user, or other owner, that a job counts for."""
        return job.user

    def new_queue(self) -> JobQueue:
        """Return an empty queue for the jobs of one user."""
        return SortedQueue(by_arrival)

    def queue_of(self, user: str | None) -> JobQueue:
        """Return the queue of a user's jobs."""
        if user not in self._queues:
            self._queues[user] = self.new_queue()
        return self._queues[user]

    def add(self, job: Job, shape: Hashable) -> None:
        user = self.user(job)
        self.queue_of(user).add(job, shape)
        self._held.setdefault(user, (0, 0, 0))
        self._user_of_job[job.id] = user
        self.num_jobs += 1

    def in_order(self, skipped: set[Hashable], now_ms: int) -> Iterator[tuple[str, Hashable]]:
        """Yield jobs and shapes; shares are compared again before each."""
        remaining = {user: queue.in_order(skipped, now_ms) for user, queue in self._queues.items() if queue.num_jobs}
        while remaining:
            user = min(remaining, key=self._known_share)
            following = next(remaining[user], None)
            if following is None:
                del remaining[user]
            else:
                yield following

    def _known_share(self, user: str | None) -> float:
        known = self._shares.get(user)
        if known is None:
            known = self._shares[user] = self.share(user)
        return known

    def share(self, user: str | None) -> float:
        """Return the dominant share: the largest part of any resource, or of GPUs alone, that the user's jobs hold."""
        if self._gpus_alone:
            return self.held(user)[0] / max(1, self._total[0])
        return largest_share(self.held(user), self._total, of_nothing=0.0)

    def held(self, user: str | None) -> Amounts:
        """Return what the user's jobs hold."""
        return self._held.get(user, (0, 0, 0))

    def take(self, job: str, shape: Hashable) -> None:
        self._queues[self._user_of_job.pop(job)].take(job, shape)
        self.num_jobs -= 1

    def started(self, held: Held) -> None:
        self._count(held, 1)

    def ended(self, held: Held, now_ms: Milliseconds) -> None:
        del now_ms
        self._count(held, -1)

    def _count(self, held: Held, sign: int) -> None:
        user = self.user(held.job)
        gpu_milli, cpu, memory = self.held(user)
        more = amounts_of(held.placement)
        self._held[user] = (gpu_milli + sign * more[0], cpu + sign * more[1], memory + sign * more[2])
        self._shares.pop(user, None)
