"""Figures of merit: what scheduling papers measure, as functions of numbers. Times in, ratios and statistics out."""

from placeopt.metrics.confidence import Interval, bootstrap_interval, paired_interval, t_interval
from placeopt.metrics.fairness import jain_index
from placeopt.metrics.gpu_time import Occupancy, Stay, occupancy
from placeopt.metrics.over_time import fragments_over_time, slots_over_time
from placeopt.metrics.spread import Spread, spread_of

__all__ = [
    "Interval",
    "Occupancy",
    "Spread",
    "Stay",
    "bootstrap_interval",
    "fragments_over_time",
    "jain_index",
    "occupancy",
    "paired_interval",
    "slots_over_time",
    "spread_of",
    "t_interval",
]
