"""Scores as the authors' simulator of FGD compares them: whole points of 100, so the order of nodes often decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from placeopt.heuristics import Candidates, Score, score_named
from placeopt.heuristics.scores.fragmentation import FragmentationGradient, GradientColumns
from placeopt.model import Job
from placeopt.problem import RESOURCES, IntArray, Problem, State
from placeopt.problem.target import Target

CPU = RESOURCES.index("cpu_millicores")
MOST_CPU, MOST_MILLI = 128_000, 8_000
"""CPU and GPU capacity of the simulator's largest node."""


class RoundedScore(Score):
    """One of the library's scores in whole points, negated so that lower is better."""

    def __init__(self, name: str, problem: Problem) -> None:
        self._name = name
        self._exact = score_named(name, problem)

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Return the rounded scores of ``nodes``."""
        if self._name == "best_fit":
            return _best_fit(candidates, option, nodes)
        exact = self._exact(candidates, option, nodes)
        if self._name == "dot_product":
            return -_floored(100 * (1 - exact))
        if not candidates.problem.options.gpus[option]:
            return np.zeros(len(nodes))
        if self._name == "gpu_clustering":
            full: IntArray = MOST_MILLI - candidates.free_milli(nodes).sum(axis=1)
            return 25 * _floored(exact) - (25 * full // MOST_MILLI)
        return -_packing(exact, candidates.slot_gpu.shape[1] + 1)


class RoundedGradient(FragmentationGradient):
    """FGD in points of a sigmoid, the first GPU of those with the most points; frequencies by counts."""

    def __init__(self, problem: Problem, jobs: Sequence[Job]) -> None:
        super().__init__(problem)
        self.target = _target(problem, jobs)

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Return the rounded scores of ``nodes``."""
        return -_points(super().__call__(candidates, option, nodes), self.target)

    def columns(self, state: State) -> GradientColumns:
        """Prepare the same score for a table."""
        self._columns = _GradientColumns(self.target, state)
        return self._columns


class _GradientColumns(GradientColumns):
    def column(self, node_class: int, cpu: int, memory: int, left: tuple[int, ...]) -> np.ndarray:
        """See ``Columns``."""
        return -_points(super().column(node_class, cpu, memory, left), self.target)

    def changes(self, shape: int, node: int, gpus: list[int], share: int) -> np.ndarray:
        """Return what makes the GPU with the most points the best one, the first of several."""
        return -_points(super().changes(shape, node, gpus, share), self.target)


def _points(change: np.ndarray, target: Target) -> np.ndarray:
    return _floored(100 / (1 + np.exp(change / (1000 * target.total))))


def _floored(values: np.ndarray) -> np.ndarray:
    whole: np.ndarray = np.floor(values)
    return whole


def _packing(exact: np.ndarray, width: int) -> np.ndarray:
    """Points of ``gpu_packing``: its three tiers are told apart by whole numbers."""
    idle, opened = np.rint((exact - 2) * width), np.rint((exact - 1) * width)
    points: np.ndarray = np.where(exact >= 1, np.maximum(50 - opened, 33), 100 - np.floor(np.rint(1000 * exact) / 100))
    points[exact >= 2] = np.maximum(33 - idle, idle)[exact >= 2]
    return points


def _best_fit(candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
    """Return the points of ``best_fit``: remaining CPU and GPU share over the largest node's, half each."""
    options = candidates.problem.options
    share = candidates.free_milli(nodes).sum(axis=1) - int(options.gpus[option] * options.milli[option])
    cpu = candidates.state.node_free[nodes, CPU] - int(options.demand[option, CPU])
    return -_floored(100 * (1 - (cpu / MOST_CPU * 0.5 + share / MOST_MILLI * 0.5)))


def _target(problem: Problem, jobs: Sequence[Job]) -> Target:
    """
    Return the typical pods: the most frequent kinds until 95 % are covered, each with its number of pods.

    Of equally frequent kinds the simulator takes larger requests first; the library sorts the other way, and rounds
    frequencies to thousandths.
    """
    demands = [job.options[0].demand for job in jobs]
    counts = Counter((d.cpu_millicores, d.gpu_milli if d.gpus else 0, d.gpus, "|".join(d.gpu_models)) for d in demands)
    typical: list[tuple[int, int, int, str]] = []
    covered = 0
    for kind in sorted(counts, key=lambda kind: (counts[kind], kind), reverse=True):
        if covered >= 0.95 * len(jobs):
            break
        typical.append(kind)
        covered += counts[kind]
    cpu, milli, gpus = np.array([kind[:3] for kind in typical], dtype=np.int64).T
    allowed = [[not kind[3] or model in kind[3].split("|") for model in problem.type_model] for kind in typical]
    parts = np.array([counts[kind] for kind in typical], dtype=np.int64)
    return Target(gpus=gpus, milli=np.maximum(milli, 1), cpu=cpu, type_ok=np.array(allowed, dtype=bool), parts=parts)
