"""Rows as samples: what of a case enters comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placeopt.benchmark.metrics import Curve, integral, primal_dual_gap, primal_gap
from placeopt.benchmark.records import Case, Row
from placeopt.formats.solu import Known


@dataclass(frozen=True)
class Sample:
    """
    A case in figures.

    Attributes
    ----------
    solver
        Name, with its settings where a folder holds several.
    solved
        Proven, and not found wrong.
    wall_s, cpu_s
        Of the solve; where there was no answer, the limit, and the limit times threads.
    gap
        Final primal gap to the best value that is known, here or in the ``.solu`` file; 1 if wrong or without value.
    bound_gap
        Final gap of value and bound.
    primal_s, primal_dual_s
        Integrals up to the limit, in seconds: from 0, the best at once, to the limit, nothing ever.
    gap_curve
        Primal gap over time.
    """

    row: Row
    solver: str
    solved: bool
    wall_s: float
    cpu_s: float
    best: int | None
    gap: float
    bound_gap: float
    primal_s: float
    primal_dual_s: float
    gap_curve: Curve

    @property
    def pair(self) -> tuple[str, int]:
        """What it shares with other solvers' samples: instance and seed."""
        return self.row.case.instance, self.row.case.seed

    @property
    def limit_s(self) -> float:
        """The case's time limit."""
        return self.row.case.time_limit_s


def samples_of(rows: Iterable[Row], known: Mapping[str, Known]) -> list[Sample]:
    """Return the samples in the order of the rows."""
    rows = list(rows)
    best = _best(rows, known)
    settings = {_setting(row.case) for row in rows}
    return [_sample(row, best.get(row.case.instance), many=len(settings) > 1) for row in rows]


def _sample(row: Row, best: int | None, *, many: bool) -> Sample:
    case, answer = row.case, row.answer
    wrong = row.verdict in ("fail", "abort")
    gaps: list[tuple[float, float]] = []
    both: list[tuple[float, float]] = []
    for seconds, objective, bound, _, _ in () if wrong else row.trajectory:
        gaps.append((seconds, primal_gap(objective, best)))
        both.append((seconds, primal_dual_gap(objective, bound)))
    solved = not wrong and answer.status in ("optimal", "infeasible")
    if answer.status == "infeasible" and not wrong:  # there is nothing to find
        gaps = both = [(answer.wall_s or 0.0, 0.0)]
    return Sample(
        row=row,
        solver=f"{case.solver} {_setting(case)}" if many else case.solver,
        solved=solved,
        wall_s=case.time_limit_s if answer.wall_s is None else answer.wall_s,
        cpu_s=case.time_limit_s * case.threads if answer.cpu_s is None else answer.cpu_s,
        best=best,
        gap=gaps[-1][1] if gaps else 1.0,
        bound_gap=both[-1][1] if both else 1.0,
        primal_s=integral(gaps, case.time_limit_s),
        primal_dual_s=integral(both, case.time_limit_s),
        gap_curve=tuple(gaps),
    )


def _best(rows: Iterable[Row], known: Mapping[str, Known]) -> dict[str, int]:
    """Return the best value of every instance: known before, or found by a row that is not wrong."""
    found = {name: entry.value for name, entry in known.items() if entry.value is not None}
    for row in rows:
        objective, name = row.answer.objective, row.case.instance
        if objective is not None and row.verdict not in ("fail", "abort"):
            choose = max if row.answer.sense == "max" else min
            found[name] = choose(found.get(name, objective), objective)
    return found


def _setting(case: Case) -> str:
    """Say with which limits a case was run."""
    memory = "" if case.memory_limit_mib is None else f" {case.memory_limit_mib} MiB"
    return f"{case.time_limit_s:g} s x {case.threads}{' permuted' if case.permuted else ''}{memory}"
