"""Crowds: waiting jobs that ask for the same and are worth the same, whatever else tells them apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placeopt.formulations.node_patterns.bundle_groups import BundleGroups
from placeopt.problem import IntArray, State

FINEST = 20
"""Binary digits of a price behind the point, where they fit."""


@dataclass(frozen=True, eq=False)
class JobGroups:
    """
    W ways to start, of crowds of waiting jobs: a job of the crowd runs as so many bundles of a kind.

    ``jobs`` are those of each crowd, by arrival as in the file; way i of a crowd stands for option i of every job.
    """

    jobs: tuple[IntArray, ...]
    crowd: IntArray  # (W,)
    place: IntArray  # (W,) position among the options of a job
    kind: IntArray  # (W,)
    bundles: IntArray  # (W,)
    value: IntArray  # (W,)

    @cached_property
    def scale(self) -> int:
        """Parts of a unit of value in which prices are whole numbers: as fine as sums in 64 bits allow."""
        most = np.zeros(len(self.jobs), dtype=np.int64)
        np.maximum.at(most, self.crowd, self.value)
        total = sum(m * n for m, n in zip(most.tolist(), self.size.tolist(), strict=True))
        return 1 << max(0, min(FINEST, 61 - int(total).bit_length()))

    @cached_property
    def size(self) -> IntArray:
        """Shape (crowds,): number of jobs."""
        return np.array([len(jobs) for jobs in self.jobs], dtype=np.int64)


def job_groups_of(state: State, kinds: BundleGroups) -> JobGroups:
    """Return the crowds of the jobs that are nowhere in ``state``; ways that are worth nothing are left out."""
    problem, options = state.problem, state.problem.options
    waiting = np.array([placement is None for placement in state.placements], dtype=bool)
    waiting[list(problem.running)] = False
    jobs = np.flatnonzero(waiting)
    numbers: dict[tuple[tuple[int, int, int], ...], int] = {}
    of_class = np.full(len(problem.class_communication), -1, dtype=np.int64)
    for k in np.unique(problem.job_class[jobs]).tolist():
        of_options = slice(int(problem.class_option_start[k]), int(problem.class_option_start[k + 1]))
        columns = (kinds.of_option[of_options], options.bundles[of_options], options.value[of_options])
        key = tuple(zip(*(column.tolist() for column in columns), strict=True))
        of_class[k] = numbers.setdefault(key, len(numbers))
    crowd = of_class[problem.job_class[jobs]]
    order = np.argsort(crowd, kind="stable")
    members = np.split(jobs[order], np.cumsum(np.bincount(crowd, minlength=len(numbers)))[:-1]) if numbers else []
    ways = [(c, i, *way) for key, c in numbers.items() for i, way in enumerate(key) if way[2] > 0]
    table = np.array(ways, dtype=np.int64).reshape(len(ways), 5)
    return JobGroups(tuple(members), table[:, 0], table[:, 1], table[:, 2], table[:, 3], table[:, 4])
