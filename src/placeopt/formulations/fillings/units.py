"""Units: nodes that offer the same beside what runs."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from placeopt.formulations.fillings.groups import BundleGroups, Starts
from placeopt.problem import GPU_MILLI, BoolArray, IntArray, State


@dataclass(frozen=True, eq=False)
class Units:
    """U units: states of the nodes on which anything can run. R amounts, only those that bind somewhere."""

    nodes: tuple[IntArray, ...]  # of each unit, ascending
    allowed: BoolArray  # (U, D) bundle groups that may lie there
    amounts: IntArray  # (R,) columns of a node's resources
    free: IntArray  # (U, R) what is left of them
    left: IntArray  # (U, G) thousandths left of each GPU, ascending; 0 where is none
    binding: IntArray  # (R,) number of nodes on which each binds
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
    used = _most_used(bundle_groups, masks, mask, left.sum(axis=1), wanted)
    here = np.flatnonzero(np.isin(mask, np.flatnonzero(masks.any(axis=1))))
    binding = (free < used)[here].sum(axis=0)
    amounts = np.flatnonzero(binding)
    free = np.minimum(free, used)[:, amounts]  # what a node has beyond that tells it from no other
    distinct, of_node = np.unique(np.column_stack((mask, free, left))[here], axis=0, return_inverse=True)
    of_node = of_node.reshape(-1)
    ends = 1 + len(amounts)
    return Units(
        nodes=tuple(here[of_node == u] for u in range(len(distinct))),
        allowed=masks[distinct[:, 0]],
        amounts=amounts,
        free=distinct[:, 1:ends],
        left=distinct[:, ends:],
        binding=binding[amounts],
        takes_nothing=(bundle_groups.gpus == 0) & (bundle_groups.demand[:, amounts] == 0).all(axis=1),
    )


MOST_UNITS = 512
"""
Units that programs tell apart; ours. With 60, programs are smaller, but twice as many are needed and rounding loses
more; with 1000 they take twice as long.
"""


def merged(units: Units, most: int = MOST_UNITS) -> Units:
    """
    Return no more than ``most`` units, if there are more: similar ones are one that has what each of them has.

    The group with the largest variance is divided at the mean of the quantity that varies most, until there are
    ``most`` or all units of a group are equal.
    """
    if len(units) <= most:
        return units
    quantities, nodes = np.column_stack((units.free, units.left)), units.count
    size = quantities / np.maximum(quantities.max(axis=0, initial=0), 1)
    number = count()
    heap: list[tuple[float, int, int, IntArray]] = []  # -variance, ties apart, the quantity that varies most, units

    def add(members: IntArray) -> None:
        weight = nodes[members, None]
        mean = (size[members] * weight).sum(axis=0) / weight.sum()
        variance = ((size[members] - mean) ** 2 * weight).sum(axis=0) * (np.ptp(size[members], axis=0) > 0)
        heapq.heappush(heap, (-float(variance.max()), next(number), int(variance.argmax()), members))

    _, mask = np.unique(units.allowed, axis=0, return_inverse=True)
    for m in range(int(mask.max()) + 1):
        add(np.flatnonzero(mask.reshape(-1) == m))
    while len(heap) < most and heap[0][0] < 0:
        _, _, quantity, members = heapq.heappop(heap)
        amount = size[members, quantity]
        mean = np.average(amount, weights=nodes[members])
        large = amount > np.clip(mean, amount.min(), np.nextafter(amount.max(), 0))  # both parts hold a unit
        add(members[~large])
        add(members[large])
    groups = sorted((members for *_, members in heap), key=lambda members: int(members[0]))
    return replace(
        units,
        nodes=tuple(np.sort(np.concatenate([units.nodes[u] for u in members.tolist()])) for members in groups),
        allowed=units.allowed[[members[0] for members in groups]],
        free=np.array([units.free[members].min(axis=0) for members in groups]),
        left=np.array([units.left[members].min(axis=0) for members in groups]),
    )


def _most_used(
    bundle_groups: BundleGroups, masks: BoolArray, mask: IntArray, left: IntArray, wanted: IntArray
) -> IntArray:
    """
    Shape (N, R): as much of each resource as bundles on a node could take together.

    ``left``, (N,), are shares of its GPUs; ``wanted``, (D,), bundles that jobs need.
    """
    out = np.stack([wanted[here] @ bundle_groups.demand[here] for here in masks])[mask]
    milli = bundle_groups.gpus * bundle_groups.milli
    for m, here in enumerate(masks):
        nodes, holds = np.flatnonzero(mask == m), here & (milli > 0)
        with_gpus = np.zeros((len(nodes), out.shape[1]), dtype=np.int64)
        for demand, share in zip(bundle_groups.demand[holds], milli[holds], strict=True):
            with_gpus = np.maximum(with_gpus, -(-left[nodes, None] * demand // share))
        alone = here & (milli == 0)
        out[nodes] = np.minimum(out[nodes], with_gpus + wanted[alone] @ bundle_groups.demand[alone])
    return out


def _left(state: State) -> IntArray:
    """Shape (N, G): thousandths left of each GPU of a node, ascending; 0 where is none."""
    problem, most = state.problem, state.problem.jobs_per_gpu
    if problem.shares_bind and most != 1:
        free = np.maximum(state.gpu_free_milli, 0)
        if most is not None:
            free = np.where(state.gpu_jobs < most, free, 0)
    else:
        free = GPU_MILLI * np.maximum((most or 1) - state.gpu_jobs, 0)
    size = np.diff(problem.node_gpu_start)
    left = np.zeros((problem.num_nodes, int(size.max(initial=0))), dtype=np.int64)
    index = np.arange(problem.num_gpus) - problem.node_gpu_start[problem.gpu_node]
    left[problem.gpu_node, index] = free
    left.sort(axis=1)
    return left
