"""Bundles that are alike to distances and to the GPUs of a node, whatever their jobs are worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.model import Split
from placeopt.problem import IntArray, State


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
    """Fold the options of all jobs that are nowhere in ``state``."""
    problem, options = state.problem, state.problem.options
    unplaced = np.array([placement is None for placement in state.placements], dtype=bool)
    waiting = np.bincount(problem.job_class[unplaced], minlength=len(problem.class_communication))
    single = problem.jobs_per_gpu == 1
    known: dict[tuple[object, ...], int] = {}
    bundle_groups: list[BundleGroup] = []
    asked = np.flatnonzero((waiting[options.job_class] > 0) & options.node_class_ok.any(axis=1))
    numbers = np.full(len(asked), -1, dtype=np.int64)
    for i, o in enumerate(asked.tolist()):
        gpus = int(options.gpus[o] * options.bundle_workers[o])
        if not gpus:
            continue
        communication = problem.class_communication[options.job_class[o]]
        talks = not communication.edges and int(options.workers[o] * options.gpus[o]) > 1
        bundle_group = BundleGroup(
            option=o,
            bundles=int(options.bundles[o]),
            gpus=gpus,
            milli=1000 if single else int(options.milli[o]),
            per_node=min(int(options.workers_per_node[o] // options.bundle_workers[o]), int(options.bundles[o])),
            weight=int(communication.weight) if talks else 0,
            splits=options.splits[o],
        )
        masks = (options.node_class_ok[o].tobytes(), options.gpu_type_ok[o].tobytes())
        key = (
            bundle_group.bundles,
            bundle_group.gpus,
            bundle_group.milli,
            bundle_group.per_node,
            bundle_group.weight,
            bundle_group.splits,
            *masks,
        )
        if key not in known:
            known[key] = len(bundle_groups)
            bundle_groups.append(bundle_group)
        numbers[i] = known[key]
    return BundleGroups(bundle_groups, asked, numbers, waiting[options.job_class[asked]])
