"""The hardware as a weighted graph: distances inside machines and across the cluster, and well-known machines."""

from placeopt.topology.builders import MACHINES, dgx1, dgx2, dgx_a100, dgx_h100, minsky, pcie_box
from placeopt.topology.cluster_topology import ClusterTopology
from placeopt.topology.graphs import PathEdge, bottleneck_mbps, cluster_graph, machine_graph, path_links
from placeopt.topology.machine_distances import (
    LEVEL_WEIGHTS,
    domain_weights,
    gpu_distances,
    root_distances,
)

__all__ = [
    "LEVEL_WEIGHTS",
    "MACHINES",
    "ClusterTopology",
    "PathEdge",
    "bottleneck_mbps",
    "cluster_graph",
    "dgx1",
    "dgx2",
    "dgx_a100",
    "dgx_h100",
    "domain_weights",
    "gpu_distances",
    "machine_graph",
    "minsky",
    "path_links",
    "pcie_box",
    "root_distances",
]
