"""Rank nodes by how close a bundle's GPUs would be there, and equally close ones by fit."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.scores.fit import BestFit
from placeopt.heuristics.scores.score import FloatArray, Score, closest
from placeopt.heuristics.scores.table import Columns
from placeopt.problem import BoolArray, IntArray, Problem, State

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
                gpus = candidates.slot_gpu[node][usable[i]].tolist()
                known = self._known[key] = closest_path(candidates.state, gpus, need)
            path[i] = known
        score: np.ndarray = fit + BEYOND_FIT * path
        return score

    def columns(self, state: State) -> CloseFitColumns | None:
        """Prepare the same score for a table, where jobs of a shape repeat."""
        made = CloseFitColumns(state, self._fit, self.option_features(state.problem)[:, 0] > 0)
        return made if 2 * len(made.of) <= state.problem.num_jobs else None


class CloseFitColumns(Columns):
    """``CloseFit`` of every shape at once."""

    in_place = True

    def __init__(self, state: State, fit: BestFit, has_traffic: BoolArray) -> None:
        """``has_traffic``, (O,): options whose bundles have traffic between GPUs of a node."""
        super().__init__(state)
        self._fit, self._demand = fit, np.column_stack((self.cpu, self.memory))
        self._node: dict[int, int] = {c: n for n, c in enumerate(self.problem.node_class.tolist())}
        talking = np.flatnonzero(has_traffic[self.of])
        kinds, kind = np.unique(np.column_stack((self.gpus, self.milli))[talking], axis=0, return_inverse=True)
        self._kinds = [(gpus, milli, talking[kind.ravel() == k]) for k, (gpus, milli) in enumerate(kinds.tolist())]
        self._paths: dict[tuple[int, int, tuple[int, ...]], int] = {}

    def column(self, node_class: int, cpu: int, memory: int, left: tuple[int, ...]) -> FloatArray:
        """See ``Columns``."""
        free = np.array([cpu, memory], dtype=np.int64)
        score = self._fit.score(sum(left) - self.gpus * self.milli, free - self._demand)
        for need, milli, shapes in self._kinds:
            usable = tuple([gpu for gpu, free in enumerate(left) if free >= milli])
            if len(usable) >= need:
                score[shapes] += BEYOND_FIT * self._path(node_class, need, usable)
        return score

    def _path(self, node_class: int, need: int, usable: tuple[int, ...]) -> int:
        """Return the path between the closest GPUs of some of a node."""
        path = self._paths.get((node_class, need, usable))
        if path is None:
            first = self.problem.first_gpu[self._node[node_class]]
            path = closest_path(self.state, [first + gpu for gpu in usable], need)
            self._paths[node_class, need, usable] = path
        return path


def closest_path(state: State, gpus: list[int], need: int) -> int:
    """Return the path between the ``need`` closest of some GPUs of a node."""
    chosen = np.array(closest(state, gpus, need), dtype=np.int64)
    return int(state.problem.topology.node_distances(chosen).sum()) // 2
