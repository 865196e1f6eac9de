"""A plan made again from the running jobs: the jobs of a relaxation in the order of ``job_order``, by greedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.construction.gang_placer import GangPlacer
from placeopt.heuristics.construction.job_order import insertion_order
from placeopt.heuristics.greedy_pass import GreedyResult, greedy, place, place_on_nodes, places, stop_at
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import IntArray, Placement, Problem, State
from placeopt.terms.costs.communication import Communication
from placeopt.terms.objective import Weighted, weight_of


def construct(
    problem: Problem,
    weighted: tuple[Weighted, ...],
    surplus: np.ndarray,
    *,
    chosen: IntArray | None = None,
    deadline: float = float("inf"),
    cancelled: Callable[[], bool] | None = None,
) -> GreedyResult:
    """
    Return a plan of the running jobs, and of as many waiting ones as find room: gangs by cost, others by close fit.

    - ``weighted``: The costs that count.
    - ``surplus``, ``chosen``: What a job in each option costs beyond its worth, and whom to place before all others, as
      in ``insertion_order``.
    - ``deadline``, ``cancelled``: As in ``greedy``.
    """
    free, over = int(np.maximum(State(problem).gpu_free_milli, 0).sum()), stop_at(deadline, cancelled)
    queue, weight = insertion_order(problem, free, surplus, chosen), weight_of(weighted, Communication)

    def chooser(begun: State) -> GangsByCost:
        by = score_named("close_fit", problem)
        return GangsByCost(Candidates(begun, by, over, for_many=problem.lies_freely), weight)

    return greedy(problem, queue, deadline=deadline, cancelled=cancelled, chooser=chooser)


class GangsByCost:
    """The chooser that ranks nodes for single bundles by a score, and chooses those of gangs by their cost."""

    def __init__(self, candidates: Candidates, weight: int) -> None:
        self._candidates, self._gang_placer = candidates, GangPlacer(candidates, weight)
        self.changed = candidates.changed

    def place(self, job: int) -> Placement | None:
        """See ``Chooser``: the first place found in the most valuable option that has one."""
        return place(self._candidates, job, offered=self._places)

    def _places(self, candidates: Candidates, option: int) -> Iterator[Placement]:
        if candidates.problem.options.bundles[option] == 1:
            yield from places(candidates, option)
            return
        nodes = self._gang_placer.nodes(option)
        spot = None if nodes is None else place_on_nodes(candidates, option, nodes)
        if spot is not None:
            yield spot
