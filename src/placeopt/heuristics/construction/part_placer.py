"""Gangs onto nodes as a relaxation lays them: parts of stated bundles in lowest domains, a class of nodes for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from placeopt.heuristics.candidates import Candidates, never
from placeopt.heuristics.construction.gang_placer import GangPlacer
from placeopt.heuristics.construction.guide import Guide
from placeopt.heuristics.greedy_pass import place_on_nodes
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import IntArray, Move, Placement, State
from placeopt.terms.costs.communication import Communication
from placeopt.terms.objective import Weighted, weight_of
from placeopt.terms.rules import fits_beyond_room

Part = Sequence[tuple[int, int]]
"""Class and bundles of each node of a part."""


class PartPlacer:
    """
    Places gangs on ``state``, which it changes.

    A part goes to the domain with least room that has nodes of its classes; where none has, to one that has nodes of
    any class with as much room. A gang of which a part finds no room lies where it costs least by ``guide``.

    - ``domain``, ``place``, (N,): Lowest domain, or a number of its own, and class of every node.
    """

    def __init__(
        self,
        state: State,
        weighted: tuple[Weighted, ...],
        guide: Guide,
        domain: IntArray,
        place: IntArray,
        over: Callable[[], bool] = never,
    ) -> None:
        self.state = state
        self._candidates = Candidates(state, score_named("best_fit", state.problem), over)
        self._gang_placer = GangPlacer(self._candidates, weight_of(weighted, Communication), guide)
        self._place = place
        names, self._domain = np.unique(domain, return_inverse=True)
        order = np.argsort(self._domain, kind="stable")
        self._nodes = np.split(order, np.searchsorted(self._domain[order], np.arange(1, len(names))))

    def put(self, job: int, option: int, parts: Sequence[Part] = ()) -> Placement | None:
        """Place a job, by its parts if they are stated; return where it is, None if it finds no room."""
        for nodes in (self._by_parts(option, parts) if parts else None, self._gang_placer.nodes(option)):
            if nodes is None:
                continue
            spot = place_on_nodes(self._candidates, option, nodes)
            if spot is not None and fits_beyond_room(self.state, job, spot):
                self._candidates.apply(Move(job, spot))
                return spot
        return None

    def _by_parts(self, option: int, parts: Sequence[Part]) -> list[int] | None:
        """Return one node a bundle, each part in a domain of its own; None where a part finds no room."""
        rooms = self._candidates.free_rooms(option)
        room = np.bincount(self._domain, weights=rooms, minlength=len(self._nodes)).astype(np.int64)
        out: list[int] = []
        for part in sorted(parts, key=_bundles, reverse=True):
            able = np.flatnonzero(room >= _bundles(part))
            tightest = able[np.argsort(room[able], kind="stable")].tolist()
            found = next(
                (
                    (d, nodes)
                    for any_class in (False, True)
                    for d in tightest
                    if (nodes := self._matched(self._nodes[d], rooms, part, any_class=any_class)) is not None
                ),
                None,
            )
            if found is None:
                return None
            room[found[0]] = 0
            out.extend(found[1])
        return out

    def _matched(self, nodes: IntArray, rooms: IntArray, part: Part, *, any_class: bool) -> list[int] | None:
        """Return a node of ``nodes`` for each bundle of a part, those with least room that take as many."""
        left = {node: int(rooms[node]) for node in nodes.tolist() if rooms[node]}
        out: list[int] = []
        for place, bundles in sorted(part, key=lambda entry: -entry[1]):
            able = [node for node in left if left[node] >= bundles and (any_class or self._place[node] == place)]
            if not able:
                return None
            node = min(able, key=lambda n: (left[n], n))
            del left[node]
            out.extend([node] * bundles)
        return out


def _bundles(part: Part) -> int:
    return sum(bundles for _, bundles in part)
