"""A cluster that stays: its records, its compiled parts, decisions for single jobs, and what a plan changes in it."""

from placeopt.live_cluster.live_cluster import LiveCluster

__all__ = ["LiveCluster"]
