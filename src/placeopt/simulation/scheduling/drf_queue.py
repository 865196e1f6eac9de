"""Users in turns: next comes the one with the least dominant share (DRF)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from placeopt.model import Cluster, Job, Placement
from placeopt.simulation.scheduling.waiting_queue import JobQueue, SortedQueue


class DrfQueue:
    """
    Dominant resource fairness: at every start, the user who holds least of what he holds most of comes next.

    A user's jobs come in order of arrival, overtaken only by his own where they find no room; a user none of whose jobs
    finds room is passed over. Shares are of the cluster's GPUs, CPU and memory. Jobs of no user are one user. Ties: the
    user who came first. (Ghodsi et al., NSDI'11; a baseline of SODA.)
    """

    def __init__(self, cluster: Cluster) -> None:
        machines = {machine.id: machine for machine in cluster.machines}
        used = [machines[node.machine] for node in cluster.nodes]
        self._total = (
            1000 * sum(len(machine.gpus) for machine in used),
            sum(machine.cpu_millicores for machine in used),
            sum(machine.memory_mib for machine in used),
        )
        self._users: dict[str | None, JobQueue] = {}
        self._held: dict[str | None, tuple[int, int, int]] = {}
        self._user_of: dict[str, str | None] = {}
        self.number = 0

    def user(self, job: Job) -> str | None:
        """Return whose turn is meant when it is this job's."""
        return job.user

    def line(self) -> JobQueue:
        """Return the queue of a user's own jobs."""
        return SortedQueue("fcfs")

    def add(self, job: Job, shape: Hashable) -> None:
        """See ``JobQueue``."""
        user = self.user(job)
        if user not in self._users:
            self._users[user] = self.line()
        self._users[user].add(job, shape)
        self._held.setdefault(user, (0, 0, 0))
        self._user_of[job.id] = user
        self.number += 1

    def in_order(self, skipped: set[Hashable], now_ms: int) -> Iterator[tuple[str, Hashable]]:
        """See ``JobQueue``."""
        passes = {user: queue.in_order(skipped, now_ms) for user, queue in self._users.items()}
        while passes:
            user = min(passes, key=self.share)
            following = next(passes[user], None)
            if following is None:
                del passes[user]
            else:
                yield following

    def share(self, user: str | None) -> float:
        """Return the largest part of any resource that the user's jobs hold."""
        held = self._held.get(user, (0, 0, 0))
        return max(part / total if total else 0.0 for part, total in zip(held, self._total, strict=True))

    def take(self, job: str, shape: Hashable) -> None:
        """See ``JobQueue``."""
        self._users[self._user_of.pop(job)].take(job, shape)
        self.number -= 1

    def holds(self, job: Job, placement: Placement, sign: int) -> None:
        """See ``JobQueue``."""
        user = self.user(job)
        milli, cpu, memory = self._held.get(user, (0, 0, 0))
        for one in placement.assignments:
            milli += sign * sum(one.gpus.values())
            cpu += sign * one.cpu_millicores
            memory += sign * one.memory_mib
        self._held[user] = (milli, cpu, memory)
