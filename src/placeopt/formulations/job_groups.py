"""
What job groups of jobs may do, for relaxations: a job group is all the jobs that are alike in whatever counts there.

Waiting jobs fold by class; running ones that may be changed by class, option, and what may be done to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt.problem import ClassRooms, IntArray, State
from placeopt.problem.changes import part_of
from placeopt.terms.objective import start_value
from placeopt.terms.variables import MOVE, NEW, SHRINK, STAY


@dataclass(frozen=True, eq=False)
class Starts:
    """S starts, each what jobs of one group may do; and P bundles, each of a start on a class of nodes."""

    groups: list[list[int]]
    """The jobs of each group; all of them run now, or none."""
    job_group: IntArray  # (S,)
    option: IntArray  # (S,)
    kind: IntArray  # (S,) as in ``terms.variables``
    value: IntArray  # (S,) net of a running job's price, over its being preempted
    milli: IntArray  # (S,) GPU share that a job holds, at most
    most: IntArray  # (S,) limit on the jobs
    bundle_start: IntArray  # (P,)
    bundle_class: IntArray  # (P,) class of nodes
    bundle_most: IntArray  # (P,) limit on the bundles


def draft_starts(state: State, check_time: Callable[[], None]) -> Starts:
    """
    Return what the jobs that are not placed in ``state`` may do: start, or stay, shrink or move where they run now.

    ``check_time`` is called for each group, and raises where time is over.
    """
    groups = _job_groups(state)
    draft = _Draft(state, groups)
    for c, jobs in enumerate(groups):
        check_time()
        if jobs[0] in state.problem.running:
            draft.add_running(c)
        else:
            for option in state.problem.options_of(jobs[0]):
                draft.add_anywhere(c, option, NEW, int(state.problem.options.value[option]))
    starts = np.array(draft.starts, dtype=np.int64).reshape(-1, len(_Start._fields))
    bundles = np.array(draft.bundles, dtype=np.int64).reshape(-1, len(_Bundle._fields))
    return Starts(groups, *starts.T.copy(), *bundles.T.copy())


def _job_groups(state: State) -> list[list[int]]:
    """Fold alike jobs."""
    problem = state.problem
    if not problem.changeable:
        waiting = np.flatnonzero([placement is None for placement in state.placements])
        order = np.argsort(problem.job_class[waiting], kind="stable")
        ends = np.flatnonzero(np.diff(problem.job_class[waiting[order]])) + 1
        groups = [group.tolist() for group in np.split(waiting[order], ends) if len(group)]
        return sorted(groups)  # by their first jobs
    out: dict[tuple[object, ...], list[int]] = {}
    for job, placement in enumerate(state.placements):
        if placement is None:
            key: tuple[object, ...] = (int(problem.job_class[job]),)
            if job in problem.running:
                flags = (job in problem.may_move, job in problem.may_shrink, job in problem.may_preempt)
                key = (*key, problem.running[job].option, *flags)
            out.setdefault(key, []).append(job)
    return list(out.values())


class _Start(NamedTuple):
    """One of `Starts`, its fields in their order."""

    job_group: int
    option: int
    kind: int
    value: int
    milli: int
    most: int


class _Bundle(NamedTuple):
    """The same of a bundle."""

    start: int
    node_class: int
    most: int


class _Draft:
    """Collects starts and bundles."""

    def __init__(self, state: State, groups: list[list[int]]) -> None:
        self._state, self._problem, self._groups = state, state.problem, groups
        self._rooms = ClassRooms(state)
        self.starts: list[_Start] = []
        self.bundles: list[_Bundle] = []

    def add_running(self, c: int) -> None:
        """Let running jobs stay or shrink on nodes of their classes, whatever the masks say, or move anywhere."""
        problem, options, jobs = self._problem, self._problem.options, self._groups[c]
        first, held, changes = jobs[0], problem.running[jobs[0]], problem.policy.changes
        here: Counter[int] = Counter()
        for job in jobs:
            nodes = problem.running[job].nodes
            on = nodes[:1] if options.bundles[held.option] == 1 else nodes
            here.update(int(problem.node_class[node]) for node in on)
        milli = int(options.total_milli[held.option])
        self._add(_Start(c, held.option, STAY, start_value(problem, first, held), milli, len(jobs)), here)
        for o in problem.options_of(first):
            workers = int(options.workers[o])
            fewer = options.kinds[o] == options.kinds[held.option] and workers < len(held.nodes)
            if fewer and first in problem.may_shrink:
                worth = start_value(problem, first, part_of(problem, first, o, tuple(range(workers))))
                self._add(_Start(c, o, SHRINK, worth, milli, len(jobs)), here)
            if first in problem.may_move:
                self.add_anywhere(c, o, MOVE, int(options.value[o]) - changes.move_price + changes.preemption_price)

    def add_anywhere(self, c: int, option: int, kind: int, worth: int) -> None:
        """Let jobs start on nodes that the static masks allow, as far as there is room for each alone."""
        options, room = self._problem.options, self._rooms.of(option)
        bundles = int(options.bundles[option])
        fit = min(len(self._groups[c]), sum(room.values()) // bundles)
        if fit:
            most = {k: min(count, fit * bundles) for k, count in room.items()}
            self._add(_Start(c, option, kind, worth, int(options.total_milli[option]), fit), most)

    def _add(self, start: _Start, room: dict[int, int]) -> None:
        """Add a start with its bundles, at most ``room`` of them by node class."""
        self.bundles.extend(_Bundle(len(self.starts), node_class, most) for node_class, most in room.items())
        self.starts.append(start)
