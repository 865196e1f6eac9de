"""States: nodes that offer the same to every bundle group, counted together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.formulations.node_patterns.bundle_groups import CPU_ONLY, BundleGroups
from placeopt.problem import BoolArray, IntArray, Problem, State


@dataclass(frozen=True, eq=False)
class NodeStates:
    """S states of the nodes on which anything can run."""

    nodes: tuple[IntArray, ...]  # of each state, ascending
    count: IntArray  # (S,)
    room: IntArray  # (S, levels) shares of each size that fit, if nothing else is there
    free: IntArray  # (S, R) node resources; no more than bundle groups could use together
    mask: IntArray  # (S,) row in ``allowed``
    allowed: BoolArray  # (M, D) bundle groups that may run on nodes of the state
    binding: IntArray  # (R,) number of nodes that have less of a resource than bundles could ask for

    def __len__(self) -> int:
        """S."""
        return len(self.nodes)


def node_states_of(state: State, bundle_groups: BundleGroups) -> NodeStates:
    """Return the states of the nodes beside what ``state`` holds."""
    problem = state.problem
    masks, of_class = np.unique(bundle_groups.allowed.T, axis=0, return_inverse=True)
    mask = of_class.reshape(-1)[problem.node_class]
    room = _room(state, bundle_groups)
    free = np.maximum(state.node_free, 0)
    used = np.minimum(_most_used(bundle_groups, masks, mask, room, free), _asked(problem))
    fits: BoolArray = np.asarray(masks.any(axis=1))[mask]
    binding = ((free < used) & fits[:, None]).sum(axis=0)
    free = np.minimum(free, used)
    rows = np.column_stack((mask, room, free))[fits]
    distinct, of_node = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(of_node.reshape(-1), kind="stable")
    count = np.bincount(of_node.reshape(-1), minlength=len(distinct))
    nodes = np.split(np.flatnonzero(fits)[order], np.cumsum(count)[:-1]) if len(distinct) else []
    levels = len(bundle_groups.sizes)
    return NodeStates(
        nodes=tuple(nodes),
        count=count,
        room=distinct[:, 1 : 1 + levels],
        free=distinct[:, 1 + levels :],
        mask=distinct[:, 0],
        allowed=masks,
        binding=binding,
    )


def _room(state: State, bundle_groups: BundleGroups) -> IntArray:
    """Shape (N, levels): shares of each size that the GPUs of a node could hold."""
    problem, most = state.problem, state.problem.jobs_per_gpu
    if problem.shares_bind and most != 1:
        free = np.maximum(state.gpu_free_milli, 0)
        if most is not None:
            free = np.where(state.gpu_jobs < most, free, 0)
    else:
        free = 1000 * np.maximum((most or 1) - state.gpu_jobs, 0)
    room = np.zeros((problem.num_nodes, len(bundle_groups.sizes)), dtype=np.int64)
    for level, size in enumerate(bundle_groups.sizes):
        np.add.at(room[:, level], problem.gpu_node, free // size)
    return room


def _asked(problem: Problem) -> IntArray:
    """Shape (R,): as much as all jobs together ask for, each in its most demanding option."""
    options = problem.options
    most = np.zeros((len(problem.class_communication), options.demand.shape[1]), dtype=np.int64)
    np.maximum.at(most, options.job_class, options.demand * options.workers[:, None])
    jobs = np.bincount(problem.job_class, minlength=len(most)).astype(float)
    asked: IntArray = np.minimum(jobs @ most * 1.001, 2.0**60).astype(np.int64) + 1  # generous, and within 64 bits
    return asked


def _most_used(
    bundle_groups: BundleGroups, masks: BoolArray, mask: IntArray, room: IntArray, free: IntArray
) -> IntArray:
    """
    Shape (N, R): as much of each resource as bundles on the GPUs of a node could ask for together.

    What a node has beyond that tells it from no other. Where bundle groups without GPU ask for a resource, all of it
    counts, and more.
    """
    out = np.zeros(free.shape, dtype=np.int64)
    with_gpus = bundle_groups.level != CPU_ONLY
    sizes = np.array([*bundle_groups.sizes, 1], dtype=np.int64)  # the last one is for bundle groups without GPU
    shares = np.maximum(
        bundle_groups.units * sizes[bundle_groups.level] // sizes[len(bundle_groups.sizes) - 1], 1
    )  # of the smallest size
    each = -(-bundle_groups.demand // shares[:, None])  # (D, R) per such share, rounded up
    for m, allowed in enumerate(masks):
        here = np.flatnonzero(mask == m)
        if (allowed & with_gpus).any():
            out[here] = each[allowed & with_gpus].max(axis=0) * room[here, -1:]
        alone = (bundle_groups.demand[allowed & ~with_gpus] > 0).any(axis=0)
        out[here[:, None], np.flatnonzero(alone)] = free[here][:, alone] + 1
    return out
