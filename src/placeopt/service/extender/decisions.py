"""What was decided for pods: the node of every worker of a job, and which pod is which worker."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from placeopt.model import Assignment, Job
from placeopt.service.refused import Refused


@dataclass
class Decision:
    """
    A job that holds its room.

    ``nodes``: Rank -> node. ``pods``: UID -> rank, of the pods that asked or that the job names. ``bound``: UIDs whose
    bind was done. ``expires_s``: When the room is given back if no pod is bound by then; None: never.
    """

    record: Job
    nodes: Mapping[int, str]
    expires_s: float | None
    pods: dict[str, int] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    """UIDs of the pods that were sent to their nodes."""

    @property
    def job(self) -> str:
        """Id of the job."""
        return self.record.id

    @classmethod
    def of(cls, job: Job, assignments: Sequence[Assignment], expires_s: float | None) -> Decision:
        """Return the decision that assignments are; the pods that the job names have their ranks."""
        nodes = {worker.rank: part.node for part in assignments for worker in part.workers}
        named = () if job.origin is None else job.origin.workers
        pods = {pod.id: rank for rank, pod in enumerate(named) if pod.id is not None and rank in nodes}
        return cls(job, nodes, expires_s, pods)

    def node_of(self, uid: str, allowed: Container[str]) -> str | None:
        """Return the node of a pod; a pod that is not named takes a rank on an allowed node; None: all are taken."""
        if uid not in self.pods:
            taken = set(self.pods.values())
            ranks = [rank for rank, node in self.nodes.items() if rank not in taken and node in allowed]
            if not ranks:
                return None
            self.pods[uid] = min(ranks)
        return self.nodes[self.pods[uid]]

    def confirm(self, uid: str, node: str) -> bool:
        """Return whether the pod was bound there before; raises `Refused` with 409 if its node is another one."""
        rank = self.pods.get(uid)
        if rank is None:
            raise Refused(409, f"no worker of job {self.job!r} was decided for the pod {uid}")
        if self.nodes[rank] != node:
            did = "is bound to" if uid in self.bound else "was decided for"
            raise Refused(409, f"the pod {uid} {did} node {self.nodes[rank]!r}, not {node!r}")
        return uid in self.bound
