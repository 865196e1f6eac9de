"""Scores as the authors' simulator of FGD compares them: whole points of 100, so that node names often decide."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics import Candidates, score_named
from placeopt.heuristics.gradient import FragmentationGradient
from placeopt.problem import IntArray, Problem


class InPoints:
    """One of the library's scores in whole points, the more the better, turned round to be the lower the better."""

    sees_state_only = True

    def __init__(self, name: str, problem: Problem) -> None:
        self._name = name
        self._exact = score_named(name, problem)
        if isinstance(self._exact, FragmentationGradient):
            self.pick = self._exact.pick
            self._total = self._exact.target.total

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Round what the library says of ``nodes``."""
        exact = self._exact(candidates, option, nodes)
        if self._name == "fgd":
            return -np.floor(100 / (1 + np.exp(exact / self._total / 1000)))
        if self._name == "dot_product":
            return -np.floor(100 * (1 - exact))
        width = candidates.slot_gpu.shape[1] + 1  # gpu_packing
        idle, opened = np.rint((exact - 2) * width), np.rint((exact - 1) * width)
        points = np.where(exact >= 1, np.maximum(50 - opened, 33), 100 - np.floor(np.rint(1000 * exact) / 100))
        points = np.where(exact >= 2, np.maximum(33 - idle, idle), points)
        return -points if candidates.problem.options.gpus[option] else np.zeros(len(nodes))
