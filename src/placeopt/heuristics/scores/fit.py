"""How greedy ranks the nodes on which a bundle fits: first fit, best fit, stranding. The lower the better."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from math import exp, log1p

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.narrow_rows import row_counts, row_minima
from placeopt.heuristics.single_nodes import NodeView
from placeopt.problem import CPU, MEMORY, IntArray, Problem

RATED = slice(CPU, MEMORY + 1)
"""The resources that every GPU needs its part of, in the last axis of resource arrays."""

SOFTPLUS_WIDTH = 0.3
STRANDING_WEIGHT = 3.0
UNTOUCHED_WEIGHT = 0.1 / 8
"""
Of ``Stranding``, in GPUs; ours, chosen on openb's default list one pod at a time, where 95.9 % of the GPUs are in use
in the end (``bench/specs/online.py``).
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
        self._per_gpu = np.array([self.cpu_per_gpu, self.memory_per_gpu])

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        options = candidates.problem.options
        gpus, share = int(options.bundle_gpus[option]), int(options.milli[option]) / 1000
        free = candidates.free_milli(nodes) / 1000
        idle = np.add.reduce(free, axis=1)
        demand = int(options.bundle_workers[option]) * options.demand[option, RATED]
        left = candidates.state.node_free.take(nodes, axis=0)[:, RATED] - demand
        score = self._stranded(idle - gpus * share, left)
        score -= candidates.kept(self.before, nodes)
        score *= STRANDING_WEIGHT
        untouched = row_counts(free >= 1).astype(float)
        if gpus and share < 1:
            smallest = row_minima(np.where(candidates.usable(option, nodes), free, np.inf))
            score += smallest - share
            untouched -= smallest >= 1
        else:
            untouched -= gpus
        score += UNTOUCHED_WEIGHT * untouched
        return score

    def before(self, candidates: Candidates, nodes: IntArray) -> np.ndarray:
        """S(node) as it is."""
        idle = np.add.reduce(candidates.free_milli(nodes) / 1000, axis=1)
        return self._stranded(idle, candidates.state.node_free.take(nodes, axis=0)[:, RATED])

    def _stranded(self, idle: np.ndarray, free: IntArray) -> np.ndarray:
        """S of nodes with so many idle GPUs, (n,), and so much free CPU and memory, (n, 2)."""
        beyond = _softplus(idle[:, None] - free / self._per_gpu)
        stranded: np.ndarray = beyond[:, 0] + beyond[:, 1]
        return stranded

    def of_node(self, problem: Problem, option: int) -> Callable[[NodeView], float]:
        """Return the same for single nodes; see ``ScalarScore``."""
        options = problem.options
        gpus, share = int(options.bundle_gpus[option]), int(options.milli[option]) / 1000
        taken, milli = gpus * share, int(options.milli[option])
        cpu, memory = (int(options.bundle_workers[option]) * options.demand[option, RATED]).tolist()
        shared = gpus > 0 and share < 1
        per_cpu, per_memory = self.cpu_per_gpu, self.memory_per_gpu

        def stranded(idle: float, cpu: int, memory: int) -> float:
            by_cpu = (idle - cpu / per_cpu) / SOFTPLUS_WIDTH
            by_memory = (idle - memory / per_memory) / SOFTPLUS_WIDTH
            # log(1 + e^x) in the steps of numpy.logaddexp
            soft_cpu = by_cpu + log1p(exp(-by_cpu)) if by_cpu > 0 else log1p(exp(by_cpu))
            soft_memory = by_memory + log1p(exp(-by_memory)) if by_memory > 0 else log1p(exp(by_memory))
            return SOFTPLUS_WIDTH * soft_cpu + SOFTPLUS_WIDTH * soft_memory

        def score(view: NodeView) -> float:
            free, left, idle = view.free, view.left, view.idle
            if view.kept is None:
                view.kept = stranded(idle, free[CPU], free[MEMORY])
            before: float = view.kept
            found = STRANDING_WEIGHT * (stranded(idle - taken, free[CPU] - cpu, free[MEMORY] - memory) - before)
            untouched = len(left) - bisect_left(left, 1000)
            if not shared:
                return found + UNTOUCHED_WEIGHT * (untouched - gpus)
            smallest = left[bisect_left(left, milli)]
            return found + (smallest / 1000 - share) + UNTOUCHED_WEIGHT * (untouched - (smallest >= 1000))

        return score


def _softplus(x: np.ndarray) -> np.ndarray:
    out: np.ndarray = SOFTPLUS_WIDTH * np.logaddexp(0, x / SOFTPLUS_WIDTH)
    return out
