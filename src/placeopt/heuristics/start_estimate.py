"""
What a start on a node would cost, cached by the jobs that are there: schedules try the same nodes again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from placeopt.problem import Placement, State


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """A place for a job, and the effects of a start there at any time, as long as the jobs there stay."""

    placement: Placement
    alike: tuple[int, ...] | None  # equal for places that differ in the node alone; None: there is no other like it
    length_ms: int | None  # the job's run time there, None where it is unknown
    harm_ms: int  # by how much its neighbours' run times get longer
    clear_ms: tuple[int, ...]  # end of the last other job on each socket it would use; without unknown ends

    def delay_ms(self, at: int, end: int) -> int:
        """Return the delay until the sockets are whole, summed, if the job is there from ``at`` to ``end``."""
        total = 0
        for clear in self.clear_ms:
            until = clear if clear > at else at
            if end > until:
                total += end - until
        return total


class Occupants:
    """
    Numbers for the occupants of a node: equal just if the same jobs are in the same places there, with the same ends.

    Neighbours that are on other nodes too are slowed from there as well, so ``slowdown_total`` of those is part of it.
    """

    def __init__(self, state: State, end_of: Callable[[int], int | None], slowdown_total: Callable[[int], int]) -> None:
        self._state, self._end_of, self._slowdown_cache = state, end_of, slowdown_total
        self._numbers: dict[tuple[object, ...], int] = {}
        self._now: dict[int, int] = {}
        self._places: dict[tuple[int, Placement | None], int] = {}
        self._place: dict[int, tuple[int, bool]] = {}

    def of(self, node: int) -> int:
        """Return the number of the present occupants of ``node``."""
        cached = self._now.get(node)
        if cached is None:
            key = (node, *(self._occupant_key(job) for job in sorted(self._state.node_jobs[node])))
            cached = self._now[node] = self._numbers.setdefault(key, len(self._numbers))
        return cached

    def _occupant_key(self, job: int) -> tuple[int, int, int | None, int]:
        place = self._place.get(job)
        if place is None:
            held = self._state.placements[job]
            number = self._places.setdefault((job, held), len(self._places))
            place = self._place[job] = number, held is not None and any(node != held.nodes[0] for node in held.nodes)
        number, is_spread = place
        return job, number, self._end_of(job), self._slowdown_cache(job) if is_spread else 0

    def changed(self, job: int, nodes: tuple[int, ...]) -> None:
        """Note that ``job`` started on ``nodes``, or left them, or ends at another time."""
        self._place.pop(job, None)
        for node in nodes:
            self._now.pop(node, None)
            for other in self._state.node_jobs[node]:
                held = self._state.placements[other]
                for further in held.nodes if held is not None else ():
                    if further != node:
                        self._now.pop(further, None)
