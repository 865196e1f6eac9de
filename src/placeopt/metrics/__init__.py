"""Figures of merit: what scheduling papers measure, as functions of numbers. Times in, ratios and statistics out."""

from placeopt.metrics.confidence import Interval, bootstrap_interval, paired_interval, t_interval
from placeopt.metrics.fairness import jain_index
from placeopt.metrics.occupancy import Occupancy, Stay, occupancy
from placeopt.metrics.spread import Spread, spread_of

__all__ = [
    "Interval",
    "Occupancy",
    "Spread",
    "Stay",
    "bootstrap_interval",
    "jain_index",
    "occupancy",
    "paired_interval",
    "spread_of",
    "t_interval",
]
