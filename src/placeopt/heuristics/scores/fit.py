"""How greedy ranks the nodes on which a bundle fits: first fit, best fit, stranding. The lower the better."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.problem import CPU, MEMORY, IntArray, Problem

SOFTPLUS_WIDTH = 0.3
STRANDING_WEIGHT = 3.0
UNTOUCHED_WEIGHT = 0.1 / 8
"""
Of ``Stranding``, in GPUs; ours, chosen on openb's default list one pod at a time, where 95.9 % of the GPUs are in use
in the end (``bench/online.md``, which has other lists, too).
"""


def first_fit(candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
    """The first node of the file (FCFS of SC'17 section 5: the first one that fits)."""
    del candidates, option
    return nodes.astype(float)


class BestFit:
    """The node with the least left over: free GPU share, CPU and memory after, each over the largest node's."""

    cacheable = True

    def __init__(self, problem: Problem) -> None:
        """Look up the largest node."""
        self._largest = np.maximum(problem.node_capacity.max(axis=0, initial=0), 1)

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        state, options = candidates.state, candidates.problem.options
        workers = int(options.bundle_workers[option])
        gpus = np.where(candidates.slot_exists[nodes], state.gpu_free_milli[candidates.slot_gpu[nodes]], 0)
        held = workers * options.gpus[option] * options.milli[option]
        share = (gpus.sum(axis=1) - held) / (1000 * gpus.shape[1] or 1)
        left = (state.node_free[nodes] - workers * options.demand[option]) / self._largest
        score: np.ndarray = share + 0.5 * left[:, CPU] + 0.5 * left[:, MEMORY]
        return score


class Stranding:
    """
    Least stranded GPUs: S(node) = sp(G - C/k) + sp(G - M/m), the GPUs that free CPU and memory cannot serve.

    G idle GPUs, C and M free CPU and memory, k and m the mean CPU and memory per GPU of the workload, sp softplus of
    width 0.3. The node with the least 3 dS + the rest of the GPU used + 0.1 x untouched GPUs / 8. Ours.
    """

    cacheable = True

    def __init__(self, problem: Problem, counts: IntArray | None = None) -> None:
        """Take the workload's mean over the problem's jobs, or over ``counts`` jobs of each class, (K,)."""
        classes, o = problem.first_options
        options, weight = problem.options, (problem.jobs_per_class if counts is None else counts)[classes]
        gpus = max(float((weight * options.total_milli[o]).sum()) / 1000, 1e-9)
        with_gpus = options.gpus[o] > 0
        demand = (weight * options.workers[o] * with_gpus)[:, None] * options.demand[o]
        self.cpu_per_gpu = max(float(demand[:, CPU].sum()) / gpus, 1e-9)
        self.memory_per_gpu = max(float(demand[:, MEMORY].sum()) / gpus, 1e-9)

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        state, options = candidates.state, candidates.problem.options
        workers = int(options.bundle_workers[option])
        free = candidates.free_milli(nodes) / 1000
        idle, before = free.sum(axis=1), state.node_free[nodes]
        after = before - workers * options.demand[option]
        gpus, share = int(options.bundle_gpus[option]), int(options.milli[option]) / 1000
        change = self._stranded(idle - gpus * share, after) - self._stranded(idle, before)
        whole = free >= 1
        untouched = whole.sum(axis=1).astype(float)
        left_over = np.zeros(len(nodes))
        if gpus:
            fits = candidates.usable(option, nodes)
            if share < 1:
                smallest = np.where(fits, free, np.inf).min(axis=1)
                left_over = smallest - share
                untouched -= smallest >= 1
            else:
                untouched -= gpus
        score: np.ndarray = STRANDING_WEIGHT * change + left_over + UNTOUCHED_WEIGHT * untouched
        return score

    def _stranded(self, idle: np.ndarray, free: IntArray) -> np.ndarray:
        by_cpu, by_memory = free[:, CPU] / self.cpu_per_gpu, free[:, MEMORY] / self.memory_per_gpu
        stranded: np.ndarray = _softplus(idle - by_cpu) + _softplus(idle - by_memory)
        return stranded


def _softplus(x: np.ndarray) -> np.ndarray:
    out: np.ndarray = SOFTPLUS_WIDTH * np.logaddexp(0, x / SOFTPLUS_WIDTH)
    return out
