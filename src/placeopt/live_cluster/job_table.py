"""The jobs of a live cluster as rows: jobs are added at the end, removed anywhere, and keep their order."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placeopt.model import Job, Policy
from placeopt.problem import BoolArray, IntArray
from placeopt.problem.classes import class_key, job_classes

NUMBER, ARRIVAL, PRIORITY = range(3)


class JobTable:
    """
    A row per job; rows of removed jobs stay empty until they are the greater part.

    Classes of jobs are numbered as they appear and keep their number while they have jobs; ``members`` has one job of
    each. ``problem.compile`` numbers them in the order of the jobs there are: ``in_order`` translates.
    """

    def __init__(self, jobs: tuple[Job, ...], members: list[Job], job_class: IntArray, policy: Policy) -> None:
        self._policy = policy
        self._row = {job.id: row for row, job in enumerate(jobs)}
        self._columns: IntArray = np.empty((3, max(len(jobs), 16)), dtype=np.int64)
        self._there: BoolArray = np.zeros(self._columns.shape[1], dtype=bool)
        self._end = len(jobs)
        self.removals = 0
        """How many jobs were removed so far: while it stays the same, so does every job's position."""
        self._columns[NUMBER, : len(jobs)] = job_class
        self._columns[ARRIVAL, : len(jobs)] = [job.arrival_ms for job in jobs]
        self._columns[PRIORITY, : len(jobs)] = [job.priority for job in jobs]
        self._there[: len(jobs)] = True
        self.members = list(members)
        self._numbers = {class_key(job, policy): k for k, job in enumerate(members)}
        self._count: list[int] = np.bincount(job_class, minlength=len(members)).tolist()

    @classmethod
    def of(cls, jobs: Iterable[Job], policy: Policy) -> JobTable:
        """Make the table of some jobs."""
        listed = tuple(jobs)
        return cls(listed, *job_classes(listed, policy), policy)

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self._row)

    @property
    def count(self) -> IntArray:
        """Shape (len(members),): jobs of each class."""
        return np.array(self._count, dtype=np.int64)

    def number(self, job_id: str) -> int:
        """Return the number of a job's class."""
        return int(self._columns[NUMBER, self._row[job_id]])

    @property
    def mostly_empty(self) -> bool:
        """Whether most classes have no jobs any more, so that all should be numbered again."""
        used = sum(count > 0 for count in self._count)
        return len(self.members) > 2 * used + 64

    def classes_of(self, jobs: Iterable[Job]) -> list[int]:
        """Return the number of each job's class; classes that are new get theirs."""
        numbers = []
        for job in jobs:
            number = self._numbers.setdefault(class_key(job, self._policy), len(self.members))
            if number == len(self.members):
                self.members.append(job)
                self._count.append(0)
            numbers.append(number)
        return numbers

    def forget_classes(self, known: int) -> None:
        """Drop the classes from number ``known`` on, which have no jobs."""
        for job in self.members[known:]:
            del self._numbers[class_key(job, self._policy)]
        del self.members[known:], self._count[known:]

    def add(self, job: Job, number: int) -> None:
        """Add a job of class ``number`` at the end."""
        self._count[number] += 1
        if self._end == self._columns.shape[1]:
            self._make_room()
        self._columns[:, self._end] = number, job.arrival_ms, job.priority
        self._there[self._end] = True
        self._row[job.id] = self._end
        self._end += 1

    def remove(self, job_id: str) -> None:
        """Remove a job."""
        row = self._row.pop(job_id)
        self.removals += 1
        self._there[row] = False
        self._count[int(self._columns[NUMBER, row])] -= 1

    def _make_room(self) -> None:
        """Drop empty rows, and double the table if that is not enough."""
        rows = np.flatnonzero(self._there[: self._end])
        size = max(16, 2 * len(rows))
        columns, there = np.empty((3, size), dtype=np.int64), np.zeros(size, dtype=bool)
        columns[:, : len(rows)], there[: len(rows)] = self._columns[:, rows], True
        self._columns, self._there, self._end = columns, there, len(rows)
        self._row = {job_id: row for row, job_id in enumerate(self._row)}  # in the order of rows, as they came

    def columns(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return class number, arrival and priority of every job, in order."""
        number, arrival, priority = self._columns[:, : self._end][:, self._there[: self._end]]
        return number, arrival, priority

    def positions(self, job_ids: Iterable[str]) -> list[int]:
        """Return where jobs stand in the order."""
        position = np.cumsum(self._there[: self._end]) - 1
        out: list[int] = position[[self._row[job_id] for job_id in job_ids]].tolist()
        return out

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all jobs, in order."""
        return tuple(self._row)

    def in_order(self) -> tuple[IntArray, IntArray]:
        """
        Return the numbers of the classes that have jobs, in the order of their first jobs, and each job's place in it.

        Shapes (classes,) and (jobs,).
        """
        number = self._columns[NUMBER, : self._end][self._there[: self._end]]
        first = np.full(len(self.members), len(number), dtype=np.int64)
        first[number[::-1]] = np.arange(len(number))[::-1]  # the last write stays: the first job of each
        order = np.argsort(first, kind="stable")[: int((first < len(number)).sum())]
        place = np.full(len(self.members), -1, dtype=np.int64)
        place[order] = np.arange(len(order))
        return order, place[number]
