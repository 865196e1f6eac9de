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
    """Kinds and, for every option that a waiting job has, its number of jobs and kind."""

    kinds: list[BundleGroup]
    option: IntArray  # (Y,) options of waiting jobs
    kind: IntArray  # (Y,) -1 where they need no GPU
    jobs: IntArray  # (Y,) waiting jobs of the option's class


def make_bundle_groups(state: State) -> BundleGroups:
    """Fold the options of all jobs that are nowhere in ``state``."""
    problem, options = state.problem, state.problem.options
    nowhere = np.array([placement is None for placement in state.placements], dtype=bool)
    waiting = np.bincount(problem.job_class[nowhere], minlength=len(problem.class_communication))
    single = problem.jobs_per_gpu == 1
    known: dict[tuple[object, ...], int] = {}
    kinds: list[BundleGroup] = []
    asked = np.flatnonzero((waiting[options.job_class] > 0) & options.node_class_ok.any(axis=1))
    numbers = np.full(len(asked), -1, dtype=np.int64)
    for i, o in enumerate(asked.tolist()):
        gpus = int(options.gpus[o] * options.bundle_workers[o])
        if not gpus:
            continue
        communication = problem.class_communication[options.job_class[o]]
        talks = not communication.edges and int(options.workers[o] * options.gpus[o]) > 1
        kind = BundleGroup(
            option=o,
            bundles=int(options.bundles[o]),
            gpus=gpus,
            milli=1000 if single else int(options.milli[o]),
            per_node=min(int(options.workers_per_node[o] // options.bundle_workers[o]), int(options.bundles[o])),
            weight=int(communication.weight) if talks else 0,
            splits=options.splits[o],
        )
        masks = (options.node_class_ok[o].tobytes(), options.gpu_type_ok[o].tobytes())
        key = (kind.bundles, kind.gpus, kind.milli, kind.per_node, kind.weight, kind.splits, *masks)
        if key not in known:
            known[key] = len(kinds)
            kinds.append(kind)
        numbers[i] = known[key]
    return BundleGroups(kinds, asked, numbers, waiting[options.job_class[asked]])
