"""Cases with the figures by which solvers are compared, as a table of pandas: one row a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from placeopt.benchmark.journal import Case, Row, known_at_run
from placeopt.benchmark.metrics import integral, primal_dual_gap, primal_gap
from placeopt.benchmark.solu import Known, Number
from placeopt.benchmark.verdicts import NO_ANSWER, WITHOUT_VALUE
from placeopt.solvers.registry import SOLVERS

PAIR = ["instance", "seed"]
"""What cases of several solvers share."""
NUMBERS = ("objective", "bound", "cost", "cost bound", "best", "solved", "read", "peak", "primal", "primal_dual")
"""Columns in which a number may be unknown; objectives stay below 2^53, so floats hold them."""


def score_rows(
    rows: Sequence[Row], known: Mapping[str, Known] | None = None, older: Mapping[str, Known] | None = None
) -> pd.DataFrame:
    """
    Return a row for each case, in the order of ``rows``; ``known`` and ``older`` as of `known_at_run`.

    - ``solver``: Its name, with the settings where a folder holds several.
    - ``proven``: Proven, and not found wrong.
    - ``supported``: The solver takes the instance; else the case is in no mean.
    - ``spent``, ``cpu``: Seconds of the solve; the limit, and the limit times threads, where there was no answer.
    - ``wall``: Seconds, where an unsolved case counts its whole limit. ``solved``: Seconds of a proven case, else NaN.
    - ``best``: The best value of the instance, known before or found by a correct row.
    - ``gap``: The final primal gap to it, 1 if wrong or without value; ``curve``: the same over time.
    - ``primal``, ``primal_dual``: Integrals up to the limit, in seconds: 0 if the best value is there at once, the
      limit if there is never a value; NaN for solvers that report nothing before their end.
    """
    best, senses = _best(rows, known_at_run(rows, older, known)), _senses(rows)
    many = len({_setting(row.case) for row in rows}) > 1
    records = [_record(row, best.get(row.case.instance), senses[row.case.instance], many=many) for row in rows]
    return pd.DataFrame(records).astype(dict.fromkeys(NUMBERS, float))


def common(cases: pd.DataFrame) -> pd.DataFrame:
    """
    Return the cases of the (instance, seed) pairs that every solver has run and supports.

    A pair that one solver does not support is compared for none; a solver that supports no pair is left out.
    """
    cases = cases[cases.supported]
    return cases[cases.groupby(PAIR).solver.transform("nunique") == cases.solver.nunique()]


def _record(row: Row, best: Number | None, sense: str, *, many: bool) -> dict[str, Any]:
    case, answer = row.case, row.answer
    is_wrong, limit = row.verdict in NO_ANSWER, case.time_limit_s
    points = () if is_wrong else row.trajectory
    gaps = [(seconds, primal_gap(objective, best)) for seconds, objective, *_ in points]
    both = [(seconds, primal_dual_gap(objective, bound)) for seconds, objective, bound, *_ in points]
    if answer.status in WITHOUT_VALUE and not is_wrong:  # there is nothing to find
        gaps = both = [(answer.wall_s or 0.0, 0.0)]
    proven = not is_wrong and answer.status in ("optimal", *WITHOUT_VALUE)
    spent = limit if answer.wall_s is None else answer.wall_s
    return {
        "instance": case.instance,
        "solver": f"{case.solver} {_setting(case)}" if many else case.solver,
        "seed": case.seed,
        "kind": case.kind,
        "verdict": row.verdict,
        "status": answer.status,
        "limit": answer.limit,
        "sense": sense,
        "objective": answer.objective,
        "bound": answer.bound,
        "cost": answer.cost,
        "cost bound": answer.cost_bound,
        "best": best,
        "proven": proven,
        "supported": row.verdict != "unsupported",
        "limit_s": limit,
        "spent": spent,
        "wall": spent if proven else max(spent, limit),
        "solved": spent if proven else None,
        "cpu": limit * case.threads if answer.cpu_s is None else answer.cpu_s,
        "read": answer.read_s,
        "peak": answer.peak_mib,
        "gap": gaps[-1][1] if gaps else 1.0,
        "primal": integral(gaps, limit) if _reports(case) else None,
        "primal_dual": integral(both, limit) if _reports(case) else None,
        "curve": gaps,
        "trajectory": row.trajectory,
        "load": max(row.load_before, row.load_after),
        "sha256": case.sha256,
        "why": "; ".join(answer.refused) or answer.message,
    }


def _senses(rows: Sequence[Row]) -> dict[str, Literal["max", "min"]]:
    """Return the sense of each instance; only a row with a value or a bound states it."""
    senses: dict[str, Literal["max", "min"]] = {row.case.instance: "max" for row in rows}
    stated = (row for row in reversed(rows) if (row.answer.objective, row.answer.bound) != (None, None))
    return senses | {row.case.instance: row.answer.sense for row in stated}


def _best(rows: Sequence[Row], then: Mapping[str, Known]) -> dict[str, Number]:
    """Return the best value of every instance: known before (``then``, by case) or found by a correct row."""
    senses, best = _senses(rows), dict[str, Number]()
    for row in rows:
        better = max if senses[row.case.instance] == "max" else min
        values = (then[row.case.key].value, None if row.verdict in NO_ANSWER else row.answer.objective)
        for value in values:
            if value is not None:
                best[row.case.instance] = better(value, best.get(row.case.instance, value))
    return best


def _reports(case: Case) -> bool:
    """Return whether a solver reports while it runs: methods do, solvers as the registry states."""
    entry = SOLVERS.get(case.solver)
    return entry is None or entry.capability.progress


def _setting(case: Case) -> str:
    """Return the limits of a case as text."""
    memory = "" if case.memory_limit_mib is None else f" {case.memory_limit_mib} MiB"
    return f"{case.time_limit_s:g} s x {case.threads}{' permuted' if case.permuted else ''}{memory}"
