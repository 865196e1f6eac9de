"""
Verdicts on cases, in the words of the field.

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

from placeopt.benchmark.journal import CaseAnswer, Verdict
from placeopt.benchmark.solu import Known, Number, is_equal

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
