"""
Stage ``trivial-proof``: rounds without a choice are proven without a solver.

A waiting job has no place, one place, or a choice; look-ahead may have chosen the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placeopt.heuristics import Candidates, score_named
from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.problem import Move, Problem, State
from placeopt.solving.context import SolveContext
from placeopt.solving.stage import StageReport

NO_ROOM, CHOICE = "no room", "choice"

Narrow = Callable[[Problem, LookaheadDecision], Problem]
"""Returns the same jobs with fewer places, as all stages after look-ahead have them."""


def only_way(candidates: Candidates, job: int) -> int | str:
    """
    Return the option in which a job has its only place, or ``NO_ROOM``; ``CHOICE`` where there may be more to decide.

    It has no room where the free amounts of nodes, each resource by itself, do not suffice. It has one place where it
    fits on one node only, is not spread over nodes, and needs all usable GPUs of it. A job worth nothing need not
    start, and workers that differ by their traffic may change places.
    """
    problem, options = candidates.problem, candidates.problem.options
    result: int | str = NO_ROOM
    for option in problem.options_of(job):
        counts = candidates.free_rooms(option)
        if int(counts.sum()) < int(options.bundles[option]):
            continue
        (nodes,) = np.nonzero(counts)
        need = int(options.gpus[option] * options.bundle_workers[option])
        has_traffic = options.workers[option] > 1 and problem.class_communication[problem.job_class[job]].edges
        if (
            result != NO_ROOM
            or len(nodes) > 1
            or options.bundles[option] > 1
            or int(candidates.usable(option, nodes).sum()) > need > 0
            or not options.value[option]
            or has_traffic
        ):
            return CHOICE
        result = option
    return result


def all_start(problem: Problem, ahead: LookaheadDecision) -> bool:
    """
    Tell whether every job that waits starts by look-ahead, in the place that it has or none.

    Places bind jobs with GPUs alone; a job of several options may have another one there, and workers that differ by
    their traffic may change places.
    """
    waiting = [job for job in range(problem.num_jobs) if job not in problem.running]
    return not problem.changeable and bool(waiting) and all(_has_its_place(problem, ahead, job) for job in waiting)


def decides_all(problem: Problem, ahead: LookaheadDecision, close_needed: Narrow) -> bool:
    """
    Tell whether no stage can find anything but what look-ahead has decided.

    Every job that waits starts in the place that it has or none, or ends earlier if it waits, or has no room on the
    GPUs that ``close_needed`` leaves to it. Or it has none beside the jobs that start, and all of its kind together are
    worth less than any one of those: then a round without one of them is worth less.
    """
    if problem.changeable:
        return False
    waiting = (job for job in range(problem.num_jobs) if job not in problem.running and job not in ahead.waits)
    left = [job for job in waiting if not _has_its_place(problem, ahead, job)]
    if not left:
        return True
    narrowed = close_needed(problem, ahead)
    rivals = _with_room(State(narrowed), left)
    if not rivals:
        return True
    if any(job in ahead.starts for job in rivals):
        return False
    value, beside = problem.options.value, State(narrowed)
    for job, placement in ahead.starts.items():
        beside.apply(Move(job, placement))
    worth = sum(max(int(value[option]) for option in problem.options_of(job)) for job in rivals)
    least = min((int(value[placement.option]) for placement in ahead.starts.values()), default=0)
    return worth < least and not _with_room(beside, rivals)


def _with_room(state: State, jobs: Sequence[int]) -> list[int]:
    """Return the jobs that have room in ``state``, each by itself."""
    candidates = Candidates(state, score_named("first_fit", state.problem))
    has_room: dict[int, bool] = {}
    for job in jobs:
        k = int(state.problem.job_class[job])
        if k not in has_room:
            has_room[k] = only_way(candidates, job) != NO_ROOM
    return [job for job in jobs if has_room[int(state.problem.job_class[job])]]


def _has_its_place(problem: Problem, ahead: LookaheadDecision, job: int) -> bool:
    """Tell whether the job starts, in a place that it has or none, and starting it is worth more than not."""
    return (
        job in ahead.scheduled
        and bool(ahead.starts[job].gpus)
        and len(problem.options_of(job)) == 1
        and problem.options.value[ahead.starts[job].option] > 0
        and not problem.class_communication[problem.job_class[job]].edges
    )


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
