"""Benchmark metrics: means, penalties, gaps, integrals and profiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from placeopt.benchmark.solu import Number, is_equal

Curve = Sequence[tuple[float, float]]
"""A step function: from each time, in seconds and ascending, the value until the next."""


def shifted_geometric_mean(values: Sequence[float], shift: float) -> float | None:
    """
    Return ``exp(mean(log(v + shift))) - shift``; None if there are no values.

    The shift keeps runs of milliseconds from deciding (Achterberg, Constraint Integer Programming, 2007, A.3).
    Example: 0, 3 and 8 with shift 1 are (1 x 4 x 9)^(1/3) - 1 = 2.3019. Every value plus the shift must be above 0.
    """
    if not values:
        return None
    if any(value + shift <= 0 for value in values):
        raise ValueError(f"shift {shift}: every value plus the shift must be above 0")
    return math.exp(sum(math.log(value + shift) for value in values) / len(values)) - shift


def penalised_average(times: Sequence[float | None], limits: Sequence[float], factor: float) -> float | None:
    """
    Return the mean time, an unsolved case counted as ``factor`` times its limit: PAR2, PAR10.

    ``times`` are seconds, None where unsolved. Example: 4 s, 6 s and one unsolved at 10 s, factor 2: 10 s.
    """
    if not times:
        return None
    spent = (factor * limit if time is None else time for time, limit in zip(times, limits, strict=True))
    return sum(spent) / len(times)


def primal_gap(objective: Number | None, best: Number | None) -> float:
    """
    Return how far an objective is from the best one, from 0 (equal) to 1 (no objective, or of other sign).

    ``|best - objective| / max(|best|, |objective|)`` (Berthold, Measuring the impact of primal heuristics, 2013).
    Without a best one there is nothing to measure against: 1 without an objective, 0 with one.
    """
    if objective is None:
        return 1.0
    if best is None or is_equal(objective, best):
        return 0.0
    return 1.0 if objective * best < 0 else abs(best - objective) / max(abs(best), abs(objective))


def primal_dual_gap(objective: Number | None, bound: Number | None) -> float:
    """Return the gap of objective and bound in the same way: 1 while either is missing, 0 where they meet."""
    return 1.0 if bound is None else primal_gap(objective, bound)


def integral(curve: Curve, limit: float) -> float:
    """
    Return the area under a step function that is 1 before its first point, from 0 to ``limit``, in seconds.

    Of primal gaps: the primal integral (Berthold, 2013); of gaps to the bound: the primal-dual integral. Example: 0.5
    from 2 s and 0 from 5 s until 10 s: 2 x 1 + 3 x 0.5 = 3.5 s.
    """
    area, since, height = 0.0, 0.0, 1.0
    for time, value in curve:
        now = min(max(time, since), limit)
        area += height * (now - since)
        since, height = now, value
    return area + height * (limit - since)


def height_at(curve: Curve, time: float) -> float:
    """Return the value of a step function at a time."""
    height = 1.0
    for since, value in curve:
        if since > time:
            break
        height = value
    return height


def performance_profile(times: Mapping[str, Sequence[float | None]]) -> dict[str, list[tuple[float, float]]]:
    """
    Return by solver the share of cases it solves within ``tau`` times the best solver's time, as steps (tau, share).

    ``times``: by solver, the seconds of every case, in the same order for all; None where unsolved. A case that no
    solver solves counts for none. Dolan and More, Benchmarking optimization software with performance profiles, 2002.
    Times below a millisecond count as one, for no clock tells them apart. Example: A takes 1 and 4 s, B 2 and 2 s: at
    tau 1 both have 0.5, at 2 both 1.
    """
    count = len(next(iter(times.values()), ()))
    best = [
        min((max(t, 1e-3) for row in times.values() if (t := row[i]) is not None), default=None) for i in range(count)
    ]
    out = {}
    for solver, row in times.items():
        ratios = sorted(max(t, 1e-3) / b for t, b in zip(row, best, strict=True) if t is not None and b is not None)
        out[solver] = steps(ratios, count, first=1.0)
    return out


def steps(values: Iterable[float], count: int, first: float = 0.0) -> list[tuple[float, float]]:
    """Return the share of ``count`` that is at most x, as pairs (x, share) from ``first`` on; distinct values."""
    shares = {first: 0.0}
    for number, value in enumerate(sorted(values), 1):
        shares[max(value, first)] = number / count
    return sorted(shares.items())
