"""What runs now and what is reserved for later: where and when a job would best start beside it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.greedy_pass import TRIES, place, places
from placeopt.heuristics.run_times import expected_ends, option_of
from placeopt.heuristics.scores.registry import score_named
from placeopt.heuristics.start_estimate import StartEstimate, StartEstimates
from placeopt.problem import Move, Placement, Problem, State
from placeopt.terms.rules import fits_beyond_room

MAX_STARTS = 16
"""Later starts that are tried for a job, the earliest ones."""


@dataclass(frozen=True)
class Start:
    """A place and a time to start; when the job would end, None where it is unknown."""

    placement: Placement
    start_ms: int
    end_ms: int | None
    score: int
    """1000 x end, and what it takes from others; the lower the better."""
    end_if_now_ms: int | None = None
    """Of a later start: the end had the job started at once; None: it could not."""


class Timeline:
    """
    Jobs get starts one after the other: now, or at the end of something that holds GPUs then.

    ``state`` is the present one, ``ends`` are the ends of its jobs and of later ones, ``reserved`` has the later
    starts: at that time their GPUs are taken. A start scores by its end, by how much longer its sockets are not whole,
    weighted with the loss of a job that finds no whole one, and by its cost to neighbours.
    """

    def __init__(self, problem: Problem, score: str) -> None:
        self.problem = problem
        self.now = problem.instance.now_ms
        self.latest = self.now + problem.policy.postpone.window_ms
        self.state = State(problem)
        self.started: dict[int, Start] = {}
        self.reserved: dict[int, Start] = {}
        running = expected_ends(self.state)
        self._ending = sorted((end, False, job) for job, end in running.items())
        self._ends: dict[int, int | None] = {**running}
        self._candidates = Candidates(self.state, score_named(score, problem))
        self._estimates = StartEstimates(self._candidates, self._ends)

    def best_start(self, job: int, *, if_room_now: bool = False) -> Start | None:
        """
        Return the job's best start, now or later; None: there is none in the window, or its run time is not known.

        A job that can start now at full speed does. ``if_room_now``: it has a later start only where it could start
        now, if on GPUs that are taken later.
        """
        here = self._best(job, self.now)
        if here is None and if_room_now and (not self.reserved or place(self._candidates, job) is None):
            return None
        if here is not None:
            alone = option_of(self.problem, job, here.placement.option).run_time_ms
            if here.end_ms is None or alone is None or here.end_ms <= self.now + alone:
                return here
        best = self._later(job, here)
        if best is None or best is here:
            return best
        return replace(best, end_if_now_ms=None if here is None else here.end_ms)

    def give(self, job: int, start: Start) -> None:
        """Let the job start then and there."""
        self._ends[job] = start.end_ms
        if start.start_ms > self.now:
            self.reserved[job] = start
        else:
            self.started[job] = start
            self._candidates.apply(Move(job, start.placement))

    def clear(self) -> None:
        """Take back all starts."""
        for job in self.started:
            self._candidates.apply(Move(job, None))
        for job in (*self.started, *self.reserved):
            del self._ends[job]
        self.started.clear()
        self.reserved.clear()

    def shortest_ms(self, job: int) -> int:
        """Return the shortest run time of the job's options, 0 where none states any."""
        times = [option.run_time_ms for option in self.problem.instance.jobs[job].options]
        return min((length for length in times if length is not None), default=0)

    def _later(self, job: int, here: Start | None) -> Start | None:
        """Return the best later start in the window, or the one now if none is better."""
        best, shortest = here, self.shortest_ms(job)
        with closing(self._ahead()) as moments:
            for time_ms, changed in islice(moments, MAX_STARTS):
                if best is not None and 1000 * (time_ms + shortest) >= best.score:
                    break  # nor does any later one end earlier
                # on other nodes it started as well before, but for a quota that ends of jobs anywhere leave room in
                then = self._best(job, time_ms, None if self.problem.has_shared_limits else changed)
                if then is not None and then.end_ms is not None and (best is None or then.score < best.score):
                    best = then
        return best

    def _ahead(self) -> Generator[tuple[int, list[int]], None, None]:
        """
        Move the state to later and later times of the window, at which a job ends or a reserved one starts.

        Yields each time, and the nodes that change then. Once it is closed the state is the present one again.
        """
        lasting = {job: start for job, start in self.reserved.items() if start.end_ms != start.start_ms}
        given = {**self.started, **lasting}
        own = [(start.end_ms, False, job) for job, start in given.items() if start.end_ms is not None]
        own += [(start.start_ms, True, job) for job, start in lasting.items()]
        undo: list[Move] = []
        try:
            for time_ms, events in groupby(merge(self._ending, sorted(own)), itemgetter(0)):
                if time_ms > self.latest:
                    return
                nodes = list[int]()
                for _, starts, job in events:
                    move = Move(job, self.reserved[job].placement if starts else None)
                    undo.append(self._candidates.apply(move))
                    held = move.placement or undo[-1].placement
                    nodes += () if held is None else held.nodes
                if time_ms > self.now:  # not the end of what takes no time
                    yield time_ms, list(dict.fromkeys(nodes))
        finally:
            for move in reversed(undo):
                self._candidates.apply(move)

    def _best(self, job: int, at: int, nodes: Sequence[int] | None = None) -> Start | None:
        """
        Return the start of least score, one of unknown end only if there is no other.

        ``nodes``: The only ones tried that may hold the job alone; None: the best and the worst by score.
        """
        spread, best = self.problem.policy.postpone.spread_slowdown_thousandths, None
        for option in self.problem.options_of(job):
            alone_ms = option_of(self.problem, job, option).run_time_ms
            for estimate in self._offered(job, option, nodes):
                end, score = estimate.scored(alone_ms, at, spread)
                if best is not None and (end is None, score) >= (best.end_ms is None, best.score):
                    continue
                start = Start(estimate.in_option(option), at, end, score)
                if fits_beyond_room(self.state, job, start.placement) and self._keeps_reserved(start):
                    best = start
        return best

    def _offered(self, job: int, option: int, nodes: Sequence[int] | None) -> Iterator[StartEstimate]:
        """Yield the estimates of starts in an option, node by node."""
        if self.problem.options.bundles[option] > 1:
            for placement in places(self._candidates, option):
                yield self._estimates.at(job, placement)
            return
        scores = self._candidates.scores(option)
        for node in _both_ends(scores) if nodes is None else sorted(nodes, key=lambda n: (scores[n], n)):
            if scores[node] < np.inf:
                yield from self._estimates.on_node(job, option, node)

    def _keeps_reserved(self, start: Start) -> bool:
        """Return whether the start lets every reserved GPU be free in time."""
        return all(
            set(start.placement.gpus).isdisjoint(other.placement.gpus)
            or (other.end_ms is not None and start.start_ms >= other.end_ms)
            or (start.end_ms is not None and start.end_ms <= other.start_ms)
            for other in self.reserved.values()
        )


def _both_ends(scores: np.ndarray) -> list[int]:
    """Return the best ``TRIES`` nodes by score, and as many from the other end."""
    # Scores keep room for jobs to come, so the best nodes are the fullest: where neighbours disturb a job most.
    order = np.argsort(scores, kind="stable")
    order = order[np.isfinite(scores[order])]
    return order.tolist() if len(order) <= 2 * TRIES else [*order[:TRIES].tolist(), *order[-TRIES:].tolist()]
