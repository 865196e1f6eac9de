"""Bundles of a gang that lie on one node together, where their traffic costs less so."""

from __future__ import annotations

import numpy as np

from placeopt.formulations.node_patterns.groups import MergedBundles
from placeopt.problem import BoolArray, IntArray, State
from placeopt.problem.free_capacity import startable_options

MOST_TOGETHER = 8
"""Bundles put together at most: 2, 4 and 8 of them are tried."""


def merged_bundles_of(state: State) -> MergedBundles:
    """
    Return the ways to put 2, 4 or 8 bundles of each waiting gang onto each of its nodes.

    Only of gangs whose GPUs all communicate alike, and only so many as divide its bundles.
    """
    problem, options = state.problem, state.problem.options
    weight = np.array([0 if c.edges else int(c.weight) for c in problem.class_communication], dtype=np.int64)
    option, _ = startable_options(state)
    gangs = option[(options.bundles[option] > 1) & (weight[options.job_class[option]] > 0)]
    gangs = gangs[(options.bundle_workers[gangs] == 1) & (options.gpus[gangs] > 0)]
    gangs = gangs[np.array([not options.splits[o] for o in gangs.tolist()], dtype=bool)]
    _, first = np.unique(problem.node_class, return_index=True)  # nodes of a class are alike while they are idle
    gpus, capacity = np.diff(problem.node_gpu_start)[first], problem.node_capacity[first]
    parts: list[tuple[IntArray, IntArray, BoolArray]] = []
    together = 2
    while together <= MOST_TOGETHER:
        some = gangs[(options.bundles[gangs] % together == 0) & (options.workers_per_node[gangs] >= together)]
        fits = options.node_class_ok[some] & (together * options.gpus[some][:, None] <= gpus)
        fits &= (together * options.demand[some][:, None, :] <= capacity).all(axis=2)
        some, fits = some[fits.any(axis=1)], fits[fits.any(axis=1)]
        parts.append((some, np.full(len(some), together, dtype=np.int64), fits))
        together *= 2
    return MergedBundles(*(np.concatenate(column) for column in zip(*parts, strict=True)))
