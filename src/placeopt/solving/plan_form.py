"""How the plans of a round are written and judged: of all jobs by the referee, or otherwise by who keeps a cluster."""

from __future__ import annotations

from typing import ClassVar, Protocol

from placeopt.check import Judgement, Referee
from placeopt.model import Plan
from placeopt.problem import Allocation, Problem
from placeopt.solving.draft import Recorder, draft_plan


class PlanForm(Protocol):
    """Writes an allocation as a plan, and has it judged."""

    @property
    def is_whole(self) -> bool:
        """Whether plans are for all jobs: then they state the costs, which are optimised below the value."""
        ...

    @property
    def beside(self) -> int:
        """Value of the round that plans do not state: the gap to stop at is one of the whole round."""
        ...

    def prepare(self) -> None:
        """Do what the first draft needs and later ones do not."""
        ...

    def draft(self, problem: Problem, allocation: Allocation, recorder: Recorder) -> Plan:
        """Return the plan, without reasons, objective and the rest."""
        ...

    def judge(self, plan: Plan, since: Plan | None = None) -> Judgement:
        """Return what the referee finds; ``since``: a draft without faults of which ``plan`` is a copy."""
        ...


class WholePlan:
    """Plans that list every job of an instance; the referee reads all of it."""

    is_whole: ClassVar[bool] = True
    beside: ClassVar[int] = 0

    def __init__(self, referee: Referee) -> None:
        self._referee = referee

    def prepare(self) -> None:
        """Work out the digest, which a plan names."""
        _ = self._referee.instance.digest

    def draft(self, problem: Problem, allocation: Allocation, recorder: Recorder) -> Plan:
        """Return the plan, without reasons, objective and the rest."""
        return draft_plan(self._referee.instance, problem, allocation, recorder)

    def judge(self, plan: Plan, since: Plan | None = None) -> Judgement:
        """Return what the referee finds; ``since``: a draft without faults of which ``plan`` is a copy."""
        return self._referee.judge(plan, since=since)
