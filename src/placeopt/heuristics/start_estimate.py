"""What a start on a node would come to, remembered by who is there: schedules ask the same nodes over and over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from placeopt.problem import Placement, State


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """
    A place for a job, and what a start there would come to at any time, as long as the jobs there stay.

    Attributes
    ----------
    alike
        Equal for places that differ in the node alone; None: there is no other like it.
    length_ms
        The job's run time there, None where it is unknown.
    harm_ms
        By how much its neighbours' run times get longer.
    clear_ms
        For each socket that it would use, when the last of the others there ends; without those of unknown end.
    """

    placement: Placement
    alike: tuple[int, ...] | None
    length_ms: int | None
    harm_ms: int
    clear_ms: tuple[int, ...]

    def delay_ms(self, at: int, end: int) -> int:
        """Return by how long the sockets become whole later, summed, if the job is there from ``at`` to ``end``."""
        total = 0
        for clear in self.clear_ms:
            until = clear if clear > at else at
            if end > until:
                total += end - until
        return total


class Occupants:
    """
    Numbers for who is on a node: equal just if the same jobs are in the same places there, with the same ends.

    Neighbours that lie on other nodes too are slowed from there as well, so ``slowdown_total`` of those is part of it.
    """

    def __init__(self, state: State, end_of: Callable[[int], int | None], slowdown_total: Callable[[int], int]) -> None:
        self._state, self._end_of, self._slowdown_cache = state, end_of, slowdown_total
        self._numbers: dict[tuple[object, ...], int] = {}
        self._now: dict[int, int] = {}
        self._places: dict[tuple[int, Placement | None], int] = {}
        self._place: dict[int, tuple[int, bool]] = {}

    def of(self, node: int) -> int:
        """Return the number of those who are on ``node`` now."""
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
        """Note that ``job`` came to ``nodes``, or left them, or ends at another time."""
        self._place.pop(job, None)
        for node in nodes:
            self._now.pop(node, None)
            for other in self._state.node_jobs[node]:
                held = self._state.placements[other]
                for further in held.nodes if held is not None else ():
                    if further != node:
                        self._now.pop(further, None)
