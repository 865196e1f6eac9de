"""Scores for GPUs that jobs share beyond their sum: Horus by cost, opportunistic bin packing by free GPU memory."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.problem import IntArray, Problem
from placeopt.terms.costs.horus import decision_costs


class HorusByCost:
    """
    The node whose lambda cheapest GPUs cost the least, and these GPUs (Horus, algorithm 1 with eq. 7-10).

    Cost of one GPU for one job: w1 x (GPU memory used after) / capacity + w2 x f(utilisation after), f the fitted
    slowdown curve. It depends on what was placed before, unlike the term ``horus``, which counts a GPU once.
    Departures: the paper takes the lambda cheapest GPUs of all nodes with room; here they lie on one node where the job
    asks for that, and a job that may spread goes to few, close nodes, the best of them by this cost.
    """

    def __init__(self, problem: Problem) -> None:
        del problem

    def option_features(self, problem: Problem) -> IntArray:
        """Return the utilisation of each option, which its cost goes by."""
        return problem.options.utilisation[:, None]

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Sum of the cheapest GPUs' costs, shape (len(nodes),)."""
        need = _gpus_of_bundle(candidates.problem, option)
        if not need:
            return np.zeros(len(nodes))
        cost = decision_costs(candidates.state, option, candidates.slot_gpu[nodes])
        usable = np.where(candidates.usable(option, nodes), cost, np.iinfo(np.int64).max // 2048)
        score: np.ndarray = np.sort(usable, axis=1)[:, :need].sum(axis=1).astype(float)
        return score

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """Return the cheapest; ties by number."""
        cost = decision_costs(candidates.state, option, np.array(gpus, dtype=np.int64))
        return tuple(sorted(gpus[i] for i in np.argsort(cost, kind="stable")[:need].tolist()))


class MostFreeMemory:
    """
    Opportunistic bin packing (Horus section 5, "OBP"): GPUs with the most memory free, the least loaded of them.

    A GPU takes a job if its memory suffices; which one is "similar to least-loaded" in the paper: read as the most free
    GPU memory, then the fewest jobs. Where no GPU states its memory, only the number of jobs is left.
    """

    def __init__(self, problem: Problem) -> None:
        self._most_jobs = problem.num_jobs + 1

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Sum over the GPUs that would be taken, shape (len(nodes),)."""
        need = _gpus_of_bundle(candidates.problem, option)
        if not need:
            return np.zeros(len(nodes))
        load = self._load(candidates, candidates.slot_gpu[nodes]).astype(float)
        load = np.where(candidates.usable(option, nodes), load, np.inf)
        score: np.ndarray = np.sort(load, axis=1)[:, :need].sum(axis=1)
        return score

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """Return the least loaded; ties by number."""
        del option
        load = self._load(candidates, np.array(gpus, dtype=np.int64))
        return tuple(sorted(gpus[i] for i in np.argsort(load, kind="stable")[:need].tolist()))

    def _load(self, candidates: Candidates, gpus: IntArray) -> IntArray:
        state = candidates.state
        load: IntArray = state.gpu_jobs[gpus] - self._most_jobs * state.gpu_free_memory[gpus]
        return load


def _gpus_of_bundle(problem: Problem, option: int) -> int:
    return int(problem.options.gpus[option] * problem.options.bundle_workers[option])
