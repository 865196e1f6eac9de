"""Stage 1c: rounds in which nobody has a choice are proven without a solver."""

from __future__ import annotations

import time

import numpy as np

from placeopt.heuristics import Candidates, score_named
from placeopt.solving.context import SolveContext

RELAXES = ("everything but that each job fits alone beside what runs",)
NO_ROOM, CHOICE = "no room", "choice"


def run_trivial_proof(context: SolveContext) -> None:
    """
    Prove value and cost where every job that waits has one place at most, and those that have one hold it.

    Nearly every round of a cluster that is told of one job after the other is like that: what waits has no room, or
    look-ahead has chosen its place. Changes of running jobs are choices.
    """
    problem, best = context.problem, context.incumbent
    if best is None or context.proven or problem.changeable:
        return
    started = time.monotonic()
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
    context.prove_value(best.value, RELAXES)
    if context.value_proven and context.weighted:
        context.prove_cost(best.cost)
    context.record("forced", "proved", started, "no waiting job has more than one place", "cost")


def only_way(candidates: Candidates, job: int) -> int | str:
    """
    Return the option in which a job has its only place, or ``NO_ROOM``; ``CHOICE`` where there may be more to decide.

    It has no room where amounts on nodes alone, taken one by one, do not suffice; one place where there is one node,
    with just as many GPUs as a job needs that is not spread over nodes. A job worth nothing need not start, and
    workers whose traffic tells them apart may change places.
    """
    problem, options = candidates.problem, candidates.problem.options
    found: int | str = NO_ROOM
    for option in problem.options_of(job):
        rooms = candidates.free_rooms(option)
        if int(rooms.sum()) < int(options.bundles[option]):
            continue
        (nodes,) = np.nonzero(rooms)
        need = int(options.gpus[option] * options.bundle_workers[option])
        talks = options.workers[option] > 1 and problem.class_communication[problem.job_class[job]].edges
        if (
            found != NO_ROOM
            or len(nodes) > 1
            or options.bundles[option] > 1
            or int(candidates.usable(option, nodes).sum()) > need > 0
            or not options.value[option]
            or talks
        ):
            return CHOICE
        found = option
    return found
