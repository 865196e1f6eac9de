"""Jobs whose nodes were chosen elsewhere get their GPUs, as far as there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from placeopt.errors import OutOfTime
from placeopt.heuristics.candidates import Candidates, never
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import Allocation, Move, Placement, Problem, State
from placeopt.terms.rules import fits


def assign_gpus(
    problem: Problem, wanted: Iterable[tuple[int, int, tuple[int, ...]]], over: Callable[[], bool] = never
) -> Allocation:
    """
    Return the running jobs, and of (job, option, one node a bundle) each that every rule allows, one after the other.

    GPUs are chosen as greedy does; a job that finds no room there, or was placed before, is passed over, and so are all
    that are left once ``over()`` is true.
    """
    state = State(problem)
    candidates = Candidates(state, score_named("first_fit", problem), over)
    workers = problem.options.bundle_workers.tolist()
    gpus = problem.options.gpus.tolist()
    for job, option, nodes in wanted:
        if state.placements[job] is not None:
            continue
        each = workers[option]
        held: list[int] = []
        try:
            for node in nodes:
                held.extend(candidates.choose_gpus(option, node, frozenset(held)))
        except OutOfTime:
            break
        if len(held) != gpus[option] * each * len(nodes):
            continue
        placement = Placement(option, tuple(node for node in nodes for _ in range(each)), tuple(held))
        if fits(state, job, placement):
            state.apply(Move(job, placement))
            for node in dict.fromkeys(nodes):
                candidates.changed(node)
    return state.allocation()
