"""Slowdown curves, published or fitted, tabulated once in integers."""

from __future__ import annotations

from functools import cache

import numpy as np

from placeopt.model.policy import SlowdownCurve
from placeopt.problem import IntArray

SLOWDOWN_CURVES: dict[str, tuple[float, float, float]] = {
    # Horus fig. 4: slowdown = a x^2 + b x + c, x the cumulative utilisation of the GPU as a fraction
    "gtx-1080": (1.32198, -0.00728, 6e-5),
    "rtx-2080": (1.16664, -0.00302, 4e-5),
}


def slowdown(curve: str | SlowdownCurve, x: float) -> float:
    """Evaluate the quadratic at ``x``: a published one by its name, or one that the policy states."""
    if isinstance(curve, str):
        a, b, c = SLOWDOWN_CURVES[curve]
    else:
        a, b, c = curve.square_millionths / 1e6, curve.linear_millionths / 1e6, curve.constant_millionths / 1e6
    return a * x * x + b * x + c


@cache
def excess_table(curve: str | SlowdownCurve, most_percent: int) -> IntArray:
    """
    Shape (most_percent + 1,): s(x) - 1 in thousandths for x = 0..most_percent percent.

    Up to full use s(x) = 1 + (f(1) - 1) x, above it f(x): our reading, since Horus prints only the quadratics f.
    """
    full = slowdown(curve, 1.0)
    table = [
        round(1000 * ((full - 1) * p / 100 if p <= 100 else slowdown(curve, p / 100) - 1))
        for p in range(most_percent + 1)
    ]
    return _frozen(table)


@cache
def cost_table(curve: str | SlowdownCurve, weight_thousandths: int, most_percent: int) -> IntArray:
    """Shape (most_percent + 1,): w2 x f(x) of Horus eq. 9 in thousandths for x = 0..most_percent percent."""
    return _frozen([round(weight_thousandths * slowdown(curve, p / 100)) for p in range(most_percent + 1)])


def _frozen(table: list[int]) -> IntArray:
    array = np.array(table, dtype=np.int64)
    array.setflags(write=False)  # callers share what is cached
    return array
