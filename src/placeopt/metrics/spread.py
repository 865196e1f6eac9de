"""Mean, percentiles and maximum of figures of many jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Distribution:
    """Mean, median, 95th percentile and maximum; percentiles between two values are interpolated linearly."""

    mean: float
    median: float
    p95: float
    max: float


def distribution_of(values: Sequence[float]) -> Distribution | None:
    """Return the distribution of some numbers; None for none."""
    if not len(values):
        return None
    array = np.asarray(values, dtype=float)
    median, p95 = np.percentile(array, [50, 95])
    return Distribution(float(array.mean()), float(median), float(p95), float(array.max()))
