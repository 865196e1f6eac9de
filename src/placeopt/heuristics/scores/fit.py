"""How greedy ranks the nodes on which a bundle fits: first fit, best fit, stranding. The lower the better."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.scores.score import Score
from placeopt.heuristics.scores.table import Columns
from placeopt.problem import CPU, GPU_MILLI, MEMORY, IntArray, Problem, State

RATED = slice(CPU, MEMORY + 1)
"""The resources that every GPU needs its part of, in the last axis of resource arrays."""

LEAST = 2.0**-30
"""GPUs, and CPU and memory for one, where the jobs ask for none: what is divided by."""

SOFTPLUS_WIDTH = 0.3
STRANDING_WEIGHT = 3.0
UNTOUCHED_WEIGHT = 0.1 / 8
"""
Of ``Stranding``, in GPUs; ours, chosen on openb's default list one pod at a time, where 95.9 % of the GPUs are in use
in the end (``bench/specs/online.py``).
"""


class FirstFit(Score):
    """The first node of the file (FCFS of SC'17 section 5: the first one that fits)."""

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``: the sooner the better."""
        del candidates, option
        return nodes.astype(float)


class BestFit(Score):
    """The node with the least left over: free GPU share, CPU and memory after, each over the largest node's."""

    def __init__(self, problem: Problem) -> None:
        """Look up the largest node."""
        self._largest = np.maximum(problem.node_capacity[:, RATED].max(axis=0, initial=0), 1)
        self._milli = GPU_MILLI * int(np.diff(problem.node_gpu_start).max(initial=0)) or 1

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        state, options = candidates.state, candidates.problem.options
        workers = int(options.bundle_workers[option])
        gpus = np.where(candidates.slot_exists[nodes], state.gpu_free_milli[candidates.slot_gpu[nodes]], 0)
        held = workers * options.gpus[option] * options.milli[option]
        left = state.node_free[nodes][:, RATED] - workers * options.demand[option, RATED]
        return self.score(gpus.sum(axis=1) - held, left)

    def score(self, milli: IntArray, left: IntArray) -> np.ndarray:
        """Return scores of nodes where so many thousandths of GPUs, and so much CPU and memory, (..., 2), are left."""
        parts = left / self._largest
        score: np.ndarray = milli / self._milli + 0.5 * parts[..., 0] + 0.5 * parts[..., 1]
        return score


class Stranding(Score):
    """
    Least stranded GPUs: S(node) = sp(G - C/k) + sp(G - M/m), the GPUs that free CPU and memory cannot serve.

    G idle GPUs, C and M free CPU and memory, k and m the mean CPU and memory per GPU of the workload, sp softplus of
    width 0.3. The node with the least 3 dS + the rest of the GPU used + 0.1 x untouched GPUs / 8. Ours.
    """

    def __init__(self, problem: Problem, counts: IntArray | None = None) -> None:
        """Take the workload's mean over the problem's jobs, or over ``counts`` jobs of each class, (K,)."""
        classes, o = problem.first_options
        options, weight = problem.options, (problem.jobs_per_class if counts is None else counts)[classes]
        gpus = max(float((weight * options.total_milli[o]).sum()) / 1000, LEAST)
        with_gpus = options.gpus[o] > 0
        demand = (weight * options.workers[o] * with_gpus)[:, None] * options.demand[o]
        self.cpu_per_gpu = max(float(demand[:, CPU].sum()) / gpus, LEAST)
        self.memory_per_gpu = max(float(demand[:, MEMORY].sum()) / gpus, LEAST)
        self._per_gpu = np.array([self.cpu_per_gpu, self.memory_per_gpu])

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        options = candidates.problem.options
        gpus, milli = int(options.bundle_gpus[option]), int(options.milli[option])
        left = candidates.free_milli(nodes)
        idle, untouched, over = left.sum(axis=1), (left >= 1000).sum(axis=1), np.zeros(len(nodes), dtype=np.int64)
        if gpus and milli < 1000:
            smallest = np.where(candidates.usable(option, nodes), left, GPU_MILLI).min(axis=1)
            over, gpus_opened = smallest - milli, smallest >= 1000
        else:
            gpus_opened = gpus
        demand = int(options.bundle_workers[option]) * options.demand[option, RATED]
        free = candidates.state.node_free.take(nodes, axis=0)[:, RATED]
        return self.score(idle, gpus * milli, free, demand, over, untouched - gpus_opened)

    def score(
        self,
        idle: IntArray,
        milli: IntArray | int,
        free: IntArray,
        demand: IntArray,
        over: IntArray,
        untouched: IntArray,
    ) -> np.ndarray:
        """
        Return the scores of any nodes for any bundles.

        ``idle`` thousandths of GPUs and ``free``, (..., 2), CPU and memory are there before, ``milli`` and ``demand``
        are taken of them; ``over`` thousandths are left of the GPU that is shared, ``untouched`` GPUs of the node.
        """
        rise = self._stranded(idle - milli, free - demand) - self._stranded(idle, free)
        score: np.ndarray = STRANDING_WEIGHT * rise + over / 1000 + UNTOUCHED_WEIGHT * untouched
        return score

    def _stranded(self, idle: IntArray, free: IntArray) -> np.ndarray:
        """S of nodes with so many thousandths of idle GPUs, and so much free CPU and memory, (..., 2)."""
        beyond = (idle / 1000)[..., None] - free / self._per_gpu
        stranded: np.ndarray = (SOFTPLUS_WIDTH * np.logaddexp(0, beyond / SOFTPLUS_WIDTH)).sum(axis=-1)
        return stranded

    def columns(self, state: State) -> StrandingColumns | None:
        """Prepare the same score for a table, where jobs of a shape repeat."""
        made = StrandingColumns(self, state)
        return made if 2 * len(made.of) <= state.problem.num_jobs else None


class StrandingColumns(Columns):
    """``Stranding`` of every shape at once."""

    def __init__(self, score: Stranding, state: State) -> None:
        super().__init__(state)
        self._score = score.score
        self._milli = self.gpus * self.milli
        self._shared = (self.gpus > 0) & (self.milli < 1000)
        self._demand = np.column_stack((self.cpu, self.memory))

    def column(self, node_class: int, cpu: int, memory: int, left: tuple[int, ...]) -> np.ndarray:
        """See ``Columns``."""
        del node_class
        at, free = np.array((*left, GPU_MILLI), dtype=np.int64), np.array([cpu, memory], dtype=np.int64)
        smallest = np.where(self._shared, at[at.searchsorted(self.milli)], GPU_MILLI)
        over = np.where(self._shared, smallest - self.milli, 0)
        opened = np.where(self._shared, smallest >= 1000, self.gpus)
        untouched = sum(milli >= 1000 for milli in left) - opened
        return self._score(np.array(sum(left)), self._milli, free, self._demand, over, untouched)
