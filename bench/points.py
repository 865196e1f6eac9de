"""Scores as the authors' simulator of FGD compares them: whole points of 100, so the order of nodes often decides."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from placeopt.heuristics import Candidates, score_named
from placeopt.heuristics.gradient import FragmentationGradient
from placeopt.heuristics.packing import free_share
from placeopt.problem import RESOURCES, IntArray, Problem

CPU = RESOURCES.index("cpu_millicores")
MOST_CPU, MOST_MILLI = 128_000, 8_000
"""The simulator's largest node."""


class InPoints:
    """One of the library's scores in whole points, the more the better, turned round to be the lower the better."""

    def __init__(self, name: str, problem: Problem) -> None:
        self._name = name
        self._exact = score_named(name, problem)
        self.sees_state_only = name != "gpu_clustering"  # it asks who is there
        if isinstance(self._exact, FragmentationGradient):
            self._exact.target = replace(self._exact.target, parts=_counts(problem, self._exact))
            self.pick = self._exact.pick
            self._total = self._exact.target.total

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Round what the library says of ``nodes``."""
        if self._name == "best_fit":
            return _best_fit(candidates, option, nodes)
        exact = self._exact(candidates, option, nodes)
        if self._name == "fgd":
            return -np.floor(100 / (1 + np.exp(exact / self._total / 1000)))
        if self._name == "dot_product":
            return -np.floor(100 * (1 - exact))
        if not candidates.problem.options.gpus[option]:
            return np.zeros(len(nodes))
        if self._name == "gpu_clustering":
            full = MOST_MILLI - free_share(candidates, nodes).sum(axis=1)
            return -(25 * full // MOST_MILLI) + 25 * np.floor(exact)
        return -_packing(exact, candidates.slot_gpu.shape[1] + 1)


def _packing(exact: np.ndarray, width: int) -> np.ndarray:
    """Points of ``gpu_packing``: its three tiers are told apart by whole numbers."""
    idle, opened = np.rint((exact - 2) * width), np.rint((exact - 1) * width)
    points = np.where(exact >= 1, np.maximum(50 - opened, 33), 100 - np.floor(np.rint(1000 * exact) / 100))
    return np.where(exact >= 2, np.maximum(33 - idle, idle), points)


def _best_fit(candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
    """CPU and GPU share left over, each over the largest node's, at one half; memory does not count there."""
    options = candidates.problem.options
    share = free_share(candidates, nodes).sum(axis=1) - int(options.gpus[option] * options.milli[option])
    cpu = candidates.state.node_free[nodes, CPU] - int(options.demand[option, CPU])
    return -np.floor(100 * (1 - (cpu / MOST_CPU * 0.5 + share / MOST_MILLI * 0.5)))


def _counts(problem: Problem, score: FragmentationGradient) -> IntArray:
    """Count the pods of each typical kind: the library rounds frequencies to thousandths, the authors do not."""
    options, target = problem.options, score.target
    first = problem.class_option_start[problem.job_class]
    gpus, milli = options.gpus[first], np.where(options.gpus[first] > 0, options.milli[first], 1)
    masks = [row.tobytes() for row in options.gpu_type_ok[first]]
    found = Counter(zip(gpus.tolist(), milli.tolist(), options.demand[first, CPU].tolist(), masks, strict=True))
    kinds = zip(target.gpus.tolist(), target.milli.tolist(), target.cpu.tolist(), target.type_ok, strict=True)
    return np.array([found[(*kind[:3], kind[3].tobytes())] for kind in kinds], dtype=np.int64)
