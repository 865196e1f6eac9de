"""Greedy: one job after the other, each to the best node by a score; the whole queue in one pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.scores import Stranding, best_fit, first_fit
from placeopt.heuristics.spreading import nodes_for_bundles
from placeopt.problem import Allocation, IntArray, Move, Placement, Problem, State
from placeopt.terms.rules import fits

CLOCK_EVERY = 64


@dataclass(frozen=True)
class GreedyResult:
    """The allocation, and the jobs that were not reached before the deadline."""

    allocation: Allocation
    not_reached: tuple[int, ...]


def greedy(
    problem: Problem,
    order: IntArray,
    score: str = "stranding",
    *,
    deadline: float = float("inf"),
    cancelled: Callable[[], bool] | None = None,
    stop_at_first_failure: bool = False,
    start: Allocation | None = None,
) -> GreedyResult:
    """
    Place the jobs of ``order`` one after the other, each in its most valuable option that fits.

    Parameters
    ----------
    order
        Waiting jobs, first to be considered first.
    score
        Name in ``SCORES``.
    deadline
        Of ``time.monotonic()``: what is not reached by then waits.
    cancelled
        Asked now and then; true ends the pass like the deadline.
    stop_at_first_failure
        Whether the queue blocks behind a job that does not fit (strict first come, first served).
    start
        Where jobs are already; they stay. Only the running jobs, if left out.

    Notes
    -----
    Jobs are independent of each other, so a class that failed once is not tried again: room only shrinks.
    """
    state = State(problem)
    if start is not None:
        state.load(start)
    candidates = Candidates(state, SCORES[score](problem))
    hopeless: set[int] = set()
    for position, job in enumerate(order.tolist()):
        if position % CLOCK_EVERY == 0 and (time.monotonic() >= deadline or (cancelled is not None and cancelled())):
            return GreedyResult(state.allocation(), tuple(order[position:].tolist()))
        if state.placements[job] is not None:
            continue
        k = int(problem.job_class[job])
        placement = None if k in hopeless else place(candidates, job)
        if placement is None:
            hopeless.add(k)
            if stop_at_first_failure:
                break
            continue
        state.apply(Move(job, placement))
        for node in dict.fromkeys(placement.nodes):
            candidates.changed(node)
    return GreedyResult(state.allocation(), ())


def place(candidates: Candidates, job: int) -> Placement | None:
    """Return the best placement that every rule allows for a job that is nowhere yet, or None if none is found."""
    problem = candidates.problem
    by_value = sorted(problem.options_of(job), key=lambda o: -int(problem.options.value[o]))
    for option in by_value:
        placement = _place_option(candidates, option)
        if placement is not None and fits(candidates.state, job, placement):
            return placement
    return None


def _place_option(candidates: Candidates, option: int) -> Placement | None:
    """Return the best placement by score, or None; rules that look beyond a node are left to the caller."""
    options = candidates.problem.options
    workers = int(options.bundle_workers[option])
    if options.bundles[option] == 1:
        scores = candidates.scores(option)
        node = int(scores.argmin()) if len(scores) else -1
        if node < 0 or not np.isfinite(scores[node]):
            return None
        return Placement(option, (node,) * workers, candidates.choose_gpus(option, node))
    nodes = nodes_for_bundles(candidates, option)
    if nodes is None:
        return None
    held: list[int] = []
    held_on: dict[int, tuple[int, ...]] = {}
    for node in nodes:
        before = held_on.get(node, ())
        taken = candidates.choose_gpus(option, node, frozenset(before))
        if len(taken) < options.gpus[option]:
            return None
        held_on[node] = before + taken
        held.extend(taken)
    return Placement(option, tuple(nodes), tuple(held))


SCORES: dict[str, Callable[[Problem], Callable[[Candidates, int, IntArray], np.ndarray]]] = {
    "first_fit": lambda problem: first_fit,  # noqa: ARG005 - needs nothing of the problem
    "best_fit": lambda problem: best_fit,  # noqa: ARG005
    "stranding": Stranding,
}
