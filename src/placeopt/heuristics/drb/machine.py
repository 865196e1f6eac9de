"""One node for a bundle: the GPUs that bi-partitioning gives it, and how well it would run there (SC'17 eq. 2)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from placeopt.heuristics.drb.co_runners import CoRunners, relative
from placeopt.heuristics.drb.hardware_tree import machine_tree
from placeopt.heuristics.drb.split import Half, assign
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.terms.costs.utility import talks

Weights = tuple[float, float, float]
"""Of path, interference and fragmentation in eq. 2."""


def utility_weights(problem: Problem) -> Weights:
    """Return the policy's weights of the three terms, in proportion; thirds where it states none."""
    weights = problem.policy.weights
    stated = (weights.communication, weights.interference, weights.fragmentation)
    a, b, c = stated if any(stated) else (1, 1, 1)
    return a / (a + b + c), b / (a + b + c), c / (a + b + c)


class Machine:
    """
    The GPUs of one node for an option, as `placeopt.heuristics.drb.split.Hardware`; a task is one GPU of a worker.

    Fragmentation is eq. 5, the mean over the node's sockets of the part that is free, also where a decision is between
    two halves of the node. On sockets of equal size it is then the same for both halves. A mean over the sockets of one
    half instead would draw jobs to the fuller half, where the paper's prototype separates them (5.2.2, job 1).
    """

    def __init__(self, state: State, option: int, node: int, usable: BoolArray, weights: Weights) -> None:
        """``usable``: Slots of the node whose GPUs the bundle may have."""
        problem = state.problem
        self.problem, self.option, self._weights = problem, option, weights
        self.co_runners = CoRunners(state, option, node)
        self.distances = problem.topology.distance[int(problem.topology.node_machine[node])]
        size, start = len(self.distances), problem.first_gpu[node]
        self.usable: BoolArray = usable[:size]
        self.tree = machine_tree(self.distances)
        self.room = self.tree.sums(self.usable.astype(np.int64))
        self._excess = self._excess_on(np.arange(size)[:, None])
        counts, self._whole = socket_counts(relative(problem.gpu_socket[start : start + size]).tobytes())
        self._share = np.where(state.gpu_jobs[start : start + size] == 0, counts, 0)

    def gpus(self, ranks: list[int]) -> tuple[int, ...] | None:
        """Return GPUs by index for some ranks of a job, worker after worker; None without room."""
        problem, need = self.problem, int(self.problem.options.gpus[self.option]) * len(ranks)
        weights = _gpu_traffic(problem, self.option, ranks)
        gpu_of = assign(list(range(need)), weights, self, self._weights[0])
        return None if gpu_of is None else tuple(gpu_of[task] for task in range(need))

    def utility(self, gpus: tuple[int, ...]) -> tuple[float, float]:
        """Return the path term of eq. 2 for a whole job on some GPUs of the node, and the sum of the other two."""
        problem, one = self.problem, np.array([gpus])
        best, path = int(problem.best_path[self.option]), int(self.path(one)[0])
        near = best / path if path > best and talks(problem, self.option) else 1.0
        return self._weights[0] * near, self._worth(float(self._excess_on(one)[0]), float(self.free_without(one)[0]))

    def path(self, sets: IntArray) -> IntArray:
        """Shape (m,): path length between all pairs of GPUs of each set, (m, k)."""
        length: IntArray = self.distances[sets[:, :, None], sets[:, None, :]].sum(axis=(1, 2)) // 2
        return length

    def free_without(self, sets: IntArray) -> np.ndarray:
        """Shape (m,): eq. 5 once a set of GPUs, (m, k), is held."""
        left: np.ndarray = (self._share.sum() - self._share[sets].sum(axis=1)) / self._whole
        return left

    def halves(self, parts: tuple[int, int], leaf_of: dict[int, int]) -> tuple[Half, Half, float]:
        """See ``Hardware``: by the usable GPUs of each, beside those that the job has elsewhere."""
        leaves = [self.tree.leaves(part) for part in parts]
        gpus = [here[self.usable[here]] for here in leaves]
        free = int(self._share.sum()) - int(self._share[list(leaf_of.values())].sum())
        held = [[0, *np.cumsum(np.sort(self._share[here])[::-1]).tolist()] for here in gpus]
        across = float(self.distances[gpus[0][:, None], gpus[1]].mean())
        return self._half(gpus[0], free, held[0], held[1]), self._half(gpus[1], free, held[1], held[0]), across

    def _half(self, gpus: IntArray, free: int, mine: list[int], others: list[int]) -> Half:
        """``free``: What is free of the node; ``mine`` and ``others`` less of it by tasks in the half and beside it."""
        near = np.sort(self.distances[gpus[:, None], gpus], axis=1).cumsum(axis=1).min(axis=0).tolist()
        excess = np.sort(self._excess[gpus]).tolist()

        def inside(count: int) -> float:
            """Mean distance from the most central GPU to the nearest ``count`` of the half."""
            return near[count - 1] / (count - 1) if count > 1 else 0.0

        def worth(held: int, beside: int) -> float:
            return self._worth(excess[held], (free - mine[held + 1] - others[beside]) / self._whole)

        return Half(len(gpus), inside, worth)

    def _worth(self, excess: float, free: float) -> float:
        """Return the terms of eq. 2 for slowdowns suffered and caused (thousandths) and for what stays free (eq. 5)."""
        return self._weights[1] * 1000 / (1000 + excess) + self._weights[2] / (1 + free)

    def _excess_on(self, sets: IntArray) -> IntArray:
        """Shape (m,): what a bundle suffers and causes on each set of GPUs, (m, k)."""
        suffered, caused = self.co_runners.excess(sets)
        adds = self.problem.policy.interference.model == "pairwise"
        felt: IntArray = suffered.sum(axis=0) if adds else suffered.max(axis=0, initial=0)
        felt += caused.sum(axis=0)
        return felt


@lru_cache(maxsize=256)
def socket_counts(sockets: bytes) -> tuple[IntArray, int]:
    """Return what each GPU of a node counts, shape (g,), if all sockets count alike, and the sum, in whole numbers."""
    socket, gpus = np.unique(np.frombuffer(sockets, dtype=np.int64), return_inverse=True, return_counts=True)[1:]
    of_socket = int(np.lcm.reduce(gpus))
    return of_socket // gpus[socket], of_socket * len(gpus)


def rank_traffic(problem: Problem, option: int) -> IntArray | None:
    """Shape (workers, workers): weights of the edges between a job's workers; None where all pairs talk alike."""
    edges = problem.class_communication[problem.options.job_class[option]].edges
    if not edges:
        return None
    workers = int(problem.options.workers[option])
    out = np.zeros((workers, workers), dtype=np.int64)
    for edge in edges:
        a, b = edge.ranks
        if max(a, b) < workers:
            out[a, b] = out[b, a] = edge.weight
    return out


def _gpu_traffic(problem: Problem, option: int, ranks: list[int]) -> IntArray | None:
    """Shape (k, k): weights between the GPUs of some ranks, worker after worker; None where all pairs talk alike."""
    between = rank_traffic(problem, option)
    if between is None:
        return None
    inside = int(problem.class_communication[problem.options.job_class[option]].weight)
    gpus = int(problem.options.gpus[option])
    of_ranks = between[np.ix_(ranks, ranks)] + inside * np.eye(len(ranks), dtype=np.int64)
    weights: IntArray = np.kron(of_ranks, np.ones((gpus, gpus), dtype=np.int64))
    np.fill_diagonal(weights, 0)
    return weights
