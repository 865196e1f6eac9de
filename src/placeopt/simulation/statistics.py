"""Statistics of figures: confidence intervals, mean and percentiles, fairness of shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Interval:
    """A mean, and the interval that holds the true mean with the stated confidence."""

    mean: float
    low: float
    high: float


def t_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """
    Return Student's interval for the mean of independent values; None for fewer than two.

    Example: 1, 2, 3 have mean 2, standard deviation 1 and t = 4.303: 2 -+ 2.484.
    """
    n = len(values)
    if n < 2:
        return None
    array = np.asarray(values, dtype=float)
    mean, half = float(array.mean()), t_quantile(n - 1, confidence) * float(array.std(ddof=1)) / sqrt(n)
    return Interval(mean, mean - half, mean + half)


def paired_interval(one: Sequence[float], other: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """
    Return Student's interval for the mean of ``one - other``, value by value, such as of the same seed.

    Raises
    ------
    ValueError
        If their numbers differ.
    """
    return t_interval([a - b for a, b in zip(one, other, strict=True)], confidence)


def bootstrap_interval(
    values: Sequence[float], confidence: float = 0.95, *, draws: int = 10_000, seed: int = 0
) -> Interval | None:
    """Return the percentile interval of means of samples drawn with replacement; None for fewer than two values."""
    n = len(values)
    if n < 2:
        return None
    array = np.asarray(values, dtype=float)
    random = np.random.default_rng(seed)
    means = array[random.integers(0, n, size=(draws, n))].mean(axis=1)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(array.mean()), float(low), float(high))


@cache
def t_quantile(freedom: int, confidence: float) -> float:
    """
    Return the t for which Student's variable with ``freedom`` degrees lies in -t..t with probability ``confidence``.
    """
    from scipy.special import stdtrit  # here, as it takes a while to load and few callers need it

    return float(stdtrit(freedom, (1 + confidence) / 2))


@dataclass(frozen=True)
class Distribution:
    """Mean, median, 95th percentile and maximum; percentiles between two values are interpolated linearly."""

    mean: float
    median: float
    p95: float
    max: float


def distribution_of(values: Sequence[float] | NDArray[np.float64]) -> Distribution | None:
    """Return the distribution of some numbers; None for none."""
    if not len(values):
        return None
    array = np.asarray(values, dtype=float)
    median, p95 = np.percentile(array, [50, 95])
    return Distribution(float(array.mean()), float(median), float(p95), float(array.max()))


def jain_index(shares: Sequence[float]) -> float | None:
    """
    Return Jain's index ``(sum x)^2 / (n sum x^2)``: 1 for equal shares, 1/n if one has everything; None without any.

    Notes
    -----
    Jain, Chiu, Hawe 1984. All shares 0 count as equal: 1. Example: 1, 1, 4 give 36 / 54.
    """
    if not len(shares):
        return None
    squares = sum(x * x for x in shares)
    return 1.0 if squares == 0 else float(sum(shares)) ** 2 / (len(shares) * squares)
