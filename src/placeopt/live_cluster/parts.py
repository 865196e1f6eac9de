"""The compiled parts of a live cluster, jobs as rows among them: compiled again only when their input changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from placeopt.model import Hold, Instance, Job, Node, Policy
from placeopt.model.base import trusted
from placeopt.model.job import RECORDS
from placeopt.problem import BoolArray, IntArray, Placement, Problem
from placeopt.problem.changes import without_fixed
from placeopt.problem.classes import choices_of, class_key, job_classes, label_keys, node_classes
from placeopt.problem.compile import assemble, compile_classes, may_change
from placeopt.problem.hardware import Hardware, compile_hardware, find_lost, with_holds, with_lost
from placeopt.problem.problem import Classes, Jobs

NUMBER, ARRIVAL, PRIORITY, WAITS = range(4)
COLUMNS = 4


class JobTable:
    """
    A row per job; rows of removed jobs stay empty until they are the greater part.

    Classes of jobs are numbered as they appear and keep their number while they have jobs; ``members`` has one job of
    each. ``problem.compile`` numbers them in the order of the jobs there are: ``in_order`` translates.
    """

    def __init__(
        self,
        jobs: tuple[Job, ...],
        members: list[Job],
        job_class: IntArray,
        policy: Policy,
        holds: Iterable[Hold],
        now_ms: int,
    ) -> None:
        self._policy, self._holds, self._now_ms = policy, holds, now_ms
        self._other_priorities = False
        self._row = {job.id: row for row, job in enumerate(jobs)}
        self._columns: IntArray = np.empty((COLUMNS, max(len(jobs), 16)), dtype=np.int64)
        self._there: BoolArray = np.zeros(self._columns.shape[1], dtype=bool)
        self._end = len(jobs)
        self._columns[NUMBER, : len(jobs)] = job_class
        self._columns[ARRIVAL, : len(jobs)] = [job.arrival_ms for job in jobs]
        self._columns[PRIORITY, : len(jobs)] = [job.priority for job in jobs]
        self._columns[WAITS, : len(jobs)] = True
        self._there[: len(jobs)] = True
        self.members = list(members)
        self._label_keys = label_keys(members)
        self._numbers = {self._key(job): k for k, job in enumerate(members)}
        self._count: list[int] = np.bincount(job_class, minlength=len(members)).tolist()
        self._used = len(members)
        """Number of classes that have jobs."""

    @classmethod
    def of(cls, jobs: Iterable[Job], policy: Policy, holds: Iterable[Hold], now_ms: int) -> JobTable:
        """Make the table of some jobs; ``holds`` as in ``job_classes``."""
        listed = tuple(jobs)
        return cls(listed, *job_classes(listed, policy, holds, now_ms), policy, holds, now_ms)

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self._row)

    @property
    def count(self) -> IntArray:
        """Shape (len(members),): jobs of each class."""
        return np.array(self._count, dtype=np.int64)

    @property
    def has_relations(self) -> bool:
        """Whether any job has relations to others."""
        return any(job.relations and count for job, count in zip(self.members, self._count, strict=True))

    def number(self, job_id: str) -> int:
        """Return the number of a job's class."""
        return int(self._columns[NUMBER, self._row[job_id]])

    @property
    def is_stale(self) -> bool:
        """Whether jobs have to be told apart anew, or most classes have no jobs any more."""
        return self._other_priorities or len(self.members) > 2 * self._used + 64

    def tells_apart(self, jobs: Iterable[Job]) -> bool:
        """Return whether classes tell apart all that relations of more jobs look at."""
        return set(label_keys(jobs)) <= set(self._label_keys)

    def classes_of(self, jobs: Iterable[Job]) -> list[int]:
        """Return the number of each job's class; classes that are new get theirs."""
        numbers = []
        for job in jobs:
            number = self._numbers.setdefault(self._key(job), len(self.members))
            if number == len(self.members):
                self.members.append(job)
                self._count.append(0)
            numbers.append(number)
        return numbers

    def _key(self, job: Job) -> tuple[object, ...]:
        return class_key(job, self._policy, self._holds, self._now_ms, self._label_keys)

    def forget_classes(self, known: int) -> None:
        """Drop the classes from number ``known`` on, which have no jobs."""
        for job in self.members[known:]:
            del self._numbers[self._key(job)]
        del self.members[known:], self._count[known:]

    def add(self, job: Job, number: int) -> None:
        """Add a job of class ``number`` at the end."""
        self._used += not self._count[number]
        self._count[number] += 1
        if self._end == self._columns.shape[1]:
            self._make_room()
        self._columns[:, self._end] = number, job.arrival_ms, job.priority, True
        self._there[self._end] = True
        self._row[job.id] = self._end
        self._end += 1

    def shared(self, job: Job, number: int) -> Job:
        """Return a job of class ``number`` that holds the records of its class: its own take three times as much."""
        member = self.members[number]
        return (
            job
            if job is member
            else trusted(Job, {**job.__dict__, **{name: getattr(member, name) for name in RECORDS}})
        )

    def remove(self, job_id: str) -> None:
        """Remove a job."""
        row = self._row.pop(job_id)
        self._there[row] = False
        number = int(self._columns[NUMBER, row])
        self._count[number] -= 1
        self._used -= not self._count[number]

    def set_waiting(self, job_id: str, *, waits: bool) -> None:
        """Note that a job starts, or waits again; new ones wait."""
        self._columns[WAITS, self._row[job_id]] = waits

    def prioritise(self, job_id: str, priority: int) -> None:
        """Set the priority of a job, which may decide whether it can take of holds."""
        self._other_priorities |= any(hold.priority is not None for hold in self._holds)
        self._columns[PRIORITY, self._row[job_id]] = priority

    def _make_room(self) -> None:
        """Drop empty rows, and double the table if that is not enough."""
        rows = np.flatnonzero(self._there[: self._end])
        size = max(16, 2 * len(rows))
        columns, there = np.empty((COLUMNS, size), dtype=np.int64), np.zeros(size, dtype=bool)
        columns[:, : len(rows)], there[: len(rows)] = self._columns[:, rows], True
        self._columns, self._there, self._end = columns, there, len(rows)
        self._row = {job_id: row for row, job_id in enumerate(self._row)}  # in the order of rows, as they came

    def columns(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return class number, arrival and priority of every job, in order."""
        number, arrival, priority, _ = self._columns[:, : self._end][:, self._there[: self._end]]
        return number, arrival, priority

    def positions(self, job_ids: Iterable[str]) -> list[int]:
        """Return where jobs stand in the order."""
        position = np.cumsum(self._there[: self._end]) - 1
        out: list[int] = position[[self._row[job_id] for job_id in job_ids]].tolist()
        return out

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all jobs, in order."""
        return tuple(self._row)

    def waiting_columns(self) -> tuple[tuple[str, ...], IntArray, IntArray, IntArray]:
        """Return the ids of the waiting jobs, in order, and class number, arrival and priority of each."""
        there = self._there[: self._end]
        columns = self._columns[:, : self._end][:, there]
        waits = np.flatnonzero(columns[WAITS])
        number, arrival, priority, _ = columns[:, waits]
        return tuple(map(self.ids().__getitem__, waits.tolist())), number, arrival, priority

    def in_order(self) -> tuple[IntArray, IntArray]:
        """
        Shapes (classes,) and (jobs,): the classes in use, by their first jobs, and each job's position among them.
        """
        number = self._columns[NUMBER, : self._end][self._there[: self._end]]
        first = np.full(len(self.members), len(number), dtype=np.int64)
        first[number[::-1]] = np.arange(len(number))[::-1]  # the last write stays: the first job of each
        order = np.argsort(first, kind="stable")[: int((first < len(number)).sum())]
        place = np.full(len(self.members), -1, dtype=np.int64)
        place[order] = np.arange(len(order))
        return order, place[number]


class Parts:
    """
    Hardware, classes of nodes, option rows and jobs, kept over changes.

    Two problems are composed from them. ``whole`` is what ``compile_problem`` makes of the snapshot. ``class_problem``
    has one job per class, numbered for good, and nothing running: decisions for single jobs use it. All placements that
    are kept number options as it does.
    """

    def __init__(self, instance: Instance, policy: Policy) -> None:
        self.policy = policy
        self.table = JobTable.of(instance.jobs, policy, instance.hold_kinds.values(), instance.now_ms)
        self.lost = find_lost(instance)
        """Running jobs on nodes and GPUs that are not listed; their stand-ins stay as long as these parts."""
        self.hardware: Hardware = compile_hardware(with_lost(instance, self.lost), policy)
        self._node_classes: dict[str, tuple[object, tuple[IntArray, list[int]]]] = {}
        self._classes: dict[str, tuple[object, Classes]] = {}
        self._whole: tuple[Instance, Problem] | None = None
        self.placed: dict[str, Placement] = {}
        """Running placements, in options of the class problem, as far as they are known in present numbers of nodes."""
        self._as_whole: dict[str, Placement] = {}  # the same in options of the last whole problem
        self._option: list[int] = []  # option of the class problem -> of the last whole problem

    def start(self, job_id: str, placement: Placement) -> None:
        """Note where a job runs, in options of the class problem, instead of any former place."""
        self.placed[job_id] = placement
        self.table.set_waiting(job_id, waits=False)
        if placement.option < len(self._option):
            self._as_whole[job_id] = _with_option(placement, self._option[placement.option])
        else:
            self._option = []  # a class that the last whole problem did not have: all are translated again

    def stop(self, job_id: str) -> None:
        """Note that a job no longer runs."""
        self.table.set_waiting(job_id, waits=True)
        self._as_whole.pop(job_id, None)
        self.placed.pop(job_id, None)

    def replace(self, placed: dict[str, Placement]) -> None:
        """Replace the running placements by those that are known in new numbers of nodes and GPUs."""
        self.placed, self._option = placed, []

    def hardware_changed(self, instance: Instance, before: Mapping[str, Node], *, other_holds: bool) -> None:
        """Compile what depends on nodes that changed, and on holds; ``before`` has the former records of nodes."""
        # A change of labels, taints or drain leaves the hardware as it is.
        now = {node.id: node for node in instance.cluster.nodes if node.id in before}
        instance = with_lost(instance, self.lost)
        same = len(now) == len(before) and len(instance.cluster.nodes) == len(self.hardware.node_ids)
        if not same or any((now[n].machine, now[n].domain) != (b.machine, b.domain) for n, b in before.items()):
            self.hardware = compile_hardware(instance, self.policy, self.hardware.topology)
        elif other_holds:
            self.hardware = with_holds(self.hardware, instance)
        self._node_classes.clear()
        self._classes.clear()
        self._whole = None

    def class_problem(self, instance: Instance) -> Problem:
        """Return the problem of one job per class."""
        given, instance = instance, with_lost(instance, self.lost)
        members = self.table.members
        numbers = np.arange(len(members))
        classes = self._compiled("classes", instance, members, numbers)
        zero = np.zeros(len(members), dtype=np.int64)
        none = frozenset[int]()
        jobs = Jobs(tuple(job.id for job in members), numbers, zero, zero, none, none, none)
        return assemble(instance, self.policy, self.hardware, classes, jobs, {}, given=given)

    def whole(self, instance: Instance, class_problem: Problem) -> Problem:
        """Return the problem of the snapshot, equal to ``compile_problem(instance)``; all places are known."""
        if self._whole is not None and self._whole[0] is instance:
            return self._whole[1]
        given, instance = instance, with_lost(instance, self.lost)
        order, job_class = self.table.in_order()
        members = [self.table.members[number] for number in order]
        classes = self._compiled("whole", instance, members, order)
        _, arrival, priority = self.table.columns()
        allowed = self.policy.changes
        number: dict[str, int] = {}
        if allowed.moves_max or allowed.shrinks_max or allowed.preemptions_max:
            number = dict(zip(self.placed, self.table.positions(self.placed), strict=True))
        jobs = Jobs(self.table.ids(), job_class, arrival, priority, **may_change(instance, self.policy, number))
        option = _option_of(class_problem, classes, order)
        if option != self._option:
            self._option = option
            self._as_whole = {job_id: _with_option(p, option[p.option]) for job_id, p in self.placed.items()}
        running = dict(zip(self.table.positions(self._as_whole), self._as_whole.values(), strict=True))
        problem = assemble(instance, self.policy, self.hardware, classes, jobs, running, given=given)
        problem = without_fixed(problem)
        self._whole = (given, problem)
        return problem

    def _compiled(self, use: str, instance: Instance, members: list[Job], numbers: IntArray) -> Classes:
        """Return the classes for ``members``, whose numbers are ``numbers``; the former ones if nothing changed."""
        seen = frozenset(map(choices_of, members))
        key = (seen, tuple(numbers.tolist()))
        known = self._classes.get(use)
        if known is None or known[0] != key:
            nodes = next((nodes for former, nodes in self._node_classes.values() if former == seen), None)
            nodes = nodes or node_classes(instance, members, self.hardware.node_flavor.tolist())
            self._node_classes[use] = seen, nodes
            known = self._classes[use] = key, compile_classes(instance, self.policy, self.hardware, members, *nodes)
        return known[1]


def _with_option(placement: Placement, option: int) -> Placement:
    """Return the placement under another number of its option; the same object if that is the same."""
    if placement.option == option:
        return placement
    return replace(placement, option=option)


def _option_of(class_problem: Problem, classes: Classes, order: IntArray) -> list[int]:
    """Return for every option of the class problem the same option in ``classes``, -1 where no job has it."""
    start = class_problem.class_option_start
    out = np.full(len(class_problem.options), -1, dtype=np.int64)
    length = np.diff(start)[order]
    first, new = start[:-1][order], classes.class_option_start[:-1]
    within = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
    out[np.repeat(first, length) + within] = np.repeat(new, length) + within
    numbers: list[int] = out.tolist()
    return numbers
