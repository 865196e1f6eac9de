"""Slowdown of a job by the cumulative use of a shared GPU: published curves and fitted ones, and how far use can go."""

from __future__ import annotations

from functools import cache

import numpy as np

from placeopt.model.policy import SlowdownCurve
from placeopt.problem import IntArray, Problem

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
    return frozen(table)


def frozen(table: list[int]) -> IntArray:
    """Return an array that nothing can change: callers share what is cached."""
    array = np.array(table, dtype=np.int64)
    array.setflags(write=False)
    return array


def most_percent(problem: Problem) -> int:
    """Return the highest cumulative utilisation that any GPU can reach, in percent."""
    return int(problem.options.utilisation.max(initial=0)) * most_jobs(problem)


def most_jobs(problem: Problem) -> int:
    """Return the most jobs that any GPU can have."""
    limits = [] if problem.jobs_per_gpu is None else [problem.jobs_per_gpu]
    if problem.shares_bind:
        limits.append(1000 // int(problem.options.milli.min(initial=1000)))
    return max(min(limits), problem.max_running_per_gpu)
