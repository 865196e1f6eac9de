"""Confidence intervals over seeds: Student's t, paired, and by bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, lgamma, pi, sqrt

import numpy as np

STRIPS = 2_000
"""Of Simpson's rule; an even number."""


@dataclass(frozen=True)
class Interval:
    """A mean and the interval in which the true one lies with the stated confidence."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the mean can be told from 0."""
        return self.low > 0 or self.high < 0


def t_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """
    Student's interval for the mean of independent values; None of fewer than two.

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
    Student's interval for the mean of ``one - other``, value by value: of the same seed, say.

    Raises
    ------
    ValueError
        If there are more of one than of the other.
    """
    return t_interval([a - b for a, b in zip(one, other, strict=True)], confidence)


def bootstrap_interval(
    values: Sequence[float], confidence: float = 0.95, *, draws: int = 10_000, seed: int = 0
) -> Interval | None:
    """Percentile interval for the mean, from means of samples drawn with replacement; None of fewer than two."""
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
    Return the t that a variable of so many degrees of freedom keeps within -t..t with this probability.

    The density is integrated by Simpson's rule and the end found by bisection: exact to 5 digits up to t of some 100.
    """
    low, high = 0.0, 1.0
    while _inside(high, freedom) < confidence:
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _inside(middle, freedom) < confidence else (low, middle)
    return high


def _inside(t: float, freedom: int) -> float:
    """Probability of -t..t; x = sqrt(freedom) tan(u) takes the tails' length out of the integral."""
    u = np.linspace(0.0, float(np.arctan(t / sqrt(freedom))), STRIPS + 1)
    weights = np.full(STRIPS + 1, 2.0)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    integral = float((weights * np.cos(u) ** (freedom - 1)).sum()) * float(u[1]) / 3
    return 2.0 * exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(pi) * integral
