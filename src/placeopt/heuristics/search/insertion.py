"""Where a job that is nowhere had better go: a few places that every rule allows, the cheapest of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from placeopt.heuristics.greedy import place_on_nodes, places
from placeopt.heuristics.search.gang_placer import GangPlacer
from placeopt.heuristics.search.guide import Guide
from placeopt.heuristics.search.incremental_solution import IncrementalSolution
from placeopt.problem import Placement
from placeopt.terms.costs.communication import Communication
from placeopt.terms.objective import weight_of
from placeopt.terms.rules.registry import fits_beyond_room

TRIES = 4
"""Places on one node that are priced."""


class Insertion:
    """Finds places on a board."""

    def __init__(self, board: IncrementalSolution, guide: Guide | None = None) -> None:
        weight = weight_of(board.weighted, Communication)
        self._board, self._near = board, GangPlacer(board.candidates, weight, guide)

    def best(self, job: int) -> Placement | None:
        """Return the cheapest place found for a job, in its most valuable option that finds any; None without one."""
        options = self._board.problem.options
        for option in sorted(self._board.problem.options_of(job), key=lambda o: (-int(options.value[o]), o)):
            found = list(islice(self._lawful(job, option), TRIES))
            if len(found) == 1:
                return found[0]
            if found:
                return min(found, key=lambda placement: self._board.delta(job, placement))
        return None

    def _lawful(self, job: int, option: int) -> Iterator[Placement]:
        board = self._board
        if board.problem.options.bundles[option] == 1:
            yield from (p for p in places(board.candidates, option) if fits_beyond_room(board.state, job, p))
            return
        nodes = self._near.nodes(option)
        placement = None if nodes is None else place_on_nodes(board.candidates, option, nodes)
        if placement is not None and fits_beyond_room(board.state, job, placement):
            yield placement
