"""A job under construction: identical pods that start together."""

from __future__ import annotations

from dataclasses import dataclass, field

from placeopt.formats.kubernetes.pods import Pod
from placeopt.model import Split


@dataclass
class JobDraft:
    """
    Identical pods that are one job.

    At least ``pods_min`` of them start together. None of them may be on ``excluded_nodes``. The other fields are as in
    `placeopt.model.Option`.
    """

    name: str
    pods: list[Pod]
    pods_min: int
    gpus: int
    cpu_millicores: int
    memory_mib: int
    topology_key: str | None = None
    """Node label whose value all of them must share."""
    excluded_nodes: frozenset[str] = frozenset()
    single_node: bool = False
    workers_per_node_max: int | None = None
    splits: list[Split] = field(default_factory=list)

    @property
    def first(self) -> Pod:
        """One of the pods, which represents all."""
        return self.pods[0]

    @property
    def runs(self) -> bool:
        """Whether the pods are on nodes; all are, or none."""
        return self.first.node is not None

    @property
    def order_key(self) -> tuple[int, int, int, str]:
        """Sort key where not all jobs can be accepted: most GPUs, highest priority, longest wait."""
        return (-self.gpus * len(self.pods), -self.first.priority, self.first.created_ms, self.name)

    def split(self, level: str, domains: int, workers: int | None = None) -> None:
        """Add a rule about the domains of a level, unless it exists."""
        rule = Split(level=level, domains=domains, workers=workers)
        if rule not in self.splits:
            self.splits.append(rule)
