"""What runs now and what is reserved for later: where and when a job would best start beside it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.future_state import FutureState, earliest_starts, nodes_of
from placeopt.heuristics.greedy_pass import TRIES, places, places_on_node
from placeopt.heuristics.run_times import (
    company_of,
    expected_ends,
    option_of,
    path_excess,
    run_time_ms,
    run_time_there_ms,
    slowed_ms,
    spread_of,
)
from placeopt.heuristics.scores.registry import score_named
from placeopt.heuristics.start_estimate import Occupants, StartEstimate, option_kind
from placeopt.problem import Move, Placement, Problem, State
from placeopt.terms.costs.interference import meets, together
from placeopt.terms.rules import fits_beyond_room

MAX_STARTS = 16
"""Later starts that are tried for a job, the earliest ones."""
HARM = 2
"""What neighbours lose by a job counts twice: for them, and for the jobs that get their GPUs next."""

Seen = tuple[int, int]
"""A kind of option, and the number of the occupants of a node."""
Asked = tuple[int, Seen | None, tuple[StartEstimate, ...]]
"""An option, the key that estimates are cached by, and the estimates of starts on a node."""


@dataclass(frozen=True)
class Start:
    """A place and a time to start; when the job would end, None where it is unknown."""

    placement: Placement
    start_ms: int
    end_ms: int | None
    score: int
    """1000 x end, and what it takes from others; the lower the better."""


class Timeline:
    """
    Jobs get starts one after the other: now, or at the end of something that holds GPUs then.

    ``state`` is the present one, ``ends`` are the ends of its jobs, ``reserved`` has the later starts: at that time
    their GPUs are taken. A start scores by its end, by how much longer its sockets are not whole, weighted with the
    loss of a job that finds no whole one, and by its cost to neighbours.
    """

    def __init__(self, problem: Problem, score: str) -> None:
        self.problem = problem
        self.now = problem.instance.now_ms
        self.latest = self.now + problem.policy.postpone.window_ms
        self.state = State(problem)
        self.ends = expected_ends(self.state)
        self.ending = sorted((end, job) for job, end in self.ends.items())
        self.started: dict[int, Start] = {}
        self.reserved: dict[int, Start] = {}
        self.instead: dict[int, int | None] = {}
        """Of a reserved job: its end had it started at once; None: it could not."""
        self.candidates = Candidates(self.state, score_named(score, problem))
        self._slowdown_cache: dict[int, int] = {}  # of placed jobs, once read since it changed
        self.occupants = Occupants(self.state, self.end_of, self._slowdown_of)
        self._estimates: dict[Seen, tuple[StartEstimate, ...]] = {}
        self._choices: dict[tuple[int, bool, tuple[int, ...]], tuple[Start | None, Start | None]] = {}
        self._given_starts: tuple[int, ...] = ()  # numbers of all starts given, of whatever job of a class, sorted
        self._numbers: dict[tuple[int, bool, Start], int] = {}
        self._kinds: dict[Hashable, int] = {}
        self._kind_of: dict[int, int] = {}
        self._earliest = earliest_starts(self)
        self._changes: dict[int, list[int]] = {}  # the first times -> nodes on which a job that runs ends
        for end, job in self.ending:
            if end not in self._changes and len(self._changes) == MAX_STARTS:
                break
            self._changes.setdefault(end, []).extend(nodes_of(self.state.placements[job]))

    def earliest_ms(self, job: int) -> int | None:
        """
        Return the first time at which a waiting job could start if no other waiting job did; None: not in the window.

        Starts of others only take room, so the job starts no sooner in any schedule.
        """
        return self._earliest.get(int(self.problem.job_class[job]))

    def least_end_ms(self, job: int) -> int:
        """Return a time before which the job ends in no schedule; without a start it counts as if it began then."""
        options = self.problem.instance.jobs[job].options
        if any(option.run_time_ms is None for option in options):
            return self.now + self.shortest_ms(job)
        earliest = self.earliest_ms(job)
        return (self.latest if earliest is None else earliest) + self.shortest_ms(job)

    def take(self, job: int, *, if_room_now: bool = False) -> Start | None:
        """
        Give the job its best start, now or later; None: there is none in the window, or its run time is not known.

        A job that can start now at full speed does. ``if_room_now``: it gets a later start only where it could start
        now, if on GPUs that are taken later.
        """
        k = int(self.problem.job_class[job])
        key = (k, if_room_now, self._given_starts)
        if key not in self._choices:  # orders of the same jobs often give the same choice
            self._choices[key] = self._choose(job, if_room_now=if_room_now)
        here, later = self._choices[key]
        if later is not None:
            self.reserved[job] = later
            self.instead[job] = None if here is None else here.end_ms
        elif here is not None:
            self.put(job, here.placement)
            self.started[job] = here
            if here.end_ms is not None:
                self.ends[job] = here.end_ms
        start = here if later is None else later
        if start is not None:
            number = self._numbers.setdefault((k, later is not None, start), len(self._numbers))
            self._given_starts = tuple(sorted((*self._given_starts, number)))
        return start

    def _choose(self, job: int, *, if_room_now: bool) -> tuple[Start | None, Start | None]:
        """Return the best start now, and a later one if that is better."""
        earliest = self.earliest_ms(job)
        if earliest is None or (if_room_now and earliest > self.now):
            return None, None
        evaluated: set[Seen] = set()
        here = None if earliest > self.now else self._best(job, self.now, evaluated=evaluated)
        if here is None and if_room_now and (not self.reserved or self._best(job, self.now, heed=False) is None):
            return None, None
        return here, None if here is not None and self._runs_well(job, here) else self._later(job, here, evaluated)

    def clear(self) -> None:
        """Take back all starts."""
        for job in self.started:
            self.put(job, None)
            self.ends.pop(job, None)
        self.started.clear()
        self.reserved.clear()
        self.instead.clear()
        self._given_starts = ()

    def shortest_ms(self, job: int) -> int:
        """Return the shortest run time of the job's options, 0 where none states any."""
        times = [option.run_time_ms for option in self.problem.instance.jobs[job].options]
        return min((length for length in times if length is not None), default=0)

    def put(self, job: int, placement: Placement | None) -> None:
        """Put a job at a placement in the state, or remove it."""
        undo = self.state.apply(Move(job, placement))
        self._slowdown_cache.pop(job, None)
        for held in (undo.placement, placement):
            if held is None:
                continue
            for node in dict.fromkeys(held.nodes):
                self.candidates.changed(node)
                for other in self.state.node_jobs[node]:
                    self._slowdown_cache.pop(other, None)
            self.occupants.changed(job, held.nodes)

    def _runs_well(self, job: int, here: Start) -> bool:
        """Return whether it would lose nothing now, or that is unknown."""
        alone = option_of(self.problem, job, here.placement.option).run_time_ms
        return here.end_ms is None or alone is None or here.end_ms <= self.now + alone

    def _later(self, job: int, here: Start | None, evaluated: set[Seen]) -> Start | None:
        """Return the best later start in the window, if it is better than the one now; ``evaluated``: see ``_best``."""
        best, earliest = here, self.earliest_ms(job) or self.now
        ahead, by_changes = FutureState(self), self._changes_suffice(job)
        for time_ms, nodes in self._moments():
            if best is not None and 1000 * (time_ms + self.shortest_ms(job)) >= best.score:
                break  # nor does any later one end earlier
            if time_ms < earliest:
                continue
            ahead.advance(time_ms)
            then = self._best(job, time_ms, evaluated=evaluated, nodes=nodes if by_changes else None)
            if then is not None and then.end_ms is not None and (best is None or then.score < best.score):
                best = then
        ahead.restore()
        return None if best is here else best

    def _moments(self) -> list[tuple[int, list[int]]]:
        """Return the first times of the window at which a job ends or a reserved one starts, and on which nodes."""
        own: dict[int, list[int]] = {}
        for start in (*self.started.values(), *self.reserved.values()):
            for at in (start.start_ms, start.end_ms):
                if at is not None and at != self.now:
                    own.setdefault(at, []).extend(nodes_of(start.placement))
        times = sorted(at for at in self._changes.keys() | own.keys() if at <= self.latest)[:MAX_STARTS]
        return [(at, [*dict.fromkeys((*self._changes.get(at, ()), *own.get(at, ())))]) for at in times]

    def _changes_suffice(self, job: int) -> bool:
        """
        Return whether a later start of the job needs no more than the nodes that have changed since an earlier one.

        Not if it may be on several nodes, nor if a quota may refuse a start until a job ends anywhere.
        """
        rows = list(self.problem.options_of(job))
        one_node = bool((self.problem.options.bundles[rows] == 1).all())
        return one_node and self.candidates.remembers_gpus and not self.problem.has_shared_limits

    def _best(
        self,
        job: int,
        at: int,
        *,
        heed: bool = True,
        evaluated: set[Seen] | None = None,
        nodes: Sequence[int] | None = None,
    ) -> Start | None:
        """
        Return the start of least score, one of unknown end only if there is no other; ``heed`` what is reserved.

        ``evaluated`` has pairs of option and occupants that were tried for an earlier start, and is added to. Later
        starts there are worse: the job ends later, and no socket is held up for a shorter time. ``nodes``: The only
        ones tried; None: the best and the worst by score.
        """
        rows = self.problem.options_of(job)
        asked = (found for option in rows for found in self._asked(job, option, evaluated, nodes))
        best: Start | None = None
        alike: set[tuple[int, ...]] = set()
        for option, seen, estimates in asked:
            refused, alone_ms = False, option_of(self.problem, job, option).run_time_ms if estimates else None
            for estimate in estimates:
                if estimate.alike is not None and estimate.alike in alike:
                    continue  # it scores as the first like it, which counts
                end, score = self._scored(estimate, alone_ms, at)
                if best is not None and (end is None, score) >= (best.end_ms is None, best.score):
                    continue
                start = Start(estimate.in_option(option), at, end, score)
                if fits_beyond_room(self.state, job, start.placement) and (not heed or self._keeps_reserved(start)):
                    best = start
                    if estimate.alike is not None:
                        alike.add(estimate.alike)
                else:
                    refused = True
            if evaluated is not None and seen is not None and not refused:
                evaluated.add(seen)
        return best

    def _asked(
        self, job: int, option: int, evaluated: set[Seen] | None, nodes: Sequence[int] | None
    ) -> Iterator[Asked]:
        """Yield the estimates of starts in an option, node by node, and the key that they are cached by."""
        candidates = self.candidates
        if self.problem.options.bundles[option] > 1:
            for placement in places(candidates, option):
                yield option, None, (self._estimate(job, placement),)
            return
        kind, scores = self._kind(job, option), candidates.scores(option)
        for node in _both_ends(scores) if nodes is None else sorted(nodes, key=lambda n: (scores[n], n)):
            seen = (kind, self.occupants.of(node))
            if evaluated is not None and seen in evaluated:
                continue
            cached = self._estimates.get(seen)
            if cached is None:
                cached = self._estimates_on(job, option, node)
                if candidates.remembers_gpus:
                    self._estimates[seen] = cached
            yield option, seen, cached

    def _kind(self, job: int, option: int) -> int:
        """Return a number that is equal for options of jobs that differ in run time and worth alone."""
        kind = self._kind_of.get(option)
        if kind is None:
            key = option_kind(self.problem, job, option), self.candidates.shape(option)
            kind = self._kind_of[option] = self._kinds.setdefault(key, len(self._kinds))
        return kind

    def _estimates_on(self, job: int, option: int, node: int) -> tuple[StartEstimate, ...]:
        """Return the estimates of starts on a node; none if it has no room."""
        has_room = self.candidates.scores(option)[node] < np.inf
        places_there = places_on_node(self.candidates, option, node) if has_room else ()
        return tuple(self._estimate(job, place) for place in places_there)

    def _estimate(self, job: int, placement: Placement) -> StartEstimate:
        slowdown, harm = self._effects(job, placement)
        return StartEstimate(placement, self._alike(placement), slowdown, harm, self._clear(placement))

    def _alike(self, placement: Placement) -> tuple[int, ...] | None:
        """Return a key that is equal for placements on idle nodes of a class that differ in the node alone, or None."""
        problem, node = self.problem, placement.nodes[0]
        if self.state.node_jobs[node] or any(other != node for other in placement.nodes):
            return None
        first = problem.first_gpu[node]
        return (placement.option, int(problem.node_class[node]), *(gpu - first for gpu in placement.gpus))

    def _scored(self, estimate: StartEstimate, alone_ms: int | None, at: int) -> tuple[int | None, int]:
        """Return the end of a start, None where it is unknown, and its score."""
        if alone_ms is None:
            return None, 0
        end = at + slowed_ms(alone_ms, estimate.slowdown_thousandths)
        spread = self.problem.policy.postpone.spread_slowdown_thousandths
        return end, 1000 * (end + HARM * estimate.harm_ms) + spread * estimate.delay_ms(at, end)

    def _effects(self, job: int, placement: Placement) -> tuple[int, int]:
        """Return the job's excess there in thousandths, and by how much its neighbours' run times get longer, in ms."""
        state, problem = self.state, self.problem
        apart = path_excess(problem, placement, spread_of(problem, job))
        if problem.policy.interference.model == "curve":  # all that share a GPU have a part in it: put it there and see
            beside = dict.fromkeys(other for node in placement.nodes for other in state.node_jobs[node])
            alone = [run_time_ms(state, other) or 0 for other in beside]
            undo = state.apply(Move(job, placement))
            company, both = company_of(state, job), [run_time_ms(state, other) or 0 for other in beside]
            state.apply(undo)
            return apart + company, sum(max(0, b - a) for a, b in zip(alone, both, strict=True))
        excesses, harm = [], 0
        for other, felt, caused in meets(state, job, placement):
            excesses.append(felt)
            held = state.placements[other]
            if caused and held is not None:
                slowdown_total = self._slowdown_of(other)
                before, after = (
                    run_time_there_ms(problem, other, held, estimate) or 0
                    for estimate in (slowdown_total, together(problem, (slowdown_total, caused)))
                )
                harm += after - before
        return apart + together(problem, excesses), harm

    def _slowdown_of(self, job: int) -> int:
        """Excess of a placed job by its neighbours together, in thousandths."""
        slowdown_total = self._slowdown_cache.get(job)
        if slowdown_total is None:
            slowdown_total = self._slowdown_cache[job] = company_of(self.state, job)
        return slowdown_total

    def end_of(self, job: int) -> int | None:
        """Return when a job that is in the state ends there, None where it is unknown."""
        reserved = self.reserved.get(job)
        return self.ends.get(job) if reserved is None else reserved.end_ms

    def _clear(self, placement: Placement) -> tuple[int, ...]:
        """Return when the others on each socket in use have ended; sockets where one end is unknown are left out."""
        problem, clear = self.problem, []
        for node in dict.fromkeys(placement.nodes):
            for socket in {int(problem.gpu_socket[gpu]) for gpu in placement.gpus if problem.gpu_node[gpu] == node}:
                ends = [
                    self.end_of(other)
                    for other in self.state.node_jobs[node]
                    if (held := self.state.placements[other]) is not None
                    and any(problem.gpu_node[gpu] == node and problem.gpu_socket[gpu] == socket for gpu in held.gpus)
                ]
                known = [end for end in ends if end is not None]
                if len(known) == len(ends):
                    clear.append(max(known, default=0))
        return tuple(clear)

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
