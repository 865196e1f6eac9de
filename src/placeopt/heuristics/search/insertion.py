"""Where a waiting job should go: a few places that every rule allows, the cheapest of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from placeopt.heuristics.greedy import place_on_nodes, places
from placeopt.heuristics.search.gang_placer import GangPlacer
from placeopt.heuristics.search.incremental_solution import Guide, IncrementalSolution
from placeopt.problem import Placement
from placeopt.terms.costs.communication import Communication
from placeopt.terms.objective import weight_of
from placeopt.terms.rules import fits_beyond_room

TRIES = 4
"""Places priced for a job."""


class Insertion:
    """Finds places on a solution."""

    def __init__(self, solution: IncrementalSolution, guide: Guide | None = None) -> None:
        weight = weight_of(solution.weighted, Communication)
        self._solution, self._gang_placer = solution, GangPlacer(solution.candidates, weight, guide)

    def best(self, job: int, ranking: str = "best_fit", tries: int = TRIES) -> Placement | None:
        """
        Return the cheapest place found for a job, in its most valuable option that finds any; None without one.

        ``ranking`` is the score by which nodes for a single bundle are ranked, of whose places ``tries`` are priced.
        """
        options = self._solution.problem.options
        for option in sorted(self._solution.problem.options_of(job), key=lambda o: (-int(options.value[o]), o)):
            lawful = list(islice(self._lawful(job, option, ranking), tries))
            if len(lawful) == 1:
                return lawful[0]
            if lawful:
                return min(lawful, key=lambda placement: self._solution.delta(job, placement))
        return None

    def _lawful(self, job: int, option: int, ranking: str) -> Iterator[Placement]:
        solution = self._solution
        if solution.problem.options.bundles[option] == 1:
            ranked = solution.ranked[ranking]
            yield from (p for p in places(ranked, option) if fits_beyond_room(solution.state, job, p))
            return
        nodes = self._gang_placer.nodes(option)
        placement = None if nodes is None else place_on_nodes(solution.candidates, option, nodes)
        if placement is not None and fits_beyond_room(solution.state, job, placement):
            yield placement
