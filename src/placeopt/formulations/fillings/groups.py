"""What is alike: bundles that take the same of a unit, and jobs that may start in the same ways."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise

import numpy as np

from placeopt.problem import GPU_MILLI, BoolArray, IntArray, Problem, State
from placeopt.problem.classes import group_by_key


@dataclass(frozen=True, eq=False)
class BundleGroups:
    """D bundle groups: what a bundle takes, where it may lie, and whom it disturbs."""

    gpus: IntArray  # (D,)
    milli: IntArray  # (D,) of each of its GPUs
    demand: IntArray  # (D, R)
    allowed: BoolArray  # (D, C) node classes on which a bundle fits while they are idle
    profile: IntArray  # (D,) whom a bundle disturbs, -1: none, or one that is not counted
    traffic: IntArray  # (D,) between any two GPUs of a bundle; 0 where it is not counted
    of_option: IntArray  # (O,) bundle group of each option's bundles

    def __len__(self) -> int:
        """D."""
        return len(self.gpus)


def shares_nest(problem: Problem) -> bool:
    """Return whether each share of a GPU that jobs ask for divides the next larger one, as far as shares matter."""
    options = problem.options
    if not problem.shares_bind or problem.jobs_per_gpu == 1:
        return True
    return nest(np.unique(options.milli[options.gpus > 0]))


def nest(sizes: IntArray) -> bool:
    """Return whether each of some ascending sizes divides the next larger one."""
    return all(larger % smaller == 0 for smaller, larger in pairwise(sizes.tolist()))


def bundle_groups_of(
    problem: Problem, profile: IntArray | None = None, traffic: IntArray | None = None, *, demand: bool = True
) -> BundleGroups:
    """
    Return the bundle groups of all options.

    ``profile``, ``traffic``, shape (O,): whom bundles of each option disturb, and the traffic between any two GPUs of
    one; None where that does not count. ``demand``: Whether resources of nodes count. Where at most one
    job may hold a GPU every share counts as a whole one; under ``overcommit`` every job as one of the jobs that a GPU
    may hold.
    """
    options = problem.options
    gpus = options.bundle_gpus
    milli = options.milli if problem.shares_bind and problem.jobs_per_gpu != 1 else np.full(len(options), GPU_MILLI)
    takes = options.demand * options.bundle_workers[:, None] * demand
    profile = np.full(len(options), -1) if profile is None else profile
    traffic = np.zeros(len(options), dtype=np.int64) if traffic is None else np.where(gpus > 1, traffic, 0)
    rows = np.column_stack((gpus, np.where(gpus > 0, milli, 0), profile, traffic, takes, options.node_class_ok))
    distinct, of_option = np.unique(rows, axis=0, return_inverse=True)
    ends = 4 + takes.shape[1]
    gpus, milli, profile, traffic = distinct[:, :4].T
    return BundleGroups(
        gpus=gpus,
        milli=milli,
        demand=distinct[:, 4:ends],
        allowed=distinct[:, ends:].astype(bool),
        profile=profile,
        traffic=traffic,
        of_option=of_option.reshape(-1),
    )


def pays_of(problem: Problem, bundle_groups: BundleGroups, price: IntArray) -> IntArray:
    """
    Shape (O,): what all bundles of a job pay in each option, by the price of a bundle of each group, (D,).

    Nothing where the option is worth nothing: such jobs lie in no filling.
    """
    options = problem.options
    pays: IntArray = np.where(options.value > 0, options.bundles * price[bundle_groups.of_option], 0)
    return pays


@dataclass(frozen=True, eq=False)
class Starts:
    """
    W starts of groups of waiting jobs: a job of the group runs as a number of bundles of one bundle group.

    ``jobs`` are those of each job group, by arrival as in the file; ``place`` tells for which option of every job a
    start stands.
    """

    jobs: tuple[IntArray, ...]
    job_group: IntArray  # (W,)
    place: IntArray  # (W,) position among the options of a job
    bundle_group: IntArray  # (W,)
    bundles: IntArray  # (W,)
    value: IntArray  # (W,)
    cost: IntArray  # (W,) that the start has by itself, wherever its bundles lie
    pays: IntArray  # (W,) what it pays in a capacity cut

    @cached_property
    def size(self) -> IntArray:
        """Shape (job groups,): number of jobs."""
        return np.array([len(jobs) for jobs in self.jobs], dtype=np.int64)

    @cached_property
    def most(self) -> IntArray:
        """Shape (W,): limit on the jobs of each start."""
        return self.size[self.job_group]


def starts_of(
    state: State,
    bundle_groups: BundleGroups,
    cost: IntArray | None = None,
    pays: IntArray | None = None,
    *,
    worthless: bool = False,
) -> Starts:
    """
    Return the starts of the jobs that are not placed in ``state``; those that are worth nothing only if ``worthless``.

    ``cost``, shape (O,), is what a job costs in each option by itself, below 0 where it has no room; ``pays``, (O,),
    what it pays in a capacity cut; None for nothing.
    """
    problem, options = state.problem, state.problem.options
    waiting = np.array([placement is None for placement in state.placements], dtype=bool)
    waiting[list(problem.running)] = False
    jobs = np.flatnonzero(waiting)
    nothing = np.zeros(len(options), dtype=np.int64)
    cost, pays = (nothing if amount is None else amount for amount in (cost, pays))
    able = (worthless | (options.value > 0)) & (cost >= 0) & bundle_groups.allowed[bundle_groups.of_option].any(axis=1)
    table = np.stack([bundle_groups.of_option, options.bundles, options.value, cost, pays, able], axis=1)
    ways = list(map(tuple, table.tolist()))
    classes, of_job = np.unique(problem.job_class[jobs], return_inverse=True)
    begin, end = problem.class_option_start[classes].tolist(), problem.class_option_start[classes + 1].tolist()
    keys = [tuple(ways[a:b]) for a, b in zip(begin, end, strict=True)]
    group_of_class, first = group_by_key(keys)
    job_group = np.array(group_of_class, dtype=np.int64)[of_job]
    order = np.argsort(job_group, kind="stable")
    members = np.split(jobs[order], np.cumsum(np.bincount(job_group, minlength=len(first)))[:-1]) if first else []
    starts = [(c, i, *way[:-1]) for c, k in enumerate(first) for i, way in enumerate(keys[k]) if way[-1]]
    columns = np.array(starts, dtype=np.int64).reshape(len(starts), len(fields(Starts)) - 1).T
    return Starts(tuple(members), *columns)
