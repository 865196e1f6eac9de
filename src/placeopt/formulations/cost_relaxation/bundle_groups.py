"""Bundles that are alike to distances and to the GPUs of a node, whatever their jobs are worth."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placeopt.model import Split
from placeopt.problem import IntArray, Problem, State
from placeopt.problem.classes import group_by_key, startable_options


@dataclass(frozen=True)
class BundleGroup:
    """Bundles of ``gpus`` GPUs, ``milli`` of each; a job has ``bundles`` of them, at most ``per_node`` on a node."""

    option: int
    """One of the options, for masks."""
    bundles: int
    gpus: int
    milli: int
    per_node: int
    weight: int
    """Of the traffic between any two of the job's GPUs; 0 where it has none, or where a graph states it."""
    splits: tuple[Split, ...]

    @property
    def total(self) -> int:
        """GPUs of the whole job."""
        return self.bundles * self.gpus


@dataclass(frozen=True)
class BundleGroups:
    """Kinds and, for every option that a waiting job has, its number of jobs and bundle group."""

    bundle_groups: list[BundleGroup]
    option: IntArray  # (Y,) options of waiting jobs
    bundle_group: IntArray  # (Y,) -1 where they need no GPU
    jobs: IntArray  # (Y,) waiting jobs of the option's class


def make_bundle_groups(state: State) -> BundleGroups:
    """Fold the options of all jobs that are not placed in ``state``."""
    options = state.problem.options
    option, jobs = startable_options(state)
    with_gpus = np.flatnonzero((options.gpus * options.bundle_workers)[option] > 0)
    members = [_bundle_group(state.problem, o) for o in option[with_gpus].tolist()]
    group, first = group_by_key(
        (
            replace(one, option=-1),
            options.node_class_ok[one.option].tobytes(),
            options.gpu_type_ok[one.option].tobytes(),
        )
        for one in members
    )
    numbers = np.full(len(option), -1, dtype=np.int64)
    numbers[with_gpus] = group
    return BundleGroups([members[i] for i in first], option, numbers, jobs)


def _bundle_group(problem: Problem, o: int) -> BundleGroup:
    """Return what the bundles of option ``o`` are to distances and GPUs."""
    options, communication = problem.options, problem.class_communication[problem.options.job_class[o]]
    has_traffic = not communication.edges and int(options.workers[o] * options.gpus[o]) > 1
    return BundleGroup(
        option=o,
        bundles=int(options.bundles[o]),
        gpus=int(options.gpus[o] * options.bundle_workers[o]),
        milli=1000 if problem.jobs_per_gpu == 1 else int(options.milli[o]),
        per_node=min(int(options.workers_per_node[o] // options.bundle_workers[o]), int(options.bundles[o])),
        weight=int(communication.weight) if has_traffic else 0,
        splits=options.splits[o],
    )
