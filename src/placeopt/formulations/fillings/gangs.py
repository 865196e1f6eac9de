"""Paths of jobs of several bundles, which lie in fillings of many units: as short as what is free allows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placeopt.formulations.cost_relaxation.cost_lower_bounds import FAR, CostLowerBounds, make_bundle_groups
from placeopt.formulations.cost_relaxation.node_classes import make_node_classes
from placeopt.problem import BoolArray, IntArray, State


def gang_paths(state: State, apart: BoolArray, check_time: Callable[[], None]) -> IntArray:
    """
    Shape (O,): length of all paths between the GPUs of a job of several bundles, at least; 0 for others, -1: no room.

    Where bundles are ``apart``, (O,), one a node, the paths inside of these are left out.

    The least over ways to divide the bundles over nodes, each node as the best one that takes as many: inside it, and
    its part of the ways to the others (`CostLowerBounds`). ``check_time`` is called now and then, and may raise.
    """
    groups, bounds = make_bundle_groups(state), CostLowerBounds(make_node_classes(state, check_time))
    path = np.zeros(len(groups.bundle_groups) + 1, dtype=np.int64)  # the last is of options without GPUs
    for number, group in enumerate(groups.bundle_groups):
        check_time()
        if group.bundles > 1 and group.weight:
            on = bounds.on_nodes(group)
            j = np.arange(on.path.shape[1])
            there = on.path - on.inside if apart[group.option] else on.path
            each = np.where(on.path < FAR, there + j * (on.lowest + on.higher)[:, None], FAR).min(axis=0, initial=FAR)
            best = np.full(group.bundles + 1, FAR, dtype=np.int64)
            best[0] = 0
            for w in range(1, group.bundles + 1):
                some = np.arange(1, min(w, len(each) - 1) + 1)
                best[w] = min(FAR, int((best[w - some] + each[some]).min(initial=FAR)))
            path[number] = best[-1] if best[-1] < FAR else -1
    out = np.zeros(len(state.problem.options), dtype=np.int64)
    out[groups.option] = path[groups.bundle_group]
    return out
