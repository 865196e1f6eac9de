"""Nodes as they are now, for a bundle of a job: GPUs by bi-partitioning, and terms of eq. 2 for a set of GPUs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from placeopt.heuristics.drb.hardware_tree import machine_tree
from placeopt.heuristics.drb.split import Hardware, assign, assign_alike
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.terms.costs.slowdown_curves import excess_table

Weights = tuple[float, float, float]
"""Of path, interference and fragmentation in eq. 2."""


class MachineKind:
    """The hardware of nodes that differ only in what runs on them; g GPUs each."""

    def __init__(self, problem: Problem, node: int) -> None:
        here = slice(problem.first_gpu[node], problem.first_gpu[node + 1])
        self.distances = problem.topology.distance[int(problem.topology.node_machine[node])]
        self.tree = machine_tree(self.distances)
        levels = np.full_like(self.distances, 3)
        for level, part in ((2, problem.gpu_socket[here]), (1, problem.gpu_switch[here])):
            levels[(part[:, None] == part) & (part >= 0)] = level
        np.fill_diagonal(levels, 0)
        self.levels: IntArray = levels
        """Shape (g, g): where two GPUs meet: 0 the same GPU, 1 a switch, 2 a socket, 3 the node."""
        socket, gpus = np.unique(problem.gpu_socket[here], return_inverse=True, return_counts=True)[1:]
        of_socket = int(np.lcm.reduce(gpus, initial=1))
        self.share: IntArray = of_socket // gpus[socket]
        """Shape (g,): what each GPU counts in eq. 5 in whole numbers, where all sockets count alike."""
        self.whole = of_socket * len(gpus)
        """The sum over all sockets."""


class CoRunners(NamedTuple):
    """Who runs beside a bundle on nodes of g GPUs: C of them, node after node."""

    row: IntArray  # (C,) of the node
    meeting: IntArray  # (C, g) level at which each GPU meets the nearest of its own
    suffered: IntArray  # (C, 4) by level, thousandths by which it slows the bundle where they meet
    caused: IntArray  # (C, 4) thousandths by which the bundle slows it


class NodeNow:
    """
    One node for a bundle of an option, or R nodes of one kind side by side: a row each.

    GPUs are those of the node, by index. Sets of them are given as (k,), (S, k) alike for all nodes, or (R, S, k); left
    out, they are the single GPUs.
    """

    def __init__(
        self, state: State, option: int, nodes: int | IntArray, usable: BoolArray, kind: MachineKind, weights: Weights
    ) -> None:
        """``usable``, (R, at least g): slots whose GPUs the bundle may have."""
        self.problem, self.option, self.kind, self._weights = state.problem, option, kind, weights
        size, rows = len(kind.share), np.atleast_1d(nodes)
        self.usable: BoolArray = np.atleast_2d(usable)[:, :size]
        gpus = self.problem.node_gpu_start[rows][:, None] + np.arange(size)
        self.share: IntArray = np.where(state.gpu_jobs[gpus] == 0, kind.share, 0)
        """Shape (R, g): of idle GPUs, what each counts in eq. 5."""
        curve = self.problem.policy.interference.model == "curve"
        self.co_runners: CoRunners = (
            _on_gpus(state, option, gpus, kind.levels) if curve else _on_nodes(state, option, rows, kind.levels)
        )

    def bipartitioned(self, count: int, traffic: IntArray | None) -> tuple[int, ...] | None:
        """Return GPUs of one node for so many tasks, by what they send to each other (see ``split.assign``)."""
        hardware = Hardware(self.kind.tree, self.usable[0].astype(np.int64), self.worth()[0])
        gpus = assign(count, traffic, hardware, self._weights[0])
        return None if gpus is None else tuple(gpus)

    def bipartitioned_alike(self, count: int) -> IntArray:
        """Shape (R, count): GPUs for tasks that communicate alike, on nodes that all have room."""
        return assign_alike(count, self.kind.tree, self.usable, self.worth(), self._weights[0])

    def worth(self, gpus: ArrayLike | None = None) -> np.ndarray:
        """Shape (R, S): terms of eq. 2 for co-runners and fragmentation; the latter by eq. 5 once the GPUs are held."""
        row, level, suffered, caused = self.co_runners
        one = np.arange(len(row))[:, None]
        if gpus is not None:
            level = level[one[:, :, None], self._sets(gpus)[row]].min(axis=2)
        free = self.free_without(gpus)
        excess = np.zeros(free.shape, dtype=np.int64)
        by_pair = self.problem.policy.interference.model == "pairwise"
        (np.add if by_pair else np.maximum).at(excess, row, suffered[one, level])
        np.add.at(excess, row, caused[one, level])
        worth: np.ndarray = self._weights[1] * 1000 / (1000 + excess) + self._weights[2] / (1 + free)
        return worth

    def free_without(self, gpus: ArrayLike | None = None) -> np.ndarray:
        """Shape (R, S): eq. 5, the mean over a node's sockets of the part that is free, once some GPUs are held."""
        held = self.share
        if gpus is not None:
            held = held[np.arange(len(held))[:, None, None], self._sets(gpus)].sum(axis=2)
        free: np.ndarray = (self.share.sum(axis=1)[:, None] - held) / self.kind.whole
        return free

    def _sets(self, gpus: ArrayLike) -> IntArray:
        sets = np.array(gpus, dtype=np.int64, ndmin=3)
        return np.broadcast_to(sets, (len(self.share), *sets.shape[1:]))


def _on_nodes(state: State, option: int, nodes: IntArray, levels: IntArray) -> CoRunners:
    """Return who holds GPUs of nodes; a pair of profiles counts at the closest part that the two share."""
    problem, found, of_gpus = state.problem, list[tuple[int, int, int]](), list[int]()
    for row, node in enumerate(nodes.tolist() if state.tenants else ()):
        for (other, gpus), count in state.tenants[node].items():
            found += [(row, other, len(of_gpus))] * count
            of_gpus += gpus
    rows, others, starts = np.array(found, dtype=np.int64).reshape(-1, 3).T
    held = np.array(of_gpus, dtype=np.int64)
    meeting = np.minimum.reduceat(levels[held - problem.node_gpu_start[problem.gpu_node[held]]], starts)
    own = int(problem.class_profile[problem.options.job_class[option]])
    suffered = caused = np.zeros((len(rows), 4), dtype=np.int64)
    if own >= 0 and found:
        known = (others >= 0)[:, None]
        suffered, caused = problem.slowdown[:, own, others].T * known, problem.slowdown[:, others, own].T * known
    return CoRunners(rows, meeting, suffered, caused)


def _on_gpus(state: State, option: int, gpus: IntArray, levels: IntArray) -> CoRunners:
    """Return the jobs on each GPU of nodes, (R, g): under ``curve`` they count there, each by itself."""
    jobs, used, more = state.gpu_jobs[gpus], state.gpu_utilisation[gpus], int(state.problem.options.utilisation[option])
    table = excess_table(state.problem.policy.interference.curve, int(used.max(initial=0)) + more)
    before, after = np.where(jobs > 1, table[used], 0), table[used + more]
    row, gpu = (at.repeat(jobs[jobs > 0]) for at in np.nonzero(jobs))
    suffered, caused = (np.zeros((len(row), 4), dtype=np.int64) for _ in range(2))
    suffered[:, 0], caused[:, 0] = after[row, gpu], (after - before)[row, gpu]
    return CoRunners(row, levels[gpu], suffered, caused)
