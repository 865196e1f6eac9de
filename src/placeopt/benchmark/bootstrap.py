"""Intervals for paired comparisons, by drawing instances anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

RESAMPLES = 10_000
LEVEL = 0.95
ENTRIES = 2_000_000
"""Draws held at once."""


class Interval(NamedTuple):
    """A mean and the interval that holds it in 95 of 100 samples; equal to it where there is one pair only."""

    mean: float
    low: float
    high: float


def paired_interval(differences: Sequence[float], seed: int = 0) -> Interval | None:
    """
    Return the mean of paired differences with its bootstrap interval (percentiles); None of no pairs.

    Parameters
    ----------
    differences
        One a pair. Pairs must be independent: runs of one instance with several seeds are one pair, their mean.
    seed
        Of the draws: the same differences give the same interval.

    Notes
    -----
    Efron, Bootstrap methods, 1979: as many pairs as there are, drawn with replacement, 10,000 times; the 2.5th and
    97.5th percentile of their means. With fewer than about ten pairs such intervals are too narrow.
    """
    if not differences:
        return None
    values = np.asarray(differences, dtype=np.float64)
    draw = np.random.default_rng(seed)
    size = max(1, ENTRIES // len(values))
    means = [
        values[draw.integers(0, len(values), (min(size, RESAMPLES - first), len(values)))].mean(axis=1)
        for first in range(0, RESAMPLES, size)
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(values.mean()), float(low), float(high))
