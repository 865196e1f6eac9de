"""Clusters as a resource manager shows them, read as a round: nodes, what runs on them, and what waits."""

from placeopt.formats.snapshots.kubernetes import read_kubernetes
from placeopt.formats.snapshots.slurm import read_slurm

__all__ = ["read_kubernetes", "read_slurm"]
