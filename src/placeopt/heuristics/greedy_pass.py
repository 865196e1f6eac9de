"""Greedy: one job after the other, each to the best node by a score; the whole queue in one pass."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from placeopt.errors import OutOfTime
from placeopt.heuristics.answered import Refused, Requests
from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.class_fill import fill_by_class, reached_by_class
from placeopt.heuristics.node_selection import nodes_for_bundles
from placeopt.heuristics.related_gangs import place_together
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import Allocation, IntArray, Placement, Problem, State
from placeopt.terms.rules import fits_beyond_room
from placeopt.terms.rules.relations import open_nodes

if TYPE_CHECKING:
    from placeopt.heuristics.tree_placer import TreePlacer

TRIES = 8
"""Nodes tried where a rule refuses the best one."""
PACE_AFTER = 32
"""Jobs after which it is known how long a job takes."""

IN_TURN, PART = 0.7, 1 / 3
"""
Part of the time in which jobs are placed one after the other where they would not all be by the deadline, and part of
the classes that come first then: a third of them brings nearly all that all do, whatever time there is.
"""


class Chooser(Protocol):
    """Where a job goes, by anything but a score of nodes. It watches the state it was made for."""

    def place(self, job: int) -> Placement | None:
        """Return a placement that every rule allows for a job that is not placed yet, or None if none is found."""

    def changed(self, node: int) -> None:
        """Note that the free capacity of ``node`` changed."""


class ByScore:
    """
    The chooser of all methods that rank nodes: ``place`` with the candidates of a score, of a state that only fills up.

    ``only``, shape (J,): The one option of each job that counts, in any flavor of nodes, -1: none; None: all options of
    all jobs.
    """

    def __init__(self, candidates: Candidates, only: IntArray | None = None) -> None:
        self._candidates = candidates
        self._only: list[int] | None = None if only is None else only.tolist()
        self.changed = candidates.changed
        self._tried: set[int] = set()  # classes
        self._refused: Refused | None = None

    def place(self, job: int) -> Placement | None:
        """See ``Chooser``."""
        problem = self._candidates.problem
        if self._only is None:
            number = int(problem.job_class[job])
            if number not in self._tried and self._refused is not None and self._refused.covers_job(job):
                return None
            self._tried.add(number)
            placement = place(self._candidates, job)
            if placement is None:
                self._refused = self._refused or Refused(Requests(problem))
                self._refused.add_job(job)
            return placement
        chosen = self._only[job]
        if chosen < 0:
            return None
        alike = [o for o in problem.options_of(job) if problem.options.shapes[o] == problem.options.shapes[chosen]]
        return place(self._candidates, job, alike)


@dataclass(frozen=True)
class GreedyResult:
    """The allocation, the jobs that were not reached before the deadline, and how many were placed by class."""

    allocation: Allocation
    not_reached: tuple[int, ...]
    by_class: int = 0


def greedy(
    problem: Problem,
    order: IntArray,
    score: str = "stranding",
    *,
    deadline: float = float("inf"),
    cancelled: Callable[[], bool] | None = None,
    stop_at_first_failure: bool = False,
    start: Allocation | None = None,
    seed: int = 0,
    chooser: Callable[[State], Chooser] | None = None,
    only: IntArray | None = None,
    fill: bool = False,
    in_turn: float = IN_TURN,
    grace_s: float = 0.0,
) -> GreedyResult:
    """
    Place the jobs of ``order`` one after the other, each in its most valuable option that fits.

    Parameters
    ----------
    problem
        The compiled round.
    order
        Waiting jobs, first to be considered first.
    score
        Name in ``SCORES``.
    deadline
        Of ``time.monotonic()``: what is not reached by then waits.
    cancelled
        Asked with the clock, before every job and before every choice of GPUs: true ends the pass like the deadline.
    stop_at_first_failure
        Whether the queue blocks behind a job that does not fit (strict first come, first served).
    start
        Where jobs are already; they stay. Only the running jobs, if left out.
    seed
        For scores that draw.
    chooser
        Makes what chooses the places, instead of ``score``.
    only
        Shape (J,): the one option in which each job may start, in any flavor of nodes, -1: none. All its options, if
        left out.
    fill
        Whether the pass ends early enough for the rest of the queue to be placed by class (`fill_by_class`) by the
        deadline.
    in_turn
        Part of the time after which that begins, if at the pace so far the queue would not end by the deadline.
    grace_s
        Seconds after the deadline, or after it begins if that is later, in which that may still go on.

    Returns
    -------
    GreedyResult
        The allocation, the jobs that were not reached before the deadline, and how many were placed by class.

    Notes
    -----
    Room only shrinks, so a class, or an option, that failed once is not tried again; jobs that start only near others
    are, as long as others start. Jobs that want each other start together, when the first of them comes.
    """
    state, over = State(problem, start), stop_at(deadline, cancelled)
    tree_placer: TreePlacer | None = None
    if chooser is not None and problem.is_plain:
        chosen = chooser(state)
    else:
        candidates = Candidates(state, score_named(score, problem, seed), over, for_many=problem.lies_freely)
        chosen = ByScore(candidates, only)
        if problem.trees:
            from placeopt.heuristics.tree_placer import TreePlacer  # only here: it places members as this module does

            tree_placer = TreePlacer(candidates, over)
    asked_for: list[int] = (problem.job_class if only is None else only).tolist()
    failed: dict[int, int] = {}  # what was asked for in vain -> class; an option is of one class
    began = time.monotonic()
    fill = fill and deadline < float("inf") and problem.is_plain
    fillable = reached_by_class(problem, order).tolist() if fill else []
    given_s, turn_ends = grace_s if fillable else None, began + in_turn * (deadline - began)
    related, again, anchors = problem.relations.hard > 0, list[int](), list[int]()
    follows, wanted = problem.relations.followers
    mutual = follows & wanted
    job_class: list[int] = problem.job_class.tolist()
    for position, job in enumerate(_in_turn(order, again, anchors)):
        k = job_class[job]
        if state.placements[job] is not None:
            continue
        if asked_for[job] in failed:
            if k in follows:
                again.append(job)
            continue
        if over() or (
            position >= PACE_AFTER
            and fillable
            and fillable[position]
            and _is_slow(began, position, len(order), turn_ends, deadline)
        ):
            return _cut_short(state, _rest(order, position), given_s, deadline, cancelled)
        try:
            if tree_placer is not None and job in problem.tree_of:
                tree_placer.place_once(problem.tree_of[job])
                continue
            placement = _place_related(candidates, chosen, job) if related else chosen.place(job)
            if placement is None and k in mutual:
                gang = place_together(candidates, chosen, job, order.tolist(), over)
                if gang:
                    anchors += gang
                    failed = {asked: of for asked, of in failed.items() if of not in follows}
                    continue
        except OutOfTime:
            return _cut_short(state, _rest(order, position), given_s, deadline, cancelled)
        if placement is None:
            failed[asked_for[job]] = k
            if k in follows:
                again.append(job)
            if stop_at_first_failure:
                break
            continue
        state.place(job, placement)
        if k in wanted:
            anchors.append(job)
            failed = {asked: of for asked, of in failed.items() if of not in follows}
        for node in dict.fromkeys(placement.nodes):
            chosen.changed(node)
    return GreedyResult(state.allocation(), ())


def _rest(order: IntArray, position: int) -> IntArray:
    return order[position:] if position < len(order) else order


def _in_turn(order: IntArray, again: list[int], anchors: list[int]) -> Iterator[int]:
    """Yield the jobs, then those to be tried ``again``, as long as ``anchors`` that some want have started since."""
    yield from order.tolist()
    while again and anchors:
        jobs = list(again)
        again.clear()
        anchors.clear()
        yield from jobs


def _place_related(candidates: Candidates, chosen: Chooser, job: int) -> Placement | None:
    """Return the best placement on the nodes of which no relation keeps off the job."""
    state = candidates.state
    candidates.restricted_to = open_nodes(state, job)
    placement = chosen.place(job)
    candidates.restricted_to = None
    return placement if placement is None or fits_beyond_room(state, job, placement) else None


def _is_slow(began: float, position: int, num_jobs: int, turn_ends: float, deadline: float) -> bool:
    """Tell whether the time for placing job by job is over, and at its pace the queue would not end by the deadline."""
    now = time.monotonic()
    return now > turn_ends and now + (now - began) / position * (num_jobs - position) > deadline


def _cut_short(
    state: State, rest: IntArray, grace_s: float | None, deadline: float, cancelled: Callable[[], bool] | None
) -> GreedyResult:
    """Return the result where the clock leaves the jobs ``rest``, which are placed by class; not without a grace."""
    waiting = rest[[state.placements[job] is None for job in rest.tolist()]]
    if grace_s is None or not len(waiting):
        return GreedyResult(state.allocation(), tuple(waiting.tolist()))
    ends = max(deadline, time.monotonic()) + grace_s
    placed, missed = fill_by_class(state, waiting, stop_at(ends, cancelled), part=PART)
    allocation = list(state.placements)
    for job, placement in placed.items():
        allocation[job] = placement
    return GreedyResult(tuple(allocation), tuple(missed), len(placed))


def stop_at(deadline: float, cancelled: Callable[[], bool] | None) -> Callable[[], bool]:
    """Return a function that tells whether the deadline has passed, of ``time.monotonic()``, or the user cancelled."""
    return lambda: time.monotonic() >= deadline or (cancelled is not None and cancelled())


def place(
    candidates: Candidates,
    job: int,
    options: Sequence[int] | None = None,
    fits: Callable[[State, int, Placement], bool] = fits_beyond_room,
    offered: Callable[[Candidates, int], Iterator[Placement]] | None = None,
) -> Placement | None:
    """
    Return the best placement that every rule allows for a job that is not placed yet, or None if none is found.

    ``options``: The only ones tried, in their order; None: all, the most valuable first. ``fits``: The rules asked.
    ``offered``: What yields the places of an option, the best first; None: `places` of this module.
    """
    problem = candidates.problem
    if options is None:
        options = problem.options_of(job)
        if len(options) > 1:
            options = sorted(options, key=lambda o: -int(problem.options.value[o]))
    most: dict[tuple[str, int], int] = {}  # option's id and flavor -> workers above which no numbers of them have room
    for option in options:
        kind, workers = problem.options.kinds[option], problem.options.shapes[option][1]
        if workers > most.get(kind, workers):
            continue
        if len(options) > 1 and not candidates.has_room(option):  # of an elastic range, each number is an option
            most[kind] = _most_workers_with_room(candidates, option)
            continue
        by_room = candidates.room_is_all(option)
        for placement in (offered or places)(candidates, option):
            if by_room or fits(candidates.state, job, placement):
                return placement
    return None


def _most_workers_with_room(candidates: Candidates, option: int) -> int:
    """Return the most workers, fewer than those of ``option``, for which the nodes have room; 0 if there are none."""
    kinds, shapes = candidates.problem.options.kinds, candidates.problem.options.shapes
    rows = range(int(candidates.problem.class_option_start[candidates.problem.options.job_class[option]]), option)
    same = [row for row in rows if kinds[row] == kinds[option]]
    fewer = bisect_left(same, True, key=lambda row: not candidates.has_room(row))  # more workers never have more room
    return shapes[same[fewer - 1]][1] if fewer else 0


def places(candidates: Candidates, option: int) -> Iterator[Placement]:
    """
    Yield places with room, the best by score first; rules that look beyond a node are left to the caller.

    What goes to one node is offered the best ``TRIES`` of them, and on each the closest GPUs, then those of each
    socket; what may lie on several nodes, one place.
    """
    if candidates.problem.options.bundles[option] == 1:
        inside = candidates.problem.options.part_level[option] is not None  # few nodes may have room in one part
        for node in nodes_in_order(candidates.scores(option), None if inside else TRIES):
            yield from places_on_node(candidates, option, node)
        return
    nodes = nodes_for_bundles(candidates, option)
    spread = None if nodes is None else place_on_nodes(candidates, option, nodes)
    if spread is not None:
        yield spread


def places_on_node(candidates: Candidates, option: int, node: int) -> Iterator[Placement]:
    """Yield places on a node that takes the whole job: its closest GPUs, then those of each socket."""
    problem, chosen = candidates.problem, candidates.choose_gpus(option, node)
    nodes = (node,) * int(problem.options.bundle_workers[option])
    yield Placement(option, nodes, chosen)
    need, level = int(problem.options.bundle_gpus[option]), problem.options.part_level[option]
    here = np.arange(problem.node_gpu_start[node], problem.node_gpu_start[node + 1]) if need else np.zeros(0, int)
    part = problem.gpu_socket if level is None else problem.gpu_part[level]
    for socket in dict.fromkeys(part[here].tolist()):
        outside = here[part[here] != socket]
        inside = candidates.choose_gpus(option, node, frozenset(outside.tolist()))
        if len(inside) == need and inside != chosen:
            yield Placement(option, nodes, inside)


def place_on_nodes(candidates: Candidates, option: int, nodes: Sequence[int]) -> Placement | None:
    """Return the closest GPUs for bundles of one worker on these nodes, one bundle for each time a node is named."""
    held: list[int] = []
    held_on: dict[int, tuple[int, ...]] = {}
    for node in nodes:
        before = held_on.get(node, ())
        taken = candidates.choose_gpus(option, node, frozenset(before))
        if len(taken) < candidates.problem.options.gpus[option]:
            return None
        held_on[node] = before + taken
        held.extend(taken)
    return Placement(option, tuple(nodes), tuple(held))


def nodes_in_order(scores: np.ndarray, most: int | None) -> Iterator[int]:
    """Yield the best nodes by score, ``most`` of them; they are sorted only where the first one will not do."""
    if not len(scores):
        return
    best = int(scores.argmin())
    if scores[best] < np.inf:
        yield best
        order = np.argsort(scores, kind="stable")[1:most]
        yield from order[np.isfinite(scores[order])].tolist()
