"""Nodes of one kind of machine, in arrays, for a bundle: GPUs by bi-partitioning, and every term of eq. 2 for GPUs."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.drb.co_runners import co_runners
from placeopt.heuristics.drb.machine import Machine, MachineKind, Weights, worth_of
from placeopt.heuristics.drb.split import assign
from placeopt.heuristics.drb.traffic import task_traffic
from placeopt.problem import BoolArray, IntArray, State
from placeopt.terms.costs.utility import talks


class NodeBatch:
    """m nodes of one ``kind`` for a bundle of an option. Sets of GPUs are S choices of k on each: shape (m, S, k)."""

    def __init__(
        self, state: State, option: int, nodes: IntArray, usable: BoolArray, kind: MachineKind, weights: Weights
    ) -> None:
        """``usable``: (m, at least g) slots whose GPUs the bundle may have."""
        size, problem = len(kind.distances), state.problem
        self.state, self.problem, self.option, self.nodes = state, problem, option, nodes
        self.kind, self._weights = kind, weights
        self.usable: BoolArray = usable[:, :size]
        self.co_runners = co_runners(state, option, nodes, kind.levels)
        idle = state.gpu_jobs[problem.node_gpu_start[nodes][:, None] + np.arange(size)] == 0
        self._share = np.where(idle, kind.counts, 0)
        self._excess = self.excess(np.broadcast_to(np.arange(size)[:, None], (len(nodes), size, 1)))

    def only(self, i: int) -> NodeBatch:
        """Return the batch of one of the nodes."""
        here = slice(i, i + 1)
        return NodeBatch(self.state, self.option, self.nodes[here], self.usable[here], self.kind, self._weights)

    def bipartitioned(self, ranks: list[int]) -> list[tuple[int, ...] | None]:
        """Return GPUs by index on each node for some ranks of a job, worker after worker; None without room."""
        each, found = int(self.problem.options.gpus[self.option]), list[tuple[int, ...] | None]()
        tasks, traffic = list(range(each * len(ranks))), task_traffic(self.problem, self.option, ranks, each)
        for usable, share, excess in zip(self.usable, self._share.tolist(), self._excess.tolist(), strict=True):
            machine = Machine(self.kind.of_usable(usable), share, excess, self._weights)
            gpu_of = assign(tasks, traffic, machine, self._weights[0])
            found.append(None if gpu_of is None else tuple([gpu_of[task] for task in tasks]))
        return found

    def utility(self, sets: IntArray) -> tuple[np.ndarray, np.ndarray]:
        """Return the path term of eq. 2 for a whole job on sets of GPUs, and the sum of the others: (m, S) each."""
        best, path = int(self.problem.best_path[self.option]), self.path(sets)
        longer = (path > best) & talks(self.problem, self.option)
        near = self._weights[0] * np.where(longer, best / np.maximum(path, 1), 1.0)
        return near, worth_of(self._weights, self.excess(sets), self.free_without(sets))

    def path(self, sets: IntArray) -> IntArray:
        """Shape (m, S): path length between all pairs of GPUs of each set."""
        length: IntArray = self.kind.distances[sets[..., :, None], sets[..., None, :]].sum(axis=(-2, -1)) // 2
        return length

    def free_without(self, sets: IntArray) -> np.ndarray:
        """Shape (m, S): eq. 5 once a set of GPUs is held."""
        held = np.take_along_axis(self._share[:, None], sets, axis=2).sum(axis=2)
        left: np.ndarray = (self._share.sum(axis=1)[:, None] - held) / self.kind.whole
        return left

    def excess(self, sets: IntArray) -> IntArray:
        """Shape (m, S): what a bundle suffers and causes on each set, in thousandths."""
        (suffered, caused), node = self.co_runners.excess(sets), self.co_runners.node
        felt: IntArray = np.zeros(sets.shape[:2], dtype=np.int64)
        (np.add if self.problem.policy.interference.model == "pairwise" else np.maximum).at(felt, node, suffered)
        np.add.at(felt, node, caused)
        return felt
