"""Pods that start together, on their way to become a job of the round."""

from __future__ import annotations

from dataclasses import dataclass, field

from placeopt.formats.kubernetes.pods import Pod
from placeopt.model import Split


@dataclass
class JobDraft:
    """
    Pods alike that are one job.

    ``least`` of them start together at least. ``blocked`` are nodes on which none of them may be; the other fields say
    how they lie, as those of `placeopt.model.Option`.
    """

    name: str
    pods: list[Pod]
    pods_min: int
    gpus: int
    cpu_millicores: int
    memory_mib: int
    topology_key: str | None = None
    """The label of nodes whose value they must share."""
    excluded_nodes: frozenset[str] = frozenset()
    single_node: bool = False
    workers_per_node_max: int | None = None
    splits: list[Split] = field(default_factory=list)

    @property
    def first(self) -> Pod:
        """The pod that stands for all."""
        return self.pods[0]

    @property
    def runs(self) -> bool:
        """Whether they are on nodes; all of them are, or none."""
        return self.first.node is not None

    @property
    def order_key(self) -> tuple[int, int, int, str]:
        """Who is taken first where not all can be: the most GPUs, the highest priority, the longest wait."""
        return (-self.gpus * len(self.pods), -self.first.priority, self.first.created_ms, self.name)

    def split(self, level: str, domains: int, workers: int | None = None) -> None:
        """Add a rule about the domains of a level, once."""
        rule = Split(level=level, domains=domains, workers=workers)
        if rule not in self.splits:
            self.splits.append(rule)
