"""SWAF: shortest waiting allowance first, each job in the shape of the best rate for its cost (GENIE algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable

from placeopt.errors import OutOfTime
from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.greedy_pass import GreedyResult, places, stop_at
from placeopt.heuristics.job_orders import waiting_allowances
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import IntArray, Move, Placement, Problem, State
from placeopt.terms.rules import fits_beyond_room


def swaf(
    problem: Problem,
    order: IntArray,
    score: str = "best_fit",
    *,
    deadline: float = float("inf"),
    cancelled: Callable[[], bool] | None = None,
) -> GreedyResult:
    """
    Place the jobs of ``order``, as ``queueing`` has it by waiting allowance, each in its chosen option or not at all.

    A job whose shape finds no room keeps waiting, and those behind it are tried: the paper launches what the cluster
    has room for. It takes any GPUs, since nodes are alike to it; here the best place by ``score``.

    Parameters
    ----------
    order, score, deadline, cancelled
        As in ``greedy``.
    """
    chosen = waiting_allowances(problem).option.tolist()
    state, over = State(problem), stop_at(deadline, cancelled)
    candidates = Candidates(state, score_named(score, problem), over)
    failed_classes: set[int] = set()
    for position, job in enumerate(order.tolist()):
        if over():
            return GreedyResult(state.allocation(), tuple(order[position:].tolist()))
        option = chosen[job]
        if state.placements[job] is not None or option < 0 or option in failed_classes:
            continue
        try:
            placement = _place(candidates, job, option)
        except OutOfTime:
            return GreedyResult(state.allocation(), tuple(order[position:].tolist()))
        if placement is None:
            failed_classes.add(option)  # room only shrinks
            continue
        state.apply(Move(job, placement))
        for node in dict.fromkeys(placement.nodes):
            candidates.changed(node)
    return GreedyResult(state.allocation(), ())


def _place(candidates: Candidates, job: int, option: int) -> Placement | None:
    for placement in places(candidates, option):
        if fits_beyond_room(candidates.state, job, placement):
            return placement
    return None
