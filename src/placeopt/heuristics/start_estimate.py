"""
What a start on a node would cost, cached by the jobs that are there: schedules try the same nodes again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from placeopt.heuristics.run_times import option_of
from placeopt.problem import Placement, Problem, State
from placeopt.problem.classes import class_key


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """A place for a job, and the effects of a start there at any time, as long as the jobs there stay."""

    placement: Placement
    alike: tuple[int, ...] | None  # equal for places that differ in the node alone; None: there is no other like it
    slowdown_thousandths: int  # by how much the job's run time is longer there
    harm_ms: int  # by how much its neighbours' run times get longer
    clear_ms: tuple[int, ...]  # end of the last other job on each socket it would use; without unknown ends

    def in_option(self, option: int) -> Placement:
        """Return the placement in an option of the same kind."""
        placement = self.placement
        return placement if placement.option == option else replace(placement, option=option)

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

    def _place_number(self, job: int, held: Placement | None) -> int:
        return self._places.setdefault((job, held), len(self._places))

    def _occupant_key(self, job: int) -> tuple[int, int, int | None, int]:
        place = self._place.get(job)
        if place is None:
            held = self._state.placements[job]
            number = self._place_number(job, held)
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


def option_kind(problem: Problem, job: int, option: int) -> Hashable:
    """Return what is equal for options of jobs that differ in no more than times and worth."""
    record, own = problem.instance.jobs[job], option_of(problem, job, option)
    bare = own.valued(0).model_copy(update={"run_time_ms": None, "rate_milli": None, "latency_ms": None})
    return record.options.index(own), class_key(record.model_copy(update={"options": (bare,)}), problem.policy)
