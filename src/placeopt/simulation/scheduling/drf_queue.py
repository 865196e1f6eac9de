"""Dominant resource fairness: the user with the least dominant share comes next (DRF)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from placeopt.model import Cluster, Job, Placement
from placeopt.simulation.scheduling.placement_amounts import Amounts, amounts_of, cluster_amounts, largest_share
from placeopt.simulation.scheduling.waiting_queue import JobQueue, SortedQueue, by_arrival


class DrfQueue(JobQueue):
    """
    A queue of users: at every start, the user with the least dominant share comes next.

    A user's jobs come in order of arrival and overtake each other where one does not fit; a user none of whose jobs
    fits is passed over. Shares are of the cluster's GPUs, CPU and memory. Jobs without a user are one user. Ties go to
    the user of the earliest job.

    Notes
    -----
    Ghodsi et al., NSDI'11; a baseline of SODA.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._total = cluster_amounts(cluster)
        self._queues: dict[str | None, JobQueue] = {}
        self._held: dict[str | None, Amounts] = {}
        self._user_of_job: dict[str, str | None] = {}
        self.num_jobs = 0

    def user(self, job: Job) -> str | None:
        """Return the user, or other owner, that a job counts for."""
        return job.user

    def new_queue(self) -> JobQueue:
        """Return an empty queue for the jobs of one user."""
        return SortedQueue(by_arrival)

    def add(self, job: Job, shape: Hashable) -> None:
        """Add a waiting job."""
        user = self.user(job)
        if user not in self._queues:
            self._queues[user] = self.new_queue()
        self._queues[user].add(job, shape)
        self._held.setdefault(user, (0, 0, 0))
        self._user_of_job[job.id] = user
        self.num_jobs += 1

    def in_order(self, skipped: set[Hashable], now_ms: int) -> Iterator[tuple[str, Hashable]]:
        """Yield jobs and shapes; shares are compared anew before each."""
        remaining = {user: queue.in_order(skipped, now_ms) for user, queue in self._queues.items()}
        while remaining:
            user = min(remaining, key=self.share)
            following = next(remaining[user], None)
            if following is None:
                del remaining[user]
            else:
                yield following

    def share(self, user: str | None) -> float:
        """Return the dominant share: the largest part of any resource that the user's jobs hold."""
        return largest_share(self.held(user), self._total, of_nothing=0.0)

    def held(self, user: str | None) -> Amounts:
        """Return what the user's jobs hold."""
        return self._held.get(user, (0, 0, 0))

    def take(self, job: str, shape: Hashable) -> None:
        """Remove a job."""
        self._queues[self._user_of_job.pop(job)].take(job, shape)
        self.num_jobs -= 1

    def update_held(self, job: Job, placement: Placement, sign: int) -> None:
        """Account for what a job holds from now on or, with ``sign`` -1, no longer."""
        user = self.user(job)
        gpu_milli, cpu, memory = self.held(user)
        more = amounts_of(placement)
        self._held[user] = (gpu_milli + sign * more[0], cpu + sign * more[1], memory + sign * more[2])
