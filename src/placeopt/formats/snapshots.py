"""Clusters as a resource manager shows them, read as a round: nodes, what runs on them, and what waits."""

from placeopt.formats.kubernetes.single import KubernetesObjects
from placeopt.formats.kubernetes.snapshot import read_kubernetes
from placeopt.formats.priority_rule import PriorityRule
from placeopt.formats.slurm.single import SlurmObjects
from placeopt.formats.slurm.snapshot import read_slurm

__all__ = ["KubernetesObjects", "PriorityRule", "SlurmObjects", "read_kubernetes", "read_slurm"]
