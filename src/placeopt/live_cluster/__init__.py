"""A cluster that stays between rounds: its records, its compiled parts, and decisions for single jobs."""

from placeopt.live_cluster.live_cluster import LiveCluster

__all__ = ["LiveCluster"]
