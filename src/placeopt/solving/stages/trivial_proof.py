"""
Stage ``trivial-proof``: rounds without a choice are proven without a solver.

A waiting job has no place, one place, or a choice; look-ahead may have chosen the place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placeopt.heuristics import Candidates, score_named
from placeopt.solving.context import SolveContext
from placeopt.solving.stage import StageReport


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
