"""The compiled parts of a live cluster: each is compiled again only when its input has changed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from placeopt.live_cluster.job_table import JobTable
from placeopt.model import Instance, Job, Node, Policy
from placeopt.problem import IntArray, Placement, Problem
from placeopt.problem.changes import without_fixed
from placeopt.problem.classes import classes_by_view, views
from placeopt.problem.compile import Classes, Jobs, assemble, compile_classes, may_change
from placeopt.problem.hardware import Hardware, compile_hardware
from placeopt.problem.running import find_lost

KEPT_VIEWS = 4
"""Node classes that are kept: those of the class problem and of the whole may differ, and change with the jobs."""


class Parts:
    """
    Hardware, classes of nodes, option rows and jobs, kept over changes.

    Two problems are put together from them. ``whole`` is what ``compile_problem`` makes of the snapshot.
    ``class_problem`` has one job per class, numbered for good, and nothing running: decisions for single jobs use it.
    All placements that are kept number options as it does.
    """

    def __init__(self, instance: Instance, policy: Policy) -> None:
        self.policy = policy
        self.table = JobTable.of(instance.jobs, policy)
        self.lost = find_lost(instance)
        """Running jobs on nodes and GPUs that are not listed; their stand-ins stay as long as these parts."""
        listed = None if self.lost is None else self.lost.listed
        self.hardware: Hardware = compile_hardware(self._with_lost(instance), policy, listed=listed)
        self._node_classes: dict[object, tuple[IntArray, list[int]]] = {}
        self._classes: dict[str, tuple[object, Classes]] = {}
        self._whole: tuple[Instance, Problem] | None = None
        self.placed: dict[str, Placement] = {}
        """Running placements, in options of the class problem; ``start`` and ``stop`` change it."""
        self._as_whole: dict[str, Placement] = {}  # the same in options of the last whole problem
        self._option: list[int] = []  # option of the class problem -> of the last whole problem
        self._running: tuple[object, dict[int, Placement]] = None, {}
        self._version = 0

    def start(self, job_id: str, placement: Placement) -> None:
        """Note where a job runs, in options of the class problem, instead of any former place."""
        self.placed[job_id] = placement
        self._version += 1
        if placement.option < len(self._option):
            self._as_whole[job_id] = _with_option(placement, self._option[placement.option])
        else:
            self._option = []  # a class that the last whole problem did not have: all are translated anew

    def stop(self, job_id: str) -> Placement:
        """Note that a job no longer runs, and return its placement."""
        self._version += 1
        self._as_whole.pop(job_id, None)
        return self.placed.pop(job_id)

    def replace(self, placed: dict[str, Placement]) -> None:
        """Replace the running placements by those in new numbers of nodes and GPUs."""
        self.placed, self._option = placed, []
        self._version += 1

    def nodes_changed(self, instance: Instance, before: Mapping[str, Node]) -> None:
        """
        Compile what depends on nodes that changed; ``before`` has their former records.

        A change of labels, taints or drain leaves the hardware as it is.
        """
        now = {node.id: node for node in instance.cluster.nodes if node.id in before}
        same = len(now) == len(before) and len(instance.cluster.nodes) == len(self.hardware.node_ids)
        if not same or any((now[n].machine, now[n].domain) != (b.machine, b.domain) for n, b in before.items()):
            self.hardware = compile_hardware(instance, self.policy, self.hardware.topology)
        self._clear()

    def go_back(self, hardware: Hardware) -> None:
        """Undo ``nodes_changed``: ``hardware`` was there before."""
        self.hardware = hardware
        self._clear()

    def _clear(self) -> None:
        self._node_classes.clear()
        self._classes.clear()
        self._whole = None

    def _with_lost(self, instance: Instance) -> Instance:
        if self.lost is None:
            return instance
        return instance.model_copy(update={"cluster": self.lost.instance.cluster})

    def class_problem(self, instance: Instance) -> Problem:
        """Return the problem of one job per class."""
        given, instance = instance, self._with_lost(instance)
        members = self.table.members
        numbers = np.arange(len(members))
        classes = self._compiled("classes", instance, members, numbers)
        zero = np.zeros(len(members), dtype=np.int64)
        jobs = Jobs(tuple(job.id for job in members), numbers, zero, zero)
        return assemble(instance, self.policy, self.hardware, classes, jobs, {}, given=given, lost=self.lost)

    def whole(self, instance: Instance, class_problem: Problem) -> Problem:
        """Return the problem of the snapshot ``instance``, equal to ``compile_problem(instance)``."""
        if self._whole is not None and self._whole[0] is instance:
            return self._whole[1]
        given, instance = instance, self._with_lost(instance)
        order, job_class = self.table.in_order()
        members = [self.table.members[number] for number in order]
        classes = self._compiled("whole", instance, members, order)
        _, arrival, priority = self.table.columns()
        allowed = self.policy.changes
        number: dict[str, int] = {}
        if allowed.moves_max or allowed.shrinks_max or allowed.preemptions_max:
            number = dict(zip(self.placed, self.table.positions(self.placed), strict=True))
        jobs = Jobs(self.table.ids(), job_class, arrival, priority, **may_change(instance, self.policy, number))
        running = self._running_now(_option_of(class_problem, classes, order))
        problem = assemble(instance, self.policy, self.hardware, classes, jobs, running, given=given, lost=self.lost)
        problem = without_fixed(problem)
        self._whole = (given, problem)
        return problem

    def _running_now(self, option: list[int]) -> dict[int, Placement]:
        """Return the running placements by position, in options of the whole problem; one object until that changes."""
        if option != self._option:
            self._option, self._version = option, self._version + 1
            self._as_whole = {job_id: _with_option(p, option[p.option]) for job_id, p in self.placed.items()}
        key = (self._version, self.table.removals)
        if self._running[0] != key:
            positions = self.table.positions(self._as_whole)
            self._running = key, dict(zip(positions, self._as_whole.values(), strict=True))
        return self._running[1]

    def _compiled(self, use: str, instance: Instance, members: list[Job], numbers: IntArray) -> Classes:
        """Return the classes for ``members``, whose numbers are ``numbers``; the former ones if nothing changed."""
        requests, allowed = views(members)
        seen = (requests, frozenset(allowed))
        key = (seen, tuple(numbers.tolist()))
        known = self._classes.get(use)
        if known is None or known[0] != key:
            nodes = self._node_classes.get(seen)
            if nodes is None:
                if len(self._node_classes) >= KEPT_VIEWS:
                    self._node_classes.clear()
                nodes = self._node_classes[seen] = classes_by_view(instance, requests, allowed)
            known = self._classes[use] = key, compile_classes(instance, self.policy, self.hardware, members, *nodes)
        return known[1]


def _with_option(placement: Placement, option: int) -> Placement:
    """Return the placement under another number of its option; the same object if that is the same."""
    if placement.option == option:
        return placement
    return Placement(option, placement.nodes, placement.gpus, placement.restarts)


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
