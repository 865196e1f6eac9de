"""Figures of merit of scheduling papers, as functions of plain numbers."""

from placeopt.metrics.gpu_time import GpuUse, Occupancy, fragments_over_time, occupancy, slots_over_time
from placeopt.metrics.statistics import (
    Distribution,
    Interval,
    bootstrap_interval,
    distribution_of,
    jain_index,
    paired_interval,
    t_interval,
)

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
