"""
What job groups of jobs may do, for relaxations: a job group is all the jobs that are alike in whatever counts there.

Waiting jobs fold by class; running ones that may be changed by class, option, and what may be done to them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from placeopt.problem import State
from placeopt.problem.changes import part_of
from placeopt.problem.free_capacity import bundles_per_node
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
    Starts of job groups, one entry each, and bundles of a start on a class of nodes.

    ``value`` is net of a running job's price, over its being preempted; ``milli`` the GPU share that a job holds, at
    most; ``most`` a limit on the jobs; ``placed_most`` one on the bundles.
    """

    job_groups: list[JobGroup]
    job_group: list[int] = field(default_factory=list)
    option: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    value: list[int] = field(default_factory=list)
    milli: list[int] = field(default_factory=list)
    most: list[int] = field(default_factory=list)
    placed_start: list[int] = field(default_factory=list)
    placed_class: list[int] = field(default_factory=list)
    placed_most: list[int] = field(default_factory=list)

    def add(
        self, job_group: int, option: int, kind: int, worth: int, milli: int, most: int, room: dict[int, int]
    ) -> None:
        """Add a start with its bundles, at most ``room`` of them by node class."""
        self.placed_start.extend([len(self.option)] * len(room))
        self.placed_class.extend(room)
        self.placed_most.extend(room.values())
        self.job_group.append(job_group)
        self.option.append(option)
        self.kind.append(kind)
        self.value.append(worth)
        self.milli.append(milli)
        self.most.append(most)


def draft_starts(state: State) -> Starts:
    """
    Return what the jobs that are not placed in ``state`` may do: start, or stay, shrink or move where they run now.
    """
    problem, class_capacity, starts = state.problem, _ClassCapacity(state), Starts(_job_groups(state))
    for c, job_group in enumerate(starts.job_groups):
        first = job_group.jobs[0]
        if first in problem.running:
            _draft_running(starts, class_capacity, c)
        else:
            for o in problem.options_of(first):
                _draft_anywhere(starts, class_capacity, c, o, NEW, int(problem.options.value[o]))
    return starts


def _job_groups(state: State) -> list[JobGroup]:
    """Fold alike jobs."""
    problem = state.problem
    out: dict[tuple[object, ...], JobGroup] = {}
    for job, placement in enumerate(state.placements):
        if placement is None:
            key: tuple[object, ...] = (int(problem.job_class[job]),)
            if job in problem.running:
                flags = (job in problem.may_move, job in problem.may_shrink, job in problem.may_preempt)
                key = (*key, problem.running[job].option, *flags)
            job_group = out.setdefault(
                key, JobGroup(must_run=job in problem.running and job not in problem.may_preempt)
            )
            job_group.jobs.append(job)
    return list(out.values())


def _draft_running(starts: Starts, class_capacity: _ClassCapacity, c: int) -> None:
    """Running jobs stay or shrink on nodes of the classes where they are, whatever the masks say, or move anywhere."""
    problem, options, jobs = (
        class_capacity.state.problem,
        class_capacity.state.problem.options,
        starts.job_groups[c].jobs,
    )
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
            _draft_anywhere(starts, class_capacity, c, o, MOVE, worth)


def _draft_anywhere(starts: Starts, class_capacity: _ClassCapacity, c: int, option: int, kind: int, worth: int) -> None:
    """Jobs that start do so on nodes that the static masks allow, as far as there is room for each alone."""
    options = class_capacity.state.problem.options
    room, bundles = class_capacity.of(option), int(options.bundles[option])
    fit = min(len(starts.job_groups[c].jobs), sum(room.values()) // bundles)
    if fit:
        most = {k: min(count, fit * bundles) for k, count in room.items()}
        starts.add(c, option, kind, worth, int(options.total_milli[option]), fit, most)


class _ClassCapacity:
    """How many bundles of an option each class of nodes could take, worked out once an option."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._cache: dict[int, dict[int, int]] = {}

    def of(self, option: int) -> dict[int, int]:
        """Return node class -> bundles, classes without room left out."""
        if option not in self._cache:
            problem = self.state.problem
            nodes, per_node = bundles_per_node(self.state, option)
            room = np.zeros(int(problem.node_class.max()) + 1, dtype=np.int64)
            np.add.at(room, problem.node_class[nodes], per_node)
            self._cache[option] = {k: int(room[k]) for k in np.flatnonzero(room).tolist()}
        return self._cache[option]
