"""Tables of a benchmark by instance and by case, and the versions of solvers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from placeopt.benchmark.journal import RunRecord, TrajectoryPoint
from placeopt.benchmark.metrics import primal_dual_gap
from placeopt.benchmark.scores import PAIR
from placeopt.benchmark.solu import is_equal
from placeopt.benchmark.tables import table
from placeopt.benchmark.verdicts import NO_ANSWER
from placeopt.solvers.registry import SOLVERS
from placeopt.view import Table


def seconds_table(cases: pd.DataFrame, names: Sequence[str], suffix: str) -> Table:
    """Return the seconds of each proven case, and the verdict of every other one: an instance a row, as Mittelmann."""
    cells = cases.assign(cell=cases.solved.astype(object).where(cases.proven, cases.verdict))
    frame = cells.pivot(index=PAIR, columns="solver", values="cell")[list(names)].reset_index()
    note = "Seconds where proven, else the verdict; a dash was not run."
    return table(f"Seconds by instance{suffix}", frame, keys=2, note=note)


def best_table(cases: pd.DataFrame, suffix: str) -> Table:
    """Return per instance the best value and bound of all solvers, how many found it, and which one first."""
    rows = []
    for instance, of in cases.groupby("instance"):
        right = of[~of.verdict.isin(NO_ANSWER)]
        best, least = ("max", "min") if of.sense.iloc[0] == "max" else ("min", "max")
        found, bound = _whole(right.objective.agg(best)), _whole(right.bound.agg(least))
        having = right[np.array([_is(_whole(value), found) for value in right.objective], dtype=np.bool_)]
        reached = [_reached(one.trajectory, found, one.spent) for one in having.itertuples()]
        after = pd.Series(reached, index=having.solver, dtype=float).sort_index()
        rows.append(
            (
                *(instance, of.best.iloc[0], found, bound),
                None if found is None or bound is None else primal_dual_gap(found, bound),
                *(having.solver.nunique(), of[of.proven].solver.nunique()),
                *((after.idxmin(), after.min()) if len(after) else (None, None)),
            )
        )
    columns = ["instance", "best known", "found", "bound", "apart", "solvers", "prove it", "first", "after"]
    note = "The best value found, how far the best bound is apart, how many solvers find it, which one first."
    return table(f"Best by instance{suffix}", pd.DataFrame(rows, columns=columns), note=note)


def _reached(trajectory: Sequence[TrajectoryPoint], value: int | float | None, spent: float) -> float:
    """Return the seconds until a case first reported a value; at its end if it did not before."""
    return next((seconds for seconds, objective, *_ in trajectory if _is(objective, value)), spent)


def instance_table(cases: pd.DataFrame) -> Table:
    """Return per instance and solver the known value, best and worst value found, proven runs and mean time."""
    sign = np.where(cases.sense == "max", 1.0, -1.0)
    signed = cases.assign(
        sign=sign,
        value=sign * cases.objective,
        limit=sign * cases.bound,
        gap=cases.gap.where(cases.supported),
        spent=cases.spent.where(cases.supported),
    )
    frame = signed.groupby(["instance", "solver"], sort=False).agg(
        sign=("sign", "first"),
        runs=("seed", "size"),
        proven=("proven", "sum"),
        known=("best", "first"),
        best=("value", "max"),
        worst=("value", "min"),
        bound=("limit", "min"),
        gap=("gap", "mean"),
        spent=("spent", "mean"),
    )
    frame[["best", "worst", "bound"]] = frame[["best", "worst", "bound"]].mul(frame.sign, axis=0) + 0.0
    frame = frame.drop(columns="sign").rename(columns={"known": "best known"}).reset_index()
    return table("By instance and solver", frame, keys=2)


def case_table(cases: pd.DataFrame) -> Table:
    """Return one row per case."""
    of = cases.rename(columns={"primal_dual": "primal-dual", "cpu": "CPU", "limit_s": "time limit"})
    measured = ["gap", "primal", "primal-dual"]
    of[measured] = of[measured].where(cases.supported)
    columns = ["instance", "solver", "seed", "verdict", "status", "limit", "time limit", "best", "objective", "bound"]
    columns += ["cost", "cost bound", "spent", "CPU", "read", "peak", *measured, "load", "sha256", "why"]
    return table("Cases", of[columns], keys=3, shown=0)


def settings_table(runs: Sequence[RunRecord], solvers: Sequence[str]) -> Table:
    """Return the version of every solver, of the last run that states one, and what is set beyond the limits."""
    versions: dict[str, str] = {}
    for run in runs:
        versions |= run.versions
    rows = [(name, _version(name, versions), SOLVERS[name].settings if name in SOLVERS else "") for name in solvers]
    note = "All are asked for proofs (gap 0) with the same limit, threads and seed."
    return table("Versions and options", pd.DataFrame(rows, columns=["solver", "version", "options"]), note=note)


def _version(name: str, versions: Mapping[str, str]) -> str:
    package = SOLVERS[name].package if name in SOLVERS else "placeopt"
    return versions.get(name) or f"{package} {versions.get(package, '?')}"


def _whole(value: float) -> int | float | None:
    """Return a number as it was before pandas had it: integers are compared exactly."""
    return None if math.isnan(value) else int(value) if float(value).is_integer() else float(value)


def _is(one: int | float | None, other: int | float | None) -> bool:
    return one is not None and other is not None and is_equal(one, other)
