"""Stage ``forced``: rounds without a choice are proven without a solver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.heuristics import Candidates, score_named
from placeopt.solving.choices import CHOICE, NO_ROOM, only_way
from placeopt.solving.context import SolveContext
from placeopt.solving.stage import StageReport

RELAXES = ("everything but that each job fits alone beside what runs",)


@dataclass(frozen=True)
class TrivialProof:
    """
    Proves value and cost where every job that waits has one place at most, and those that have one hold it.

    Nearly every round of a cluster that receives one job after the other is like that: what waits has no room, or
    look-ahead has chosen its place. Changes of running jobs are choices.
    """

    name: ClassVar[str] = "forced"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where anything is open and no running job may be changed."""
        if reason := context.budget.stop_reason():
            return reason
        if context.proven:
            return "both levels are proven"
        return "running jobs may be changed" if context.problem.changeable else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Look at one job of each class."""
        problem, best = context.problem, context.incumbent
        candidates = Candidates(context.open, score_named("first_fit", problem))
        ways: dict[int, int | str] = {}
        for job, placement in enumerate(best.allocation):
            if job in problem.running:
                continue
            k = int(problem.job_class[job])
            way = ways.get(k)
            if way is None:
                way = ways[k] = only_way(candidates, job)
            if way == CHOICE or (way == NO_ROOM) is not (placement is None):
                return
        context.bounds.prove_value(best.value, RELAXES)
        if context.value_proven and context.weighted:
            context.bounds.prove_cost(best.cost)
        yield StageReport("no waiting job has more than one place", "proved", level="cost")
