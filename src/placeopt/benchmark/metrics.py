"""Benchmark metrics, each with its formula and source: means, penalties, gaps, integrals, profiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from placeopt.benchmark.solu import Number, is_equal

Curve = Sequence[tuple[float, float]]
"""A step function: from each time, in seconds and ascending, the value until the next; 1 before the first."""
CLOCK_S = 1e-3
"""No clock tells shorter times apart."""


def shifted_geometric_mean(seconds: ArrayLike, shift: float) -> float:
    """
    Return ``exp(mean(log(t + shift))) - shift``.

    The shift keeps runs of milliseconds from deciding (Achterberg, Constraint Integer Programming, 2007, A.3).
    Example: 0, 3 and 8 with shift 1 are (1 x 4 x 9)^(1/3) - 1 = 2.3019.
    """
    return float(np.exp(np.mean(np.log(np.asarray(seconds, dtype=float) + shift))) - shift)


def penalised_average(seconds: pd.Series, limits: pd.Series, factor: float) -> float:
    """
    Return the mean time, an unsolved case (NaN) counted as ``factor`` times its limit: PAR2, PAR10.

    Hutter, Hoos, Leyton-Brown and Stützle, ParamILS, JAIR 36, 2009. Example: 4 s, 6 s and one unsolved at 10 s, factor
    2: 10 s.
    """
    return float(seconds.fillna(factor * limits).mean())


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
    Return the area under a step function, from 0 to ``limit``, in seconds.

    Of primal gaps: the primal integral (Berthold, 2013); of gaps to the bound: the primal-dual integral. Example: 0.5
    from 2 s and 0 from 5 s until 10 s: 2 x 1 + 3 x 0.5 = 3.5 s.
    """
    times = np.maximum.accumulate(np.clip([0.0, *(time for time, _ in curve), limit], 0.0, limit))
    return float(np.diff(times) @ [1.0, *(height for _, height in curve)])


def heights_at(curve: Curve, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values of a step function at some times."""
    return np.array([1.0, *(height for _, height in curve)])[
        np.searchsorted([time for time, _ in curve], times, side="right")
    ]


def performance_profile(seconds: pd.DataFrame) -> pd.DataFrame:
    """
    Return by solver the share of cases it solves within ``tau`` times the best solver's time: solver, tau, share.

    ``seconds``: a case a row, a solver a column; NaN where unsolved. A case that no solver solves counts for none.
    Dolan and More, Benchmarking optimization software with performance profiles, 2002. Example: A takes 1 and 4 s, B 2
    and 2 s: at tau 1 both have 0.5, at 2 both 1.
    """
    times = seconds.clip(lower=CLOCK_S)
    return shares(times.div(times.min(axis=1), axis=0), first=1.0)


def shares(values: pd.DataFrame, first: float = 0.0) -> pd.DataFrame:
    """Return by column the share of all rows that is at most x, as steps from ``first`` on; NaN is in no share."""
    rows: list[tuple[object, float, float]] = []
    for name, column in values.items():
        counts = column.dropna().clip(lower=first).value_counts().sort_index().cumsum() / max(len(column), 1)
        rows += [(name, first, 0.0)] if first not in counts.index else []
        rows += [(name, float(x), float(share)) for x, share in counts.items()]
    return pd.DataFrame(rows, columns=["solver", "x", "share"])
