"""What was decided for pods: the node of every worker of a job, and which pod is which worker."""

from __future__ import annotations

import json
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
    binding: set[str] = field(default_factory=set)
    """UIDs of pods whose Binding was begun, and of which it is not known whether it is there."""
    ours: bool = False
    """Whether the extender started the job; otherwise it runs by the word of others."""
    revision: int | None = None
    """The revision after its start, by the extender."""

    @property
    def job(self) -> str:
        """Id of the job."""
        return self.record.id

    @classmethod
    def of(cls, job: Job, assignments: Sequence[Assignment], expires_s: float | None) -> Decision:
        """Return the decision that assignments are; the pods that the job names have their ranks."""
        nodes = nodes_of(assignments)
        named = () if job.origin is None else job.origin.workers
        pods = {pod.id: rank for rank, pod in enumerate(named) if pod.id is not None and rank in nodes}
        return cls(job, nodes, expires_s, pods)

    def to_text(self) -> str:
        """Return the decision as JSON, but for the record of the job."""
        kept = {
            "nodes": sorted(self.nodes.items()),
            "expires_s": self.expires_s,
            "pods": dict(sorted(self.pods.items())),
            "bound": sorted(self.bound),
            "asked": sorted(self.asked),
            "binding": sorted(self.binding),
            "revision": self.revision,
        }
        return json.dumps(kept, separators=(",", ":"))

    @classmethod
    def from_text(cls, job: Job, text: str, latest_s: float) -> Decision:
        """Return the decision that `to_text` wrote; it expires at ``latest_s`` at the latest, if it does."""
        kept = json.loads(text)
        expires_s = None if kept["expires_s"] is None else min(kept["expires_s"], latest_s)
        sets = {key: set(kept[key]) for key in ("bound", "asked", "binding")}
        return cls(job, dict(kept["nodes"]), expires_s, kept["pods"], ours=True, revision=kept["revision"], **sets)

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


def nodes_of(assignments: Sequence[Assignment]) -> dict[int, str]:
    """Return rank -> node."""
    return {worker.rank: part.node for part in assignments for worker in part.workers}
