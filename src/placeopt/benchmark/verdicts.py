"""
The verdict on a case, in the words of the field.

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

from placeopt.benchmark.records import CaseAnswer, Verdict
from placeopt.formats.solu import Known


def judge(answer: CaseAnswer, known: Known) -> Verdict:
    """Return the verdict on an answer; ``known`` comes from a ``.solu`` file."""
    if answer.refused or contradiction(answer, known):
        return "fail"
    if answer.status == "unsupported":
        return "unsupported"
    if answer.status in ("error", "killed", "crashed"):
        return "abort"
    if answer.status == "infeasible":
        return "solved"
    if answer.objective is not None and known.value is not None and _better(answer, answer.objective, known.value):
        return "better"
    if answer.status == "optimal":
        return "ok" if known.optimal else "solved"
    return "timeout"


def contradiction(answer: CaseAnswer, known: Known) -> str | None:
    """Return how an answer contradicts the known values; None if it does not. One of the two is wrong."""
    if answer.status == "infeasible" and known.value is not None:
        return f"called infeasible, but a value of {known.value} is known"
    if answer.objective is not None and known.bound is not None and _better(answer, answer.objective, known.bound):
        return f"objective {answer.objective} is better than the proven bound {known.bound}"
    if answer.bound is not None and known.value is not None and _better(answer, known.value, answer.bound):
        return f"bound {answer.bound} is contradicted by the known value {known.value}"
    if answer.objective is not None and answer.bound is not None and _better(answer, answer.objective, answer.bound):
        return f"objective {answer.objective} is better than its own bound {answer.bound}"
    return None


def _better(answer: CaseAnswer, one: int, other: int) -> bool:
    return one > other if answer.sense == "max" else one < other
