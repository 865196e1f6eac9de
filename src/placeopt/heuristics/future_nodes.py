"""Which nodes change when jobs end or start later, and what stands there then, without moving the state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from placeopt.heuristics.future_state import FutureState
from placeopt.problem import Placement

if TYPE_CHECKING:
    from placeopt.heuristics.timeline import Start, Timeline

Moments = list[tuple[int, tuple[int, ...]]]
"""Times, ascending, and the nodes on which a job starts or ends then."""


class FutureNodes:
    """
    Numbers of the occupants of single nodes at later times, cached by the starts given on the node until now.

    What stands on a node at a time follows from its running jobs and from the starts given there, so schedules in which
    these are the same need not move the state to that time again. A job on several nodes is slowed on all of them, so
    on its nodes all starts given count.
    """

    def __init__(self, line: Timeline) -> None:
        self._line = line
        held = {job: line.state.placements[job] for job in line.ends}
        self._base: dict[int, list[int]] = {}  # time -> nodes on which a running job ends
        for job, end in line.ends.items():
            if end <= line.latest:
                self._base.setdefault(end, []).extend(_nodes(held[job]))
        placements = (line.state.placements[job] for job in line.problem.running)
        self._linked = {node for placement in placements for node in _nodes(placement) if len(_nodes(placement)) > 1}
        self._given: dict[int, tuple[int, ...]] = {}  # node -> numbers of the starts given there, sorted
        self._all_given: tuple[int, ...] = ()
        self._is_spread = False  # whether a given start is on several nodes
        self._known: dict[tuple[int, int, tuple[int, ...]], int] = {}

    def give(self, start: Start, number: int) -> None:
        """Note a start, now or later; starts of one ``number`` are equal."""
        self._all_given = tuple(sorted((*self._all_given, number)))
        nodes = _nodes(start.placement)
        self._is_spread |= len(nodes) > 1
        for node in nodes:
            self._given[node] = tuple(sorted((*self._given.get(node, ()), number)))

    def clear(self) -> None:
        """Forget all starts given."""
        self._given.clear()
        self._all_given = ()
        self._is_spread = False

    def moments(self, most: int) -> Moments:
        """Return the first ``most`` times of the window at which a job ends, and which nodes change then."""
        line = self._line
        own: dict[int, list[int]] = {}
        for given, later in ((line.started, False), (line.reserved, True)):
            for start in given.values():
                if start.end_ms is not None and start.end_ms <= line.latest:
                    own.setdefault(start.end_ms, []).extend(start.placement.nodes)
                if later:
                    own.setdefault(start.start_ms, []).extend(start.placement.nodes)
        times = sorted(self._base.keys() | own.keys())[:most]
        return [(at, tuple(dict.fromkeys((*self._base.get(at, ()), *own.get(at, ()))))) for at in times]

    def occupants(self, node: int, at: int, ahead: FutureState) -> int:
        """Return the number of the occupants of ``node`` at a time; ``ahead`` moves there only where it must."""
        linked = self._is_linked(node)
        key = (node, at, self._all_given if linked else self._given.get(node, ()))
        number = self._known.get(key)
        if number is None:
            if linked:
                ahead.advance(at)
                number = self._line.occupants.of(node)
            else:
                number = self._line.occupants.would_be(node, self._standing(node, at).items())
            self._known[key] = number
        return number

    @contextmanager
    def moved(self, node: int, at: int, ahead: FutureState) -> Iterator[None]:
        """Move a node to a time, or where jobs on several nodes count everything; ``ahead`` may stay there."""
        if self._is_linked(node):
            ahead.advance(at)
            yield
            return
        line, placements = self._line, self._line.state.placements
        before, then = {job: placements[job] for job in line.state.node_jobs[node]}, self._standing(node, at)
        for job in before.keys() - then.keys():
            line.put(job, None)
        for job in then.keys() - before.keys():
            line.put(job, then[job])
        yield
        for job in then.keys() - before.keys():
            line.put(job, None)
        for job in before.keys() - then.keys():
            line.put(job, before[job])

    def _is_linked(self, node: int) -> bool:
        return self._is_spread or node in self._linked

    def _standing(self, node: int, at: int) -> dict[int, Placement | None]:
        """Return the jobs that are on a node at a time not before that of the state, and their places."""
        line = self._line
        ends = ((job, line.end_of(job)) for job in line.state.node_jobs[node])
        standing = {job: line.state.placements[job] for job, end in ends if end is None or end > at}
        for job, start in line.reserved.items():
            if start.start_ms <= at < (start.end_ms or 0) and node in start.placement.nodes:
                standing[job] = start.placement
        return standing


def _nodes(placement: Placement | None) -> tuple[int, ...]:
    return () if placement is None else tuple(dict.fromkeys(placement.nodes))
