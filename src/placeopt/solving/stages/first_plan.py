"""The first plan of a round: what several heuristics find, the best of it checked, with time reserved for the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.solving.context import SolveContext
from placeopt.solving.searching import LAST_OFFER
from placeopt.solving.stage import Stage, StageReport, run_stages
from placeopt.solving.stages.annealing import BeginSearch
from placeopt.solving.stages.bound import BeginBound
from placeopt.solving.stages.lookahead import LookAhead
from placeopt.solving.stages.trivial_proof import TrivialProof

RESERVE_S = 0.02
RESERVE_PER_JOB_S = 12e-6
"""Seconds reserved for a first plan, reasons, the final check and the audit, fixed and per job; measured, generous."""
RESERVE_PER_COMPILE = 3.5
"""The same as a multiple of what compiling took in this round: it holds where the machine is busy with other work."""
RESERVE_PER_PLACED, RESERVE_PER_WAITING = 0.75, 0.5
"""
Shares of what a placed job took in the last offer that are reserved for every job that is placed, and for each that
waits, up to as much as all placed ones took. The end takes 0.3 to 0.6 offers where it has little to explain, 1.1 to 1.3
where single jobs wait of hundreds of classes, or gangs; gangs that wait have a time limit of their own.
"""


def first_reserve_s(num_jobs: int, compile_s: float) -> float:
    """Return the seconds to reserve before anything was offered."""
    return max(RESERVE_S + RESERVE_PER_JOB_S * num_jobs, RESERVE_PER_COMPILE * compile_s)


def reserve_time(context: SolveContext) -> None:
    """Check the first plan if no stage did, and reserve time for the end by how long that took."""
    context.incumbent.read()
    placed = sum(placement is not None for placement in context.incumbent.allocation)
    waiting = context.problem.num_jobs - placed
    offers = RESERVE_PER_PLACED + min(1.0, RESERVE_PER_WAITING * waiting / max(placed, 1))
    offers += LAST_OFFER if context.handover.searching is not None else 0.0
    context.budget.reserve(RESERVE_S + offers * context.budget.offer_s)


@dataclass(frozen=True)
class FirstPlan:
    """
    Makes the first plan, while a bound and the search begin beside it where threads are free.

    The best of all heuristics by value, then by cost, goes on; each is a stage of its own in the plan, with its figures
    or the reason why it did not run.
    """

    heuristics: tuple[Stage, ...]
    bounds: bool = True
    """Whether a bound on value is asked for, by a later stage."""
    goes_on: bool = False
    """Whether other stages go on from the plan: then it is worth to ask first whether there is any choice."""
    searches: bool = False
    """Whether the search goes on from it."""
    name: ClassVar[str] = "first-plan"

    @property
    def uses_solver(self) -> bool:
        """Whether it begins to solve a relaxation."""
        return self.bounds

    def skip_reason(self, context: SolveContext) -> None:
        """Never: others build on the first plan."""

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Run the heuristics one after the other."""
        begun: list[Stage] = [BeginBound()] * self.bounds
        begun += [BeginSearch(before_greedy=True)] * self.searches
        run_stages(context, (LookAhead(), *begun, *self.heuristics))
        if not context.handover.is_decided:
            reserve_time(context)
            ends: list[Stage] = [TrivialProof()] * self.goes_on
            ends += [BeginSearch()] * self.searches
            run_stages(context, ends)
        yield from ()
