"""Tables of a benchmark, as views have them: verdicts, solvers side by side, and against one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import get_args

import numpy as np
import pandas as pd

from placeopt.benchmark.journal import Verdict
from placeopt.benchmark.metrics import penalised_average, shifted_geometric_mean
from placeopt.benchmark.scores import PAIR
from placeopt.benchmark.verdicts import NO_ANSWER
from placeopt.simulation.statistics import bootstrap_interval
from placeopt.view import Column, Table
from placeopt.view.records import Better, Unit

VIRTUAL_BEST = "virtual best"
"""Takes of every case the fastest solver."""
MORE = frozenset(("ok", "solved", "better", "proven", "wins", "share of cases"))
LESS = frozenset(("fail", "abort", "gap", "wall", "scaled", "spent", "CPU", "PAR2", "PAR10", "primal", "primal-dual"))
"""Columns of which more, and less, is better."""
SECONDS = frozenset(
    ("wall", "spent", "CPU", "PAR2", "PAR10", "primal", "primal-dual", "after", "read", "time", "time limit")
)
PARTS = frozenset(("gap", "gap points", "gap low", "gap high", "apart", "share of cases", "mean gap"))


def table(name: str, frame: pd.DataFrame, *, keys: int = 1, note: str = "", shown: int = 20) -> Table:
    """Return a frame as a table of a view; its columns' names state their units."""
    cells = frame.convert_dtypes().astype(object)
    columns = (Column(name=str(one), unit=_unit(one), better=_better(one)) for one in frame.columns)
    rows = tuple(tuple(None if pd.isna(cell) else cell for cell in row) for row in cells.itertuples(index=False))
    return Table(name=name, columns=tuple(columns), rows=rows, keys=keys, note=note, shown=shown)


def ranked(cases: pd.DataFrame) -> list[str]:
    """
    Return the solvers, best first: by mean gap, then PAR10, then the mean primal-dual integral, then name.

    A solver without an integral comes after those of equal gap and PAR10 that have one.
    """
    of = cases.groupby("solver")
    order = pd.DataFrame({"gap": of.gap.mean().round(9), "both": _means(of, "primal_dual")})
    order["par10"] = of.apply(lambda one: penalised_average(one.solved, one.limit_s, 10))
    return list(order.reset_index().sort_values(["gap", "par10", "both", "solver"]).solver)


def verdict_table(cases: pd.DataFrame) -> Table:
    """Return the number of verdicts of each kind by solver."""
    counts = pd.crosstab(cases.solver, cases.verdict).reindex(columns=get_args(Verdict), fill_value=0)
    counts = counts.reindex(cases.solver.unique())
    counts.insert(0, "cases", counts.sum(axis=1))
    return table("Verdicts", counts.reset_index())


def wrong_table(cases: pd.DataFrame) -> Table:
    """Return all cases that are wrong or have no answer, with the reason; the worst first."""
    wrong = cases[cases.verdict.isin(NO_ANSWER)].sort_values(
        "verdict", key=lambda of: of.map(NO_ANSWER.index), kind="stable"
    )
    wrong = wrong.assign(why=wrong.why.replace("", "contradicts what is known"))
    return table(
        "Wrong, or without an answer", wrong[["instance", "solver", "seed", "verdict", "why"]], keys=3, shown=10
    )


def solver_table(shared: pd.DataFrame, names: Sequence[str], shift_s: float, suffix: str) -> Table:
    """
    Return times, penalised averages, gaps and integrals by solver, on the cases that all have run.

    ``scaled``: The shifted geometric mean of the wall time, over the best solver's.
    """
    of = shared.groupby("solver")
    frame = pd.DataFrame({"cases": of.size(), "proven": of.proven.sum()})
    for column, field in (("wall", "wall"), ("spent", "spent"), ("CPU", "cpu")):
        frame[column] = of[field].apply(shifted_geometric_mean, shift_s)
    frame.insert(3, "scaled", frame.wall / frame.wall.min() if frame.wall.min() > 0 else None)
    for column, factor in (("PAR2", 2), ("PAR10", 10)):
        frame[column] = of.apply(lambda one, factor=factor: penalised_average(one.solved, one.limit_s, factor))
    frame["gap"] = of.gap.mean()
    frame["primal"], frame["primal-dual"] = _means(of, "primal"), _means(of, "primal_dual")
    frame = frame.reindex(names)
    if len(names) > 1:
        best = shared.groupby(PAIR).agg(wall=("wall", "min"), proven=("proven", "max"))
        mean = shifted_geometric_mean(best.wall, shift_s)
        frame.loc[VIRTUAL_BEST, ["cases", "proven", "wall", "scaled"]] = (
            *(len(best), best.proven.sum(), mean),
            mean / frame.wall.min() if frame.wall.min() > 0 else None,
        )
    note = "On the cases that all can take and have run; best first, by gap, PAR10, primal-dual."
    return table(f"Solvers{suffix}", frame.reset_index(names="solver"), note=note)


def comparison_table(shared: pd.DataFrame, names: Sequence[str], baseline: str, shift_s: float, suffix: str) -> Table:
    """
    Return every solver against the baseline, pair by pair, with 95 % intervals.

    A pair is an instance, its seeds averaged: of ``log(wall + shift)`` for the ratio of times, and of final gaps. Wins
    and losses count instances on which the mean gap is smaller and larger.
    """
    logs = shared.assign(log=np.log(shared.wall + shift_s)).pivot_table("log", "instance", "solver")
    gaps = shared.pivot_table("gap", "instance", "solver")
    rows = []
    for solver in (name for name in names if name != baseline):
        ratio, gap = logs[solver] - logs[baseline], gaps[solver] - gaps[baseline]
        counts = (gap < 0).sum(), (gap == 0).sum(), (gap > 0).sum()
        rows.append((solver, len(gap), *map(math.exp, _interval(ratio)), *_interval(gap), *counts))
    columns = ("solver", "instances", "time ratio", "ratio low", "ratio high", "gap points", "gap low", "gap high")
    note = "A ratio of times below 1 is faster, gap points below 0 are better; 95 % intervals, by instance (bootstrap)."
    frame = pd.DataFrame(rows, columns=(*columns, "wins", "ties", "losses"))
    return table(f"Against {baseline}{suffix}", frame, note=note)


def _interval(values: pd.Series) -> tuple[float, float, float]:
    """
    Return mean, low and high of paired differences; of one pair all three are equal.

    Pairs must be independent: runs of one instance with several seeds are one pair, their mean. With fewer than about
    ten pairs such intervals are too narrow.
    """
    found = bootstrap_interval(values.tolist())
    return (values.iloc[0],) * 3 if found is None else (found.mean, found.low, found.high)


def _means(of: pd.api.typing.DataFrameGroupBy, column: str) -> pd.Series:
    """Return means by group; NaN where one of its values is unknown."""
    return of[column].agg(lambda values: values.mean(skipna=False))


def _unit(name: object) -> Unit:
    units: dict[str, Unit] = {**dict.fromkeys(SECONDS, "s"), **dict.fromkeys(PARTS, "fraction"), "peak": "mib"}
    return units.get(str(name), "")


def _better(name: object) -> Better:
    return "more" if name in MORE else "less" if name in LESS else ""
