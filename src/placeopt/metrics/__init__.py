"""Figures of merit of scheduling papers, as functions of plain numbers."""

from placeopt.metrics.confidence import Interval, bootstrap_interval, paired_interval, t_interval
from placeopt.metrics.fairness import jain_index
from placeopt.metrics.gpu_time import GpuUse, Occupancy, occupancy
from placeopt.metrics.over_time import fragments_over_time, slots_over_time
from placeopt.metrics.spread import Distribution, distribution_of

__all__ = [
    "Distribution",
    "GpuUse",
    "Interval",
    "Occupancy",
    "bootstrap_interval",
    "distribution_of",
    "fragments_over_time",
    "jain_index",
    "occupancy",
    "paired_interval",
    "slots_over_time",
    "t_interval",
]
