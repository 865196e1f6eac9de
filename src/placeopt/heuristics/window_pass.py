"""Several jobs at once: among the first of the queue, the one whose place costs least goes next."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placeopt.errors import OutOfTime
from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.greedy_pass import GreedyResult, place, stop_at
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import IntArray, Move, Problem, State

WIDTH = 16
"""Jobs that are compared; those that are alike count together."""
CLOCK_EVERY = 16


def window(
    problem: Problem,
    order: IntArray,
    score: str,
    *,
    width: int = WIDTH,
    deadline: float = float("inf"),
    cancelled: Callable[[], bool] | None = None,
    seed: int = 0,
) -> GreedyResult:
    """
    Place jobs by the score of their places, a window of the queue at a time.

    Of the first ``width`` waiting jobs (with 1 this is ``greedy``), the one goes next whose best place has the smallest
    score per GPU asked for (a job without GPUs counts as one of a thousandth); ties go to the earlier one. The scores
    of SCORES[``score``] must be comparable between jobs. Where a score is an increase, as that of ``fgd``, this is
    steepest descent over job and node, not over the node alone. A job that fits nowhere leaves the window for good:
    room only shrinks. ``order``, ``deadline``, ``cancelled`` and ``seed`` are as in ``greedy``.
    """
    state, over = State(problem), stop_at(deadline, cancelled)
    candidates = Candidates(state, score_named(score, problem, seed), over)
    waiting = [job for job in order.tolist() if state.placements[job] is None]
    ahead, rest = waiting[:width], iter(waiting[width:])
    failed_classes: set[int] = set()
    steps = 0
    while ahead:
        if steps % CLOCK_EVERY == 0 and over():
            return GreedyResult(state.allocation(), (*ahead, *rest))
        steps += 1
        job = _cheapest(candidates, ahead)
        k = int(problem.job_class[job])
        try:
            placement = None if k in failed_classes else place(candidates, job)
        except OutOfTime:
            return GreedyResult(state.allocation(), (*ahead, *rest))
        if placement is None:
            failed_classes.add(k)
        else:
            candidates.apply(Move(job, placement))
        ahead.remove(job)
        ahead.extend(follower for follower in [next(rest, None)] if follower is not None)
    return GreedyResult(state.allocation(), ())


def _cheapest(candidates: Candidates, ahead: list[int]) -> int:
    """Return the job with the least price per GPU, the first of equal ones; one that fits nowhere costs nothing."""
    problem, best, least = candidates.problem, ahead[0], np.inf
    seen: set[int] = set()
    for job in ahead:
        k = int(problem.job_class[job])
        if k in seen:
            continue
        seen.add(k)
        price = _price(candidates, problem, job)
        if price is None:
            return job
        if price < least:
            best, least = job, price
    return best


def _price(candidates: Candidates, problem: Problem, job: int) -> float | None:
    """Score per GPU of the job's most valuable option that has room somewhere; None: none has."""
    options = problem.options
    for option in sorted(problem.options_of(job), key=lambda o: -int(options.value[o])):
        scores = candidates.scores(option)
        least = float(scores.min()) if len(scores) else np.inf
        if np.isfinite(least):
            asked = int(options.bundle_gpus[option] * options.milli[option])
            return least * 1000 / max(asked, 1)
    return None
