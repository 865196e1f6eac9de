"""
The first plan of a round: what several heuristics find, the best of it checked, with time reserved for the end.

Stage ``trivial-proof`` proves it, without a solver, in rounds without a choice: a waiting job has no place, one place,
or a choice; look-ahead may have chosen the place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placeopt.heuristics import Candidates, score_named
from placeopt.solving.context import SolveContext
from placeopt.solving.searching import LAST_OFFER
from placeopt.solving.stage import Stage, StageReport, run_stages
from placeopt.solving.stages.annealing import BeginSearch
from placeopt.solving.stages.bound import BeginBound
from placeopt.solving.stages.lookahead import LookAhead

RESERVE_S = 1 / 64
RESERVE_PER_JOB_S = 1 / 32_768
"""
Seconds reserved for a first plan, reasons, the final check and the audit, fixed and per job: they took 40 millionths of
a second a job on openb, 45 at 100,000 uniform jobs, 60 at as many varied ones. More would cost openb jobs at 1 s.
"""
RESERVE_PER_COMPILE = 4
"""The same as a multiple of what compiling took in this round: it holds where the machine is busy with other work."""
RESERVE_PER_PLACED, RESERVE_PER_WAITING = 1.0, 0.5
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


def count_places(candidates: Candidates, job: int) -> int:
    """
    Return how many places a job has, 0, 1, or 2 where there may be more to decide.

    It has none where the free amounts of nodes, each resource by itself, do not suffice. It has one place where it
    fits on one node only, is not spread over nodes, and needs all usable GPUs of it. A job worth nothing need not
    start, and workers that differ by their traffic may change places.
    """
    problem, options = candidates.problem, candidates.problem.options
    count = 0
    for option in problem.options_of(job):
        rooms = candidates.free_rooms(option)
        if int(rooms.sum()) < int(options.bundles[option]):
            continue
        (nodes,) = np.nonzero(rooms)
        need = int(options.gpus[option] * options.bundle_workers[option])
        has_traffic = options.workers[option] > 1 and problem.class_communication[problem.job_class[job]].edges
        if (
            count
            or len(nodes) > 1
            or options.bundles[option] > 1
            or int(candidates.usable(option, nodes).sum()) > need > 0
            or not options.value[option]
            or has_traffic
        ):
            return 2
        count = 1
    return count


RELAXES = ("everything but that each job fits alone beside what runs",)


@dataclass(frozen=True)
class TrivialProof:
    """
    Proves value and cost where every job that waits has one place at most, and those that have one hold it.

    Nearly every round of a cluster that receives one job after the other is like that: what waits has no room, or
    look-ahead has chosen its place. Changes of running jobs are choices.
    """

    name: ClassVar[str] = "trivial-proof"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where anything is open and no running job may be changed."""
        if reason := context.budget.stop_reason():
            return reason
        if context.proven:
            return "both levels are proven"
        if not context.problem.is_plain:
            return "jobs are bound to each other"
        return "running jobs may be changed" if context.problem.changeable else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Look at one job of each class."""
        problem, best = context.problem, context.incumbent
        candidates = Candidates(context.open, score_named("first_fit", problem))
        counts: dict[int, int] = {}
        for job, placement in enumerate(best.allocation):
            if job in problem.running:
                continue
            k = int(problem.job_class[job])
            if k not in counts:
                counts[k] = count_places(candidates, job)
            if counts[k] != (placement is not None):
                return
        context.bounds.prove_value(best.value, RELAXES)
        if context.value_proven and context.weighted:
            context.bounds.prove_cost(best.cost)
        yield StageReport("no waiting job has more than one place", "proved", level="cost")
