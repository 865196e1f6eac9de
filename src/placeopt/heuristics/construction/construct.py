"""A plan made again from the running jobs: the jobs of a relaxation in the order of ``job_order``, by greedy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.construction.gang_placer import GangPlacer
from placeopt.heuristics.construction.guide import Guide
from placeopt.heuristics.construction.job_order import InsertionOrder
from placeopt.heuristics.construction.lawful_places import by_value, lawful_places
from placeopt.heuristics.greedy_pass import GreedyResult, greedy, stop_at
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import IntArray, Placement, Problem, State
from placeopt.terms.costs.communication import Communication
from placeopt.terms.objective import Weighted, weight_of


def construct(
    problem: Problem,
    weighted: tuple[Weighted, ...],
    *,
    ranking: str = "close_fit",
    guide: Guide | None = None,
    chosen: IntArray | None = None,
    deadline: float = float("inf"),
    cancelled: Callable[[], bool] | None = None,
) -> GreedyResult:
    """
    Return a plan of the running jobs, and of as many waiting ones as find room.

    - ``weighted``: The costs that count.
    - ``ranking``: Score by which nodes for single bundles are ranked.
    - ``guide``: Prices that compare jobs of equal worth, and nodes for gangs; None: their traffic alone does.
    - ``chosen``: Jobs placed before all others; None: those that a knapsack chooses.
    - ``deadline``, ``cancelled``: As in ``greedy``.
    """
    order, state = InsertionOrder(problem, guide), State(problem)
    placed = np.array([placement is not None for placement in state.placements], dtype=bool)
    waiting = np.flatnonzero(order.able & ~placed)
    queue = order.queue(waiting, int(np.maximum(state.gpu_free_milli, 0).sum()), chosen=chosen)
    over = stop_at(deadline, cancelled)

    def chooser(begun: State) -> GangsByCost:
        return GangsByCost(Candidates(begun, score_named(ranking, problem), over), weighted, guide)

    return greedy(problem, queue, deadline=deadline, cancelled=cancelled, chooser=chooser)


class GangsByCost:
    """The chooser that ranks nodes for single bundles by a score, and chooses those of gangs by their cost."""

    def __init__(self, candidates: Candidates, weighted: tuple[Weighted, ...], guide: Guide | None) -> None:
        self._candidates = candidates
        self._gang_placer = GangPlacer(candidates, weight_of(weighted, Communication), guide)
        self.changed = candidates.changed

    def place(self, job: int) -> Placement | None:
        """Return the first place found in the most valuable option that has one, or None."""
        options = by_value(self._candidates.problem, job)
        found = (place for o in options for place in lawful_places(self._candidates, self._gang_placer, job, o))
        return next(found, None)
