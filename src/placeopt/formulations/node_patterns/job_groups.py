"""Job groups: waiting jobs that ask for the same and are worth the same, whatever else tells them apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placeopt.formulations.node_patterns.groups import BundleGroups
from placeopt.problem import IntArray, State

FINEST = 20
"""Binary digits of a price behind the point, where they fit."""


@dataclass(frozen=True, eq=False)
class JobGroups:
    """
    W starts to start, of job groups of waiting jobs: a job of the job group runs as so many bundles of a bundle group.

    ``jobs`` are those of each job group, by arrival as in the file; start i of a job group stands for option i of every
    job.
    """

    jobs: tuple[IntArray, ...]
    job_group: IntArray  # (W,)
    place: IntArray  # (W,) position among the options of a job
    bundle_group: IntArray  # (W,)
    bundles: IntArray  # (W,)
    value: IntArray  # (W,)

    @cached_property
    def scale(self) -> int:
        """Parts of a unit of value in which prices are whole numbers: as fine as sums in 64 bits allow."""
        most = np.zeros(len(self.jobs), dtype=np.int64)
        np.maximum.at(most, self.job_group, self.value)
        total = sum(m * n for m, n in zip(most.tolist(), self.size.tolist(), strict=True))
        return 1 << max(0, min(FINEST, 61 - int(total).bit_length()))

    @cached_property
    def size(self) -> IntArray:
        """Shape (job groups,): number of jobs."""
        return np.array([len(jobs) for jobs in self.jobs], dtype=np.int64)


def job_groups_of(state: State, bundle_groups: BundleGroups) -> JobGroups:
    """
    Return the job groups of the jobs that are not placed in ``state``; starts that are worth nothing are left out.
    """
    problem, options = state.problem, state.problem.options
    waiting = np.array([placement is None for placement in state.placements], dtype=bool)
    waiting[list(problem.running)] = False
    jobs = np.flatnonzero(waiting)
    numbers: dict[tuple[tuple[int, int, int], ...], int] = {}
    of_class = np.full(len(problem.class_communication), -1, dtype=np.int64)
    for k in np.unique(problem.job_class[jobs]).tolist():
        of_options = slice(int(problem.class_option_start[k]), int(problem.class_option_start[k + 1]))
        columns = (bundle_groups.of_option[of_options], options.bundles[of_options], options.value[of_options])
        key = tuple(zip(*(column.tolist() for column in columns), strict=True))
        of_class[k] = numbers.setdefault(key, len(numbers))
    job_group = of_class[problem.job_class[jobs]]
    order = np.argsort(job_group, kind="stable")
    members = np.split(jobs[order], np.cumsum(np.bincount(job_group, minlength=len(numbers)))[:-1]) if numbers else []
    starts = [(c, i, *start) for key, c in numbers.items() for i, start in enumerate(key) if start[2] > 0]
    table = np.array(starts, dtype=np.int64).reshape(len(starts), 5)
    return JobGroups(tuple(members), table[:, 0], table[:, 1], table[:, 2], table[:, 3], table[:, 4])
