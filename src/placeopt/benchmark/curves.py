"""Curves of a benchmark, as tables of steps: by solver, over time, factor or gap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from placeopt.benchmark.metrics import heights_at, performance_profile, shares
from placeopt.benchmark.scores import PAIR
from placeopt.benchmark.tables import table
from placeopt.view import Table

TIMES = 200
"""Intervals between the points of the mean gap over time."""


def profile_table(shared: pd.DataFrame, names: Sequence[str], suffix: str) -> Table:
    """Return performance profiles of wall time over cases that all solvers have run."""
    profile = performance_profile(shared.pivot(index=PAIR, columns="solver", values="solved")[list(names)])
    frame = _up_to(1.1 * profile.x.max(), profile).set_axis(["solver", "times the fastest", "share of cases"], axis=1)
    note = "Share of cases proven within so many times the fastest solver's time (Dolan and Moré, 2002)."
    return table(f"Performance profile{suffix}", frame, keys=2, note=note, shown=0)


def gap_table(shared: pd.DataFrame, names: Sequence[str], suffix: str) -> Table:
    """Return by solver the share of cases that end within a gap to the best known value."""
    gaps = shared.pivot(index=PAIR, columns="solver", values="gap")[list(names)]
    frame = _up_to(1.0, shares(gaps.where(gaps < 1))).set_axis(["solver", "gap", "share of cases"], axis=1)
    note = "Share of cases that end within a gap to the best known value."
    return table(f"Cases within a gap{suffix}", frame, keys=2, note=note, shown=0)


def course_table(shared: pd.DataFrame, names: Sequence[str], suffix: str) -> Table:
    """
    Return by solver the mean primal gap over time; of solvers with a trajectory only.

    The times are in geometric progression from a thousandth of the longest limit to the limit: most is decided early.
    """
    times = shared.limit_s.max() * 1000 ** (np.arange(TIMES + 1) / TIMES - 1)
    curves = []
    for name in names:
        cases = shared[shared.solver == name]
        if cases.primal.notna().all():
            heights = np.mean([heights_at(curve, times) for curve in cases.curve], axis=0)
            curves.append(pd.DataFrame({"solver": name, "time": times, "mean gap": heights}))
    frame = pd.concat(curves) if curves else pd.DataFrame(columns=["solver", "time", "mean gap"])
    note = "Mean gap to the best known value over time, of solvers that report values before their end."
    return table(f"Mean gap over time{suffix}", frame, keys=2, note=note, shown=0)


def _up_to(end: float, steps: pd.DataFrame) -> pd.DataFrame:
    """Return steps whose last share of each solver holds up to ``end``, where all curves end."""
    last = steps.groupby("solver", sort=False).tail(1).assign(x=end)
    order = pd.Categorical(pd.concat([steps, last]).solver, steps.solver.unique())
    return pd.concat([steps, last]).iloc[order.argsort(kind="stable")]
