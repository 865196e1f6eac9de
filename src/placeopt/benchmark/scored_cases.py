"""
Verdicts on cases in the words of the field, and the scores by which cases are compared.

| word | means |
|---|---|
| ``ok`` | proven, and equal to the known optimum |
| ``solved`` | proven; no optimum was known |
| ``better`` | better than the best known value, proven or not |
| ``timeout`` | ended without a proof: by a limit, or since the method has nothing more to try |
| ``fail`` | wrong: refused by the referee, or it contradicts what is known |
| ``abort`` | no answer: crashed, killed, or an error of the solver |
| ``unsupported`` | the solver cannot take the instance, for instance a model with continuous variables; in no mean |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from placeopt.benchmark.journal import Case, CaseAnswer, Row, Verdict, known_at_run
from placeopt.benchmark.metrics import Curve, integral, primal_dual_gap, primal_gap
from placeopt.benchmark.solu import Known, Number, is_equal
from placeopt.solvers.registry import SOLVERS

NO_ANSWER = ("fail", "abort", "unsupported")
"""Verdicts of cases whose values do not count."""
WITHOUT_VALUE = ("infeasible", "unbounded")
"""Statuses that settle a case without a value."""


def judge(answer: CaseAnswer, known: Known) -> Verdict:
    """Return the verdict on an answer; ``known`` comes from a ``.solu`` file."""
    if answer.refused or contradiction(answer, known):
        return "fail"
    if answer.status == "unsupported":
        return "unsupported"
    if answer.status in ("error", "killed", "crashed"):
        return "abort"
    if answer.status in WITHOUT_VALUE:
        return "ok" if answer.status == "infeasible" and known.infeasible else "solved"
    if answer.objective is not None and known.value is not None and _better(answer, answer.objective, known.value):
        return "better"
    if answer.status == "optimal":
        return "ok" if known.optimal else "solved"
    return "timeout"


def contradiction(answer: CaseAnswer, known: Known) -> str | None:
    """Return how an answer contradicts the known values; None if it does not. One of the two is wrong."""
    if answer.status == "infeasible" and known.value is not None:
        return f"called infeasible, but a value of {known.value} is known"
    if answer.status == "unbounded" and known.bound is not None:
        return f"called unbounded, but a bound of {known.bound} is known"
    if known.infeasible and (answer.objective is not None or answer.status == "unbounded"):
        return "a solution of an instance that is known to have none"
    if answer.objective is not None and known.bound is not None and _better(answer, answer.objective, known.bound):
        return f"objective {answer.objective} is better than the proven bound {known.bound}"
    if answer.bound is not None and known.value is not None and _better(answer, known.value, answer.bound):
        return f"bound {answer.bound} is contradicted by the known value {known.value}"
    if answer.objective is not None and answer.bound is not None and _better(answer, answer.objective, answer.bound):
        return f"objective {answer.objective} is better than its own bound {answer.bound}"
    return None


def _better(answer: CaseAnswer, one: Number, other: Number) -> bool:
    if is_equal(one, other):
        return False
    return one > other if answer.sense == "max" else one < other


@dataclass(frozen=True)
class ScoredCase:
    """
    A row with the figures that comparisons use.

    ``solver`` has its settings added where a folder holds several. ``solved``: proven, and not found wrong. ``wall_s``
    and ``cpu_s`` are of the solve; where there was no answer, the limit, and the limit times threads. ``gap`` is the
    final primal gap to the best value known, 1 if wrong or without value; ``gap_curve`` the same over time.
    ``primal_s`` and ``primal_dual_s`` are integrals up to the limit, in seconds: 0 if the best value is there at once,
    the limit if there is never a value; None for solvers that report nothing before their end, so have no trajectory.
    """

    row: Row
    solver: str
    solved: bool
    wall_s: float
    cpu_s: float
    best: Number | None
    gap: float
    primal_s: float | None
    primal_dual_s: float | None
    gap_curve: Curve

    @property
    def pair(self) -> tuple[str, int]:
        """Instance and seed, which cases of several solvers share."""
        return self.row.case.instance, self.row.case.seed

    @property
    def proven_s(self) -> float | None:
        """Wall time of a solved case, in seconds; None: not solved."""
        return self.wall_s if self.solved else None

    @property
    def spent_s(self) -> float:
        """Wall time where an unsolved case counts its whole limit, in seconds."""
        return self.wall_s if self.solved else max(self.limit_s, self.wall_s)

    @property
    def limit_s(self) -> float:
        """Time limit of the case, in seconds."""
        return self.row.case.time_limit_s

    @property
    def supported(self) -> bool:
        """Whether the solver supports the instance; a case that it does not support enters no mean."""
        return self.row.verdict != "unsupported"

    @property
    def has_trajectory(self) -> bool:
        """Whether the solver reports values and bounds while it runs."""
        return _reports(self.row.case)


def score_rows(
    rows: Iterable[Row], known: Mapping[str, Known] | None = None, older: Mapping[str, Known] | None = None
) -> list[ScoredCase]:
    """Return the scored cases in the order of the rows; ``known`` and ``older`` as of `known_at_run`."""
    rows = list(rows)
    best = _best(rows, known_at_run(rows, older, known))
    settings = {_setting(row.case) for row in rows}
    return [_sample(row, best.get(row.case.instance), many=len(settings) > 1) for row in rows]


def _sample(row: Row, best: Number | None, *, many: bool) -> ScoredCase:
    case, answer = row.case, row.answer
    wrong = row.verdict in NO_ANSWER
    reports = _reports(case)
    gaps: list[tuple[float, float]] = []
    both: list[tuple[float, float]] = []
    for seconds, objective, bound, _, _ in () if wrong else row.trajectory:
        gaps.append((seconds, primal_gap(objective, best)))
        both.append((seconds, primal_dual_gap(objective, bound)))
    solved = not wrong and answer.status in ("optimal", *WITHOUT_VALUE)
    if answer.status in WITHOUT_VALUE and not wrong:  # there is nothing to find
        gaps = both = [(answer.wall_s or 0.0, 0.0)]
    return ScoredCase(
        row=row,
        solver=f"{case.solver} {_setting(case)}" if many else case.solver,
        solved=solved,
        wall_s=case.time_limit_s if answer.wall_s is None else answer.wall_s,
        cpu_s=case.time_limit_s * case.threads if answer.cpu_s is None else answer.cpu_s,
        best=best,
        gap=gaps[-1][1] if gaps else 1.0,
        primal_s=integral(gaps, case.time_limit_s) if reports else None,
        primal_dual_s=integral(both, case.time_limit_s) if reports else None,
        gap_curve=tuple(gaps),
    )


def sense_of(rows: Iterable[Row]) -> Literal["max", "min"]:
    """Return the sense of rows of one instance; only a row with a value or a bound states it."""
    return next((row.answer.sense for row in rows if (row.answer.objective, row.answer.bound) != (None, None)), "max")


def _best(rows: Iterable[Row], then: Mapping[str, Known]) -> dict[str, Number]:
    """Return the best value of every instance: known before (``then``, by case) or found by a correct row."""
    of_instance: dict[str, list[Row]] = {}
    for row in rows:
        of_instance.setdefault(row.case.instance, []).append(row)
    best = {}
    for name, of_name in of_instance.items():
        values = [then[row.case.key].value for row in of_name]
        values += [row.answer.objective for row in of_name if row.verdict not in NO_ANSWER]
        there = [value for value in values if value is not None]
        if there:
            best[name] = max(there) if sense_of(of_name) == "max" else min(there)
    return best


def _reports(case: Case) -> bool:
    """Return whether a solver reports while it runs: methods do, solvers as the registry states."""
    entry = SOLVERS.get(case.solver)
    return entry is None or entry.capability.progress


def _setting(case: Case) -> str:
    """Return the limits of a case as text."""
    memory = "" if case.memory_limit_mib is None else f" {case.memory_limit_mib} MiB"
    return f"{case.time_limit_s:g} s x {case.threads}{' permuted' if case.permuted else ''}{memory}"
