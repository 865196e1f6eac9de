"""The hardware as a weighted graph: distances inside machines and across the cluster, and well-known machines."""

from placeopt.topology.builders import MACHINES, dgx1, dgx2, dgx_a100, dgx_h100, minsky, pcie_box
from placeopt.topology.cluster_topology import ClusterTopology
from placeopt.topology.machine_distances import (
    LEVEL_WEIGHTS,
    bottleneck_mbps,
    domain_weights,
    gpu_distances,
    root_distances,
)
from placeopt.topology.mig import MIG_GPUS, mig_profiles

__all__ = [
    "LEVEL_WEIGHTS",
    "MACHINES",
    "MIG_GPUS",
    "ClusterTopology",
    "bottleneck_mbps",
    "dgx1",
    "dgx2",
    "dgx_a100",
    "dgx_h100",
    "domain_weights",
    "gpu_distances",
    "mig_profiles",
    "minsky",
    "pcie_box",
    "root_distances",
]
