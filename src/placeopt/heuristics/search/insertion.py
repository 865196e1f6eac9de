"""Where a waiting job should go: a few places that every rule allows, the cheapest of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.greedy_pass import place_on_nodes, places
from placeopt.heuristics.search.gang_placer import GangPlacer
from placeopt.heuristics.search.incremental_solution import Guide, IncrementalSolution
from placeopt.problem import Placement, Problem
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

    def best(self, job: int, ranking: str = "close_fit") -> Placement | None:
        """
        Return the cheapest place found for a job, in its most valuable option that finds any; None without one.

        ``ranking`` is the score by which nodes for a single bundle are ranked, of whose places ``TRIES`` are priced.
        """
        solution = self._solution
        for option in by_value(solution.problem, job):
            lawful = list(islice(lawful_places(solution.ranked[ranking], self._gang_placer, job, option), TRIES))
            if len(lawful) == 1:
                return lawful[0]
            if lawful:
                return min(lawful, key=lambda placement: solution.delta(job, placement))
        return None


def by_value(problem: Problem, job: int) -> list[int]:
    """Return the options of a job, the most valuable one first."""
    return sorted(problem.options_of(job), key=lambda o: (-int(problem.options.value[o]), o))


def lawful_places(ranked: Candidates, gang_placer: GangPlacer, job: int, option: int) -> Iterator[Placement]:
    """Yield places that every rule allows: for single bundles as ``ranked``, for gangs what their placer chooses."""
    found: Iterator[Placement]
    if ranked.problem.options.bundles[option] == 1:
        found = places(ranked, option)
    else:
        nodes = gang_placer.nodes(option)
        spot = None if nodes is None else place_on_nodes(gang_placer.candidates, option, nodes)
        found = iter(() if spot is None else (spot,))
    yield from (placement for placement in found if fits_beyond_room(ranked.state, job, placement))
