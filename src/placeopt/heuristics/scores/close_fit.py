"""Rank nodes by how close a bundle's GPUs would be there, and equally close ones by fit."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.scores.fit import BestFit
from placeopt.heuristics.scores.score import Score, closest
from placeopt.problem import IntArray, Problem

BEYOND_FIT = 4.0
"""More than two scores of `BestFit` differ by: it adds shares of the largest node's GPUs, CPU and memory."""


class CloseFit(Score):
    """
    The node where the GPUs of a bundle with traffic are closest to each other, of equals the best fit.

    By fit alone a job of two GPUs goes to a node with one idle GPU on either socket before one with two on one socket.
    Nodes with equally many GPUs with room at the same places share what is computed.
    """

    def __init__(self, problem: Problem) -> None:
        """Look up the traffic of the classes, and which nodes have the same distances."""
        self._fit = BestFit(problem)
        self._weight = np.array(
            [0 if communication.edges else int(communication.weight) for communication in problem.class_communication],
            dtype=np.int64,
        )
        machine = {id(distance): i for i, distance in enumerate(problem.topology.distance)}
        of_machine = np.array([machine[id(distance)] for distance in problem.topology.distance], dtype=np.int64)
        self._machine = of_machine[problem.topology.node_machine]
        self._known: dict[tuple[int, int, bytes], int] = {}

    def option_features(self, problem: Problem) -> IntArray:
        """Return whether bundles have traffic between GPUs of a node."""
        has = (problem.options.bundle_gpus > 1) & (self._weight[problem.options.job_class] > 0)
        return has.astype(np.int64)[:, None]

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        fit = self._fit(candidates, option, nodes)
        problem = candidates.problem
        need = int(problem.options.bundle_gpus[option])
        if need < 2 or not self._weight[problem.options.job_class[option]]:
            return fit
        usable = candidates.usable(option, nodes)
        rows = np.packbits(usable, axis=1)
        path = np.empty(len(nodes), dtype=np.int64)
        for i, (node, row) in enumerate(zip(nodes.tolist(), rows, strict=True)):
            key = (need, int(self._machine[node]), row.tobytes())
            known = self._known.get(key)
            if known is None:
                chosen = closest(candidates.state, candidates.slot_gpu[node][usable[i]].tolist(), need)
                distances = problem.topology.node_distances(np.array(chosen, dtype=np.int64))
                known = self._known[key] = int(distances.sum()) // 2
            path[i] = known
        score: np.ndarray = fit + BEYOND_FIT * path
        return score
