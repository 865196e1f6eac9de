"""
What crowds of jobs may do, for relaxations: a crowd is all the jobs that are alike in whatever counts there.

Waiting jobs fold by class; running ones that may be changed by class, option, and what may be done to them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from placeopt.formulations.columns import room_on_nodes
from placeopt.problem import State
from placeopt.problem.changes import part_of
from placeopt.terms.objective import start_value
from placeopt.terms.variables import MOVE, NEW, SHRINK, STAY


@dataclass
class JobGroup:
    """Jobs counted together; all of them run now, or none. ``must_run``: none of them may be preempted."""

    jobs: list[int] = field(default_factory=list)
    must_run: bool = False


@dataclass
class Starts:
    """
    Starts of crowds, one entry each: what so many of a crowd's jobs do. And bundles of a start on a class of nodes.

    ``value`` is net of a running job's price, over its being preempted; ``milli`` the GPU share that a job holds, at
    most; ``most`` a limit on the jobs; ``placed_most`` one on the bundles.
    """

    crowds: list[JobGroup]
    crowd: list[int] = field(default_factory=list)
    option: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    value: list[int] = field(default_factory=list)
    milli: list[int] = field(default_factory=list)
    most: list[int] = field(default_factory=list)
    placed_start: list[int] = field(default_factory=list)
    placed_class: list[int] = field(default_factory=list)
    placed_most: list[int] = field(default_factory=list)

    def add(self, crowd: int, option: int, kind: int, worth: int, milli: int, most: int, room: dict[int, int]) -> None:
        """Add a start with its bundles, at most ``room`` of them by node class."""
        self.placed_start.extend([len(self.option)] * len(room))
        self.placed_class.extend(room)
        self.placed_most.extend(room.values())
        self.crowd.append(crowd)
        self.option.append(option)
        self.kind.append(kind)
        self.value.append(worth)
        self.milli.append(milli)
        self.most.append(most)


def draft_starts(state: State) -> Starts:
    """Return what the jobs that are nowhere in ``state`` may do: start, or stay, shrink or move where they run now."""
    problem, rooms, starts = state.problem, _Rooms(state), Starts(_crowds(state))
    for c, crowd in enumerate(starts.crowds):
        first = crowd.jobs[0]
        if first in problem.running:
            _draft_running(starts, rooms, c)
        else:
            for o in problem.options_of(first):
                _draft_anywhere(starts, rooms, c, o, NEW, int(problem.options.value[o]))
    return starts


def _crowds(state: State) -> list[JobGroup]:
    """Fold alike jobs."""
    problem = state.problem
    out: dict[tuple[object, ...], JobGroup] = {}
    for job, placement in enumerate(state.placements):
        if placement is None:
            key: tuple[object, ...] = (int(problem.job_class[job]),)
            if job in problem.running:
                flags = (job in problem.may_move, job in problem.may_shrink, job in problem.may_preempt)
                key = (*key, problem.running[job].option, *flags)
            crowd = out.setdefault(key, JobGroup(must_run=job in problem.running and job not in problem.may_preempt))
            crowd.jobs.append(job)
    return list(out.values())


def _draft_running(starts: Starts, rooms: _Rooms, c: int) -> None:
    """Running jobs stay or shrink on nodes of the classes where they are, whatever the masks say, or move anywhere."""
    problem, options, jobs = rooms.state.problem, rooms.state.problem.options, starts.crowds[c].jobs
    first, held, changes = jobs[0], problem.running[jobs[0]], problem.policy.changes
    here: Counter[int] = Counter()
    for job in jobs:
        nodes = problem.running[job].nodes
        on = nodes[:1] if options.bundles[held.option] == 1 else nodes
        here.update(int(problem.node_class[node]) for node in on)
    milli = int(options.total_milli[held.option])
    starts.add(c, held.option, STAY, start_value(problem, first, held), milli, len(jobs), here)
    for o in problem.options_of(first):
        workers = int(options.workers[o])
        if first in problem.may_shrink and options.name[o] == options.name[held.option] and workers < len(held.nodes):
            worth = start_value(problem, first, part_of(problem, first, o, tuple(range(workers))))
            starts.add(c, o, SHRINK, worth, milli, len(jobs), here)
        if first in problem.may_move:
            worth = int(options.value[o]) - changes.move_price + changes.preemption_price
            _draft_anywhere(starts, rooms, c, o, MOVE, worth)


def _draft_anywhere(starts: Starts, rooms: _Rooms, c: int, option: int, kind: int, worth: int) -> None:
    """Jobs that start do so on nodes that the static masks allow, as far as there is room for each alone."""
    options = rooms.state.problem.options
    room, bundles = rooms.of(option), int(options.bundles[option])
    fit = min(len(starts.crowds[c].jobs), sum(room.values()) // bundles)
    if fit:
        most = {k: min(count, fit * bundles) for k, count in room.items()}
        starts.add(c, option, kind, worth, int(options.total_milli[option]), fit, most)


class _Rooms:
    """How many bundles of an option each class of nodes could take, worked out once an option."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._known: dict[int, dict[int, int]] = {}

    def of(self, option: int) -> dict[int, int]:
        """Return node class -> bundles, classes without room left out."""
        if option not in self._known:
            problem = self.state.problem
            nodes, per_node = room_on_nodes(self.state, option)
            room = np.zeros(int(problem.node_class.max()) + 1, dtype=np.int64)
            np.add.at(room, problem.node_class[nodes], per_node)
            self._known[option] = {k: int(room[k]) for k in np.flatnonzero(room).tolist()}
        return self._known[option]
