"""Place or wait: which jobs end earlier if they wait for GPUs that become free soon."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.family import SCORES
from placeopt.heuristics.greedy import places
from placeopt.problem import IntArray, Move, Placement, Problem, State
from placeopt.terms.rules import fits
from placeopt.terms.run_time import expected_ends, option_of, run_time_ms

MAX_STARTS = 16
"""Later starts that are tried for a job, the earliest ones."""


@dataclass(frozen=True)
class Wait:
    """A job that waits: where and when it would start, when it would end then, and when if it started now."""

    placement: Placement
    start_ms: int
    end_ms: int
    end_if_now_ms: int | None
    """None: it can only start now on GPUs that are kept for another."""


@dataclass(frozen=True)
class _Start:
    placement: Placement
    start_ms: int
    end_ms: int | None
    score: int
    """1000 x end, and what it takes from others; the lower the better."""


def look_ahead(
    problem: Problem,
    order: IntArray,
    score: str = "best_fit",
    *,
    deadline: float = float("inf"),
    cancelled: Callable[[], bool] | None = None,
) -> dict[int, Wait]:
    """
    Return the jobs that had better wait, each with GPUs kept for it.

    Parameters
    ----------
    order
        Waiting jobs, first to be considered first.
    score
        Name in ``SCORES``: which nodes are tried.
    deadline, cancelled
        As in ``greedy``: jobs not reached by then do not wait.

    Notes
    -----
    Job by job: where it fits now it is placed if it would run there as well as it can. Otherwise every later moment
    inside the window at which something ends is tried, with what still runs then and what is kept for jobs that wait
    already. It waits if a later start scores less: its end, plus, for every socket (node, where there are none) that it
    keeps from being whole again, the delay x the policy's spread slowdown, which is what a job loses that finds no
    whole one. Jobs placed meanwhile may use kept GPUs only if they end in time. A job that fits nowhere now is not
    decided here, nor is one of unknown run time.
    """
    view = _View(problem, score)
    hopeless: set[int] = set()
    for job in order.tolist():
        if time.monotonic() >= deadline or (cancelled is not None and cancelled()):
            break
        k = int(problem.job_class[job])
        if k not in hopeless and not view.decide(job):
            hopeless.add(k)
    return view.waits


class _View:
    """What runs now, when it ends, and what is kept for whom."""

    def __init__(self, problem: Problem, score: str) -> None:
        self.problem = problem
        self.now = problem.instance.now_ms
        self.latest = self.now + problem.policy.postpone.window_ms
        self.state = State(problem)
        self.ends = expected_ends(self.state)
        self.waits: dict[int, Wait] = {}
        self._score = SCORES[score](problem)
        self._candidates = Candidates(self.state, self._score)

    def decide(self, job: int) -> bool:
        """Place the job now or let it wait; tell whether there is room for it now at all."""
        here = self._best(self._candidates, job, self.now)
        if here is None and (not self.waits or self._best(self._candidates, job, self.now, heed=False) is None):
            return False
        later = None if here is not None and self._runs_well(job, here) else self._later(job, here)
        if later is not None and later.end_ms is not None:
            end_if_now = None if here is None else here.end_ms
            self.waits[job] = Wait(later.placement, later.start_ms, later.end_ms, end_if_now)
        elif here is not None:
            self.state.apply(Move(job, here.placement))
            for node in dict.fromkeys(here.placement.nodes):
                self._candidates.changed(node)
            if here.end_ms is not None:
                self.ends[job] = here.end_ms
        return True

    def _runs_well(self, job: int, here: _Start) -> bool:
        """Tell whether it would lose nothing now, or nobody knows."""
        alone = option_of(self.problem, job, here.placement.option).run_time_ms
        return here.end_ms is None or alone is None or here.end_ms <= self.now + alone

    def _later(self, job: int, here: _Start | None) -> _Start | None:
        """Return the best later start inside the window, if it is better than the one now."""
        best = here
        ends = {*self.ends.values(), *(wait.end_ms for wait in self.waits.values())}
        for moment in sorted(end for end in ends if end <= self.latest)[:MAX_STARTS]:
            if best is not None and 1000 * (moment + self._fastest(job)) >= best.score:
                break  # nor does any later one end earlier
            then = self._best_at(job, moment)
            if then is not None and then.end_ms is not None and (best is None or then.score < best.score):
                best = then
        return None if best is here else best

    def _fastest(self, job: int) -> int:
        times = [option.run_time_ms for option in self.problem.instance.jobs[job].options]
        return min((length for length in times if length is not None), default=0)

    def _best_at(self, job: int, moment: int) -> _Start | None:
        """Return the best start at a later moment; what ends by then is gone, what is kept for others is taken."""
        moves = [Move(j, None) for j, end in self.ends.items() if end <= moment]
        moves += [Move(j, wait.placement) for j, wait in self.waits.items() if wait.end_ms > moment]
        undo = [self.state.apply(move) for move in moves]
        found = self._best(Candidates(self.state, self._score), job, moment)
        for move in reversed(undo):
            self.state.apply(move)
        return found

    def _best(self, candidates: Candidates, job: int, at: int, *, heed: bool = True) -> _Start | None:
        """Return the start of least score, one of unknown run time only if there is no other; ``heed`` what is kept."""
        found: list[_Start] = []
        for option in self.problem.options_of(job):
            for placement in places(candidates, option):
                if fits(self.state, job, placement):
                    start = self._start(job, placement, at)
                    if not heed or self._leaves_kept(start):
                        found.append(start)
        return min(found, key=lambda start: (start.end_ms is None, start.score), default=None)

    def _start(self, job: int, placement: Placement, at: int) -> _Start:
        undo = self.state.apply(Move(job, placement))
        length = run_time_ms(self.state, job)
        self.state.apply(undo)
        if length is None:
            return _Start(placement, at, None, 0)
        end = at + length
        return _Start(placement, at, end, 1000 * end + self._price() * self._delay(placement, at, end))

    def _price(self) -> int:
        return self.problem.policy.postpone.spread_slowdown_thousandths

    def _delay(self, placement: Placement, at: int, end: int) -> int:
        """Return by how long the sockets in use become whole later because of the job, summed."""
        problem, total = self.problem, 0
        part = {gpu: int(problem.gpu_socket[gpu]) for gpu in placement.gpus}
        for node in dict.fromkeys(placement.nodes):
            touched = {part[gpu] for gpu in placement.gpus if problem.gpu_node[gpu] == node}
            for socket in touched:
                clear = at
                for other in self.state.node_jobs[node]:
                    held = self.state.placements[other]
                    if held is not None and any(
                        problem.gpu_node[gpu] == node and problem.gpu_socket[gpu] == socket for gpu in held.gpus
                    ):
                        known = self.ends.get(other, self.waits[other].end_ms if other in self.waits else end)
                        clear = max(clear, known)
                total += max(0, end - clear)
        return total

    def _leaves_kept(self, start: _Start) -> bool:
        """Tell whether the start lets every GPU kept for others be free in time."""
        return all(
            set(start.placement.gpus).isdisjoint(wait.placement.gpus)
            or start.start_ms >= wait.end_ms
            or (start.end_ms is not None and start.end_ms <= wait.start_ms)
            for wait in self.waits.values()
        )
