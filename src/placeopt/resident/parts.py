"""The compiled parts of a resident cluster: each is made again only when what it is made of has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from placeopt.model import Instance, Job, Node, Policy
from placeopt.problem import IntArray, Placement, Problem
from placeopt.problem.classes import classes_by_view, views
from placeopt.problem.compile import Classes, Jobs, assemble, compile_classes, may_change
from placeopt.problem.hardware import Hardware, compile_hardware
from placeopt.resident.job_table import JobTable

KEPT_VIEWS = 4
"""Node classes that are kept: those of the vocabulary and of the whole may differ, and jobs that look come and go."""


class Parts:
    """
    Hardware, classes of nodes, option rows and jobs, kept over changes.

    Two problems are put together from them. ``whole`` is what ``compile_problem`` makes of the snapshot. ``vocabulary``
    has one job per class, numbered for good, and nothing running: what decisions for single jobs are made with. All
    placements that are kept name options as the vocabulary does.
    """

    def __init__(self, instance: Instance, policy: Policy) -> None:
        self.policy = policy
        self.table = JobTable.of(instance.jobs, policy)
        self.hardware: Hardware = compile_hardware(instance, policy)
        self._node_classes: dict[object, tuple[IntArray, list[int]]] = {}
        self._classes: dict[str, tuple[object, Classes]] = {}
        self._whole: tuple[Instance, Problem] | None = None
        self._renumbered: dict[str, tuple[Placement, Placement]] = {}  # job -> as kept, as in the last whole problem
        self._option: IntArray = np.zeros(0, dtype=np.int64)

    def nodes_changed(self, instance: Instance, before: Mapping[str, Node]) -> None:
        """
        Take in that nodes changed; ``before`` has the former records of those that did.

        A change of labels, taints or drain leaves the hardware as it is.
        """
        now = {node.id: node for node in instance.cluster.nodes if node.id in before}
        same = len(now) == len(before) and len(instance.cluster.nodes) == len(self.hardware.node_ids)
        if not same or any((now[n].machine, now[n].domain) != (b.machine, b.domain) for n, b in before.items()):
            self.hardware = compile_hardware(instance, self.policy, self.hardware.topology)
        self._forget()

    def go_back(self, hardware: Hardware) -> None:
        """Undo ``nodes_changed``: ``hardware`` was there before."""
        self.hardware = hardware
        self._forget()

    def _forget(self) -> None:
        self._node_classes.clear()
        self._classes.clear()
        self._whole = None

    def vocabulary(self, instance: Instance) -> Problem:
        """Return the problem of one job per class."""
        members = self.table.members
        numbers = np.arange(len(members))
        classes = self._compiled("vocabulary", instance, members, numbers)
        zero = np.zeros(len(members), dtype=np.int64)
        jobs = Jobs(tuple(job.id for job in members), numbers, zero, zero)
        return assemble(instance, self.policy, self.hardware, classes, jobs, {})

    def whole(self, instance: Instance, vocabulary: Problem, placed: Mapping[str, Placement]) -> Problem:
        """
        Return the problem of the snapshot ``instance``, equal to ``compile_problem(instance)``.

        ``placed`` has the running jobs, in order, at placements of the vocabulary.
        """
        if self._whole is not None and self._whole[0] is instance:
            return self._whole[1]
        order, job_class = self.table.in_order()
        members = [self.table.members[number] for number in order]
        classes = self._compiled("whole", instance, members, order)
        ids = self.table.ids()
        number = dict(zip(placed, self.table.positions(placed), strict=True))
        _, arrival, priority = self.table.columns()
        jobs = Jobs(ids, job_class, arrival, priority, **may_change(instance, self.policy, number))
        running = self._renumber(placed, number, _option_of(vocabulary, classes, order))
        problem = assemble(instance, self.policy, self.hardware, classes, jobs, running)
        self._whole = (instance, problem)
        return problem

    def _compiled(self, use: str, instance: Instance, members: list[Job], numbers: IntArray) -> Classes:
        """Return the classes for ``members``, whose numbers are ``numbers``; those of last time if they still hold."""
        asked, allowed = views(members)
        seen = (asked, frozenset(allowed))
        key = (seen, tuple(numbers.tolist()))
        known = self._classes.get(use)
        if known is None or known[0] != key:
            nodes = self._node_classes.get(seen)
            if nodes is None:
                if len(self._node_classes) >= KEPT_VIEWS:
                    self._node_classes.clear()
                nodes = self._node_classes[seen] = classes_by_view(instance, asked, allowed)
            known = self._classes[use] = key, compile_classes(instance, self.policy, self.hardware, members, *nodes)
        return known[1]

    def _renumber(
        self, placed: Mapping[str, Placement], number: dict[str, int], option: IntArray
    ) -> dict[int, Placement]:
        """Return the running jobs by position, at placements whose options are those of the whole problem."""
        if len(option) != len(self._option) or (option != self._option).any():
            self._renumbered, self._option = {}, option
        fresh: dict[str, tuple[Placement, Placement]] = {}
        to = option.tolist()
        for job_id, placement in placed.items():
            known = self._renumbered.get(job_id)
            if known is None or known[0] is not placement:
                same = to[placement.option] == placement.option
                known = placement, placement if same else replace(placement, option=to[placement.option])
            fresh[job_id] = known
        self._renumbered = fresh
        return {number[job_id]: placement for job_id, (_, placement) in fresh.items()}


def _option_of(vocabulary: Problem, classes: Classes, order: IntArray) -> IntArray:
    """Shape (options of the vocabulary,): the same option in ``classes``, -1 where no job has it."""
    start = vocabulary.class_option_start
    out = np.full(len(vocabulary.options), -1, dtype=np.int64)
    length = np.diff(start)[order]
    first, new = start[:-1][order], classes.class_option_start[:-1]
    within = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
    out[np.repeat(first, length) + within] = np.repeat(new, length) + within
    return out
