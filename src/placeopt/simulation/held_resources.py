"""What a running job holds of GPUs, nodes, shares and memory bandwidth, as far as its pace depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from placeopt.model import Placement
from placeopt.model.base import Thousandths
from placeopt.problem.grants import Bounds
from placeopt.scheduling.occupancy import Gpu

Domains = tuple[frozenset[int], ...]
"""GPUs, switches, sockets and nodes that a job uses, by number: the closest kind first."""


@dataclass(frozen=True)
class HeldResources:
    """What a running job holds, and what that makes of its pace."""

    job: str
    profile: str | None
    placement: Placement
    gpus: tuple[Gpu, ...]
    gpu_nodes: tuple[str, ...]
    """Nodes of its GPUs, in the order of the cluster."""
    utilisation_percent: int
    """Expected of each of its GPUs."""
    gpu_memory_mib: int
    """What it actually needs of each of its GPUs."""
    domains: Domains
    apart_thousandths: Thousandths
    """Excess run time by the path between its GPUs."""
    cores_thousandths: int = 0
    """Excess run time by too few CPU cores."""
    mbps: Mapping[str, int] = field(default_factory=dict)
    """Memory bandwidth that it would use, by node; empty where bandwidth slows no job."""
    throttled: bool = False
    """Whether a policy that throttles bandwidth throttles this job."""
    bounds: Bounds = (1000, 1000)
    """Request and limit of each of its GPUs."""
    most_percent: int = 0
    """What it can use of each of its GPUs: its utilisation, at most its share."""
