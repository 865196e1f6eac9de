"""
A cluster that stays between rounds: its records, its compiled parts, and decisions for single jobs.

`placeopt.Engine` is the way to it; ``changes_between`` compares two readings of a cluster, and ``Engine.apply`` takes
what it returns.
"""

from placeopt.live_cluster.changes import FLAGS, ClusterChanges, changes_between, keep_prices
from placeopt.live_cluster.cluster_record import without_groups
from placeopt.live_cluster.engine import Engine
from placeopt.live_cluster.live_cluster import LiveCluster
from placeopt.live_cluster.rebase import Committed

__all__ = [
    "FLAGS",
    "ClusterChanges",
    "Committed",
    "Engine",
    "LiveCluster",
    "changes_between",
    "keep_prices",
    "without_groups",
]
