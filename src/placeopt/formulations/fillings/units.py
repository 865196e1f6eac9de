"""Units: nodes that offer the same beside what runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.formulations.fillings.groups import WHOLE, BundleGroups, Starts
from placeopt.problem import BoolArray, IntArray, State


@dataclass(frozen=True, eq=False)
class Units:
    """U units: states of the nodes on which anything can run. R amounts, only those that bind somewhere."""

    nodes: tuple[IntArray, ...]  # of each unit, ascending
    allowed: BoolArray  # (U, D) bundle groups that may lie there
    amounts: IntArray  # (R,) columns of a node's resources
    free: IntArray  # (U, R) what is left of them
    left: IntArray  # (U, G) thousandths left of each GPU, ascending; 0 where is none
    takes_nothing: BoolArray  # (D,) bundle groups that take nothing that binds: any number fits, so their price is 0

    def __len__(self) -> int:
        """U."""
        return len(self.nodes)

    @property
    def count(self) -> IntArray:
        """Shape (U,): number of nodes."""
        return np.array([len(nodes) for nodes in self.nodes], dtype=np.int64)


def units_of(state: State, bundle_groups: BundleGroups, starts: Starts) -> Units:
    """Return the states of the nodes beside what ``state`` holds, for the bundles of ``starts``."""
    problem = state.problem
    wanted = np.zeros(len(bundle_groups), dtype=np.int64)
    np.add.at(wanted, starts.bundle_group, starts.bundles * starts.most)
    masks, of_class = np.unique(bundle_groups.allowed.T & (wanted > 0), axis=0, return_inverse=True)
    mask = of_class.reshape(-1)[problem.node_class]
    free, left = np.maximum(state.node_free, 0), _left(state)
    # what a node has beyond all that could lie there tells it from no other
    used = np.stack([wanted[here] @ bundle_groups.demand[here] for here in masks])[mask]
    amounts = np.flatnonzero((free < used).any(axis=0))
    free = np.minimum(free, used)[:, amounts]
    here = np.flatnonzero(np.isin(mask, np.flatnonzero(masks.any(axis=1))))
    distinct, of_node = np.unique(np.column_stack((mask, free, left))[here], axis=0, return_inverse=True)
    of_node = of_node.reshape(-1)
    ends = 1 + len(amounts)
    return Units(
        nodes=tuple(here[of_node == u] for u in range(len(distinct))),
        allowed=masks[distinct[:, 0]],
        amounts=amounts,
        free=distinct[:, 1:ends],
        left=distinct[:, ends:],
        takes_nothing=(bundle_groups.gpus == 0) & (bundle_groups.demand[:, amounts] == 0).all(axis=1),
    )


def _left(state: State) -> IntArray:
    """Shape (N, G): thousandths left of each GPU of a node, ascending; 0 where is none."""
    problem, most = state.problem, state.problem.jobs_per_gpu
    if problem.shares_bind and most != 1:
        free = np.maximum(state.gpu_free_milli, 0)
        if most is not None:
            free = np.where(state.gpu_jobs < most, free, 0)
    else:
        free = WHOLE * np.maximum((most or 1) - state.gpu_jobs, 0)
    size = np.diff(problem.node_gpu_start)
    left = np.zeros((problem.num_nodes, int(size.max(initial=0))), dtype=np.int64)
    index = np.arange(problem.num_gpus) - problem.node_gpu_start[problem.gpu_node]
    left[problem.gpu_node, index] = free
    left.sort(axis=1)
    return left
