"""Bundle groups: what one bundle of a job asks of a node, whatever it is worth."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from placeopt.errors import Unsupported
from placeopt.problem import BoolArray, IntArray, Problem

CPU_ONLY = -1
"""Level of bundle groups that hold no GPU."""


@dataclass(frozen=True, eq=False)
class BundleGroups:
    """D bundle groups. Shares nest: each size divides the next larger one, so GPUs never waste room between sizes."""

    sizes: tuple[int, ...]  # thousandths of a GPU, descending; one a level
    level: IntArray  # (D,) index in ``sizes``, or CPU_ONLY
    units: IntArray  # (D,) shares of its size that a bundle holds
    demand: IntArray  # (D, R) of a bundle
    allowed: BoolArray  # (D, C) node classes on which a bundle fits while they are idle
    of_option: IntArray  # (O,) bundle group of each option's bundles

    def __len__(self) -> int:
        """D."""
        return len(self.level)


def shares_nest(problem: Problem) -> bool:
    """Return whether each share of a GPU that jobs ask for divides the next larger one, as far as shares matter."""
    options = problem.options
    if not problem.shares_bind or problem.jobs_per_gpu == 1:
        return True
    sizes = np.unique(options.milli[options.gpus > 0]).tolist()
    return all(larger % smaller == 0 for smaller, larger in pairwise(sizes))


def bundle_groups_of(problem: Problem) -> BundleGroups:
    """
    Return the bundle groups of all options.

    Where at most one job may hold a GPU every share counts as a whole one; under ``overcommit`` every job as one of
    the jobs that a GPU may hold.

    Raises
    ------
    Unsupported
        If the shares that jobs ask for do not divide one another.
    """
    options = problem.options
    share = options.milli if problem.shares_bind and problem.jobs_per_gpu != 1 else np.full(len(options), 1000)
    units = options.gpus * options.bundle_workers
    share = np.where(units > 0, share, 0)
    demand = options.demand * options.bundle_workers[:, None]
    sizes = tuple(int(size) for size in np.unique(share[share > 0])[::-1])
    if not shares_nest(problem):
        larger, smaller = next(pair for pair in pairwise(sizes) if pair[0] % pair[1])
        raise Unsupported(
            f"shares of {larger} and {smaller} thousandths of a GPU: none divides the other, so fillings of whole "
            "nodes are too many"
        )
    rows = np.column_stack((share, units, demand, options.node_class_ok))
    distinct, of_option = np.unique(rows, axis=0, return_inverse=True)
    resources = demand.shape[1]
    level = np.searchsorted(-np.array(sizes, dtype=np.int64), -distinct[:, 0])
    return BundleGroups(
        sizes=sizes,
        level=np.where(distinct[:, 1] > 0, level, CPU_ONLY),
        units=distinct[:, 1],
        demand=distinct[:, 2 : 2 + resources],
        allowed=distinct[:, 2 + resources :].astype(bool),
        of_option=of_option.reshape(-1),
    )
