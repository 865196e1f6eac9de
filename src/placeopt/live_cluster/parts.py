"""The compiled parts of a live cluster: hardware, and classes of jobs and nodes, kept while their input stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from placeopt.edits.records import changed
from placeopt.model import Hold, Instance, Job, Policy
from placeopt.model.base import trusted
from placeopt.model.job import RECORDS
from placeopt.problem import IntArray, Placement, Problem
from placeopt.problem.changes import without_fixed
from placeopt.problem.classes import choices_of, class_key, job_classes, label_keys, node_classes
from placeopt.problem.compile import assemble, classes_among, compile_classes, may_change, options_among
from placeopt.problem.hardware import Hardware, compile_hardware, find_lost, node_domains, with_holds, with_lost
from placeopt.problem.problem import Jobs

ROW = ("number", "arrival_ms", "priority")
"""What is kept of each job: the number of its class, and what the job states."""


class JobClasses:
    """
    The class of every job.

    Classes are numbered as they appear and keep their number while they have jobs; ``members`` has one job of each.
    ``problem.compile`` numbers them in the order of the jobs there are: `Parts.whole` translates.
    """

    def __init__(self, jobs: Sequence[Job], policy: Policy, holds: Iterable[Hold], now_ms: int) -> None:
        """``holds``: As in ``job_classes``."""
        self._policy, self._holds, self._now_ms = policy, tuple(holds), now_ms
        self._other_priorities = False
        members, job_class = job_classes(tuple(jobs), policy, self._holds, now_ms)
        self.members = list(members)
        self.rows: dict[str, tuple[int, int, int]] = {
            job.id: (k, job.arrival_ms, job.priority) for job, k in zip(jobs, job_class.tolist(), strict=True)
        }
        """What ``ROW`` names of each job, in their order."""
        self._label_keys = label_keys(members)
        self._numbers = {self._key(job): k for k, job in enumerate(members)}
        self._count: list[int] = np.bincount(job_class, minlength=len(members)).tolist()
        self._related = [k for k, job in enumerate(members) if job.relations]

    @property
    def count(self) -> IntArray:
        """Shape (len(members),): jobs of each class."""
        return np.array(self._count, dtype=np.int64)

    @property
    def has_relations(self) -> bool:
        """Whether any job has relations to others."""
        return any(self._count[number] for number in self._related)

    @property
    def is_stale(self) -> bool:
        """Whether jobs have to be told apart anew, or most classes have no jobs any more."""
        used = len(self._count) - self._count.count(0)
        return self._other_priorities or len(self._count) > 2 * used + 64

    def tells_apart(self, jobs: Iterable[Job]) -> bool:
        """Return whether classes tell apart all that relations of more jobs look at."""
        return set(label_keys(jobs)) <= set(self._label_keys)

    def of(self, jobs: Iterable[Job]) -> list[int]:
        """Return the number of each job's class; classes that are new get theirs."""
        numbers = []
        for job in jobs:
            number = self._numbers.setdefault(self._key(job), len(self.members))
            if number == len(self.members):
                self.members.append(job)
                self._count.append(0)
                if job.relations:
                    self._related.append(number)
            numbers.append(number)
        return numbers

    def _key(self, job: Job) -> tuple[object, ...]:
        return class_key(job, self._policy, self._holds, self._now_ms, self._label_keys)

    def forget(self, known: int) -> None:
        """Drop the classes from number ``known`` on, which have no jobs."""
        for job in self.members[known:]:
            del self._numbers[self._key(job)]
        del self.members[known:], self._count[known:]

    def add(self, job: Job, number: int) -> Job:
        """Add a job of class ``number``; return it with the records of its class: its own take three times as much."""
        self._count[number] += 1
        self.rows[job.id] = number, job.arrival_ms, job.priority
        member = self.members[number]
        if job is member:
            return job
        return trusted(Job, {**job.__dict__, **{name: getattr(member, name) for name in RECORDS}})

    def remove(self, job_id: str) -> None:
        """Remove a job."""
        self._count[self.rows.pop(job_id)[0]] -= 1

    def prioritise(self, job_id: str, priority: int) -> None:
        """Set the priority of a job, which may decide whether it can take of holds."""
        self._other_priorities |= any(hold.priority is not None for hold in self._holds)
        number, arrival, _ = self.rows[job_id]
        self.rows[job_id] = number, arrival, priority

    def number(self, job_id: str) -> int:
        """Return the number of a job's class."""
        return self.rows[job_id][0]

    def columns(self, job_ids: Iterable[str]) -> tuple[IntArray, IntArray, IntArray]:
        """Return the numbers of the classes of some jobs, their arrivals and their priorities."""
        rows = np.fromiter(chain.from_iterable(map(self.rows.__getitem__, job_ids)), dtype=np.int64)
        number, arrival, priority = np.ascontiguousarray(rows.reshape(-1, len(ROW)).T)
        return number, arrival, priority


class Parts:
    """
    Hardware, classes of nodes and classes of jobs, kept over changes.

    Two problems are composed from them. ``class_problem`` has one job per class, numbered for good, and nothing
    running: decisions for single jobs use it. ``problem`` is what ``compile_problem`` makes of the snapshot, or of some
    of its jobs, but for classes of nodes that only other jobs tell apart.
    """

    def __init__(self, instance: Instance, policy: Policy) -> None:
        self.policy = policy
        self.classes = JobClasses(instance.jobs, policy, instance.hold_kinds.values(), instance.now_ms)
        self.lost = find_lost(instance)
        """Running jobs on nodes and GPUs that are not listed; their stand-ins stay as long as these parts."""
        self.hardware: Hardware = compile_hardware(with_lost(instance, self.lost), policy)
        self._node_classes: tuple[object, tuple[IntArray, list[int]]] | None = None

    def nodes_changed(self, instance: Instance, *, other_nodes: bool, other_holds: bool) -> None:
        """Take nodes of other labels, taints or drain, or others (``other_nodes``), or other holds."""
        if other_nodes:
            self.hardware = compile_hardware(instance, self.policy, self.hardware.topology)
        elif other_holds:
            self.hardware = with_holds(self.hardware, with_lost(instance, self.lost))
        self._node_classes = None

    def class_problem(self, instance: Instance) -> Problem:
        """Return the problem of one job per class."""
        given, instance = instance, with_lost(instance, self.lost)
        members = self.classes.members
        seen = frozenset(map(choices_of, members))
        if self._node_classes is None or self._node_classes[0] != seen:
            self._node_classes = seen, node_classes(instance, members, self.hardware.node_flavor.tolist())
        classes = compile_classes(instance, self.policy, self.hardware, members, *self._node_classes[1])
        zero, none = np.zeros(len(members), dtype=np.int64), frozenset[int]()
        jobs = Jobs(tuple(job.id for job in members), np.arange(len(members)), zero, zero, none, none, none)
        return assemble(instance, self.policy, self.hardware, classes, jobs, {}, given=given)

    def problem(
        self,
        instance: Instance,
        class_problem: Problem,
        jobs: Iterable[str],
        placed: Mapping[str, Placement],
        nodes: IntArray | None = None,
    ) -> Problem:
        """
        Return the problem of a round of the snapshot.

        ``jobs``: Ids of the jobs of ``instance``. ``placed``: Where those that run do, in options of the class problem.
        ``nodes``: The only nodes of the round, ascending; None: all.
        """
        given, instance = instance, with_lost(instance, self.lost)
        number = {job_id: j for j, job_id in enumerate(jobs)}
        job_class, arrival, priority = self.classes.columns(number)
        used, first, job_class = np.unique(job_class, return_index=True, return_inverse=True)
        order = np.argsort(first)
        job_class, chosen = np.argsort(order)[job_class.reshape(-1)], used[order]
        columns = Jobs(tuple(number), job_class, arrival, priority, **may_change(instance, self.policy, number))
        option = {row: o for o, row in enumerate(options_among(class_problem, chosen).tolist())}
        running = {number[held.job]: _with_option(placed[held.job], option) for held in instance.running}
        classes, hardware = classes_among(class_problem, chosen), self.hardware
        if nodes is not None:
            cluster = changed(instance.cluster, nodes=tuple(map(instance.cluster.nodes.__getitem__, nodes.tolist())))
            given = instance = changed(instance, cluster=cluster)
            hardware = compile_hardware(instance, self.policy, hardware.topology)
            domains = {level: node_domains(instance, level) for level in classes.split_domain}
            classes = replace(classes, node_class=classes.node_class[nodes], split_domain=domains)
        return without_fixed(assemble(instance, self.policy, hardware, classes, columns, running, given=given))


def _with_option(placement: Placement, option: Mapping[int, int]) -> Placement:
    """Return the placement under the new number of its option; the same object if that is the same."""
    number = option[placement.option]
    if placement.option == number:
        return placement
    return Placement(number, placement.nodes, placement.gpus, placement.restarts, placement.starts)
