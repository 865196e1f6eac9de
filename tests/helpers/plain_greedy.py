"""Greedy without anything remembered: every decision scores all nodes anew, by formulas written out in arrays."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics import Candidates, Stranding, score_named
from placeopt.heuristics.candidates import closest
from placeopt.heuristics.greedy_pass import ByScore
from placeopt.heuristics.scores.fit import SOFTPLUS_WIDTH, STRANDING_WEIGHT, UNTOUCHED_WEIGHT
from placeopt.problem import CPU, MEMORY, IntArray, Problem, State


class PlainStranding:
    """``Stranding`` by its definition, term after term."""

    def __init__(self, problem: Problem) -> None:
        self._means = Stranding(problem)

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle fits."""
        state, options = candidates.state, candidates.problem.options
        workers = int(options.bundle_workers[option])
        free = candidates.free_milli(nodes) / 1000
        idle, before = free.sum(axis=1), state.node_free[nodes]
        after = before - workers * options.demand[option]
        gpus, share = int(options.bundle_gpus[option]), int(options.milli[option]) / 1000
        change = self._stranded(idle - gpus * share, after) - self._stranded(idle, before)
        untouched = (free >= 1).sum(axis=1).astype(float)
        left_over = np.zeros(len(nodes))
        if gpus and share < 1:
            smallest = np.where(candidates.usable(option, nodes), free, np.inf).min(axis=1)
            left_over = smallest - share
            untouched -= smallest >= 1
        else:
            untouched -= gpus
        score: np.ndarray = STRANDING_WEIGHT * change + left_over + UNTOUCHED_WEIGHT * untouched
        return score

    def _stranded(self, idle: np.ndarray, free: IntArray) -> np.ndarray:
        stranded: np.ndarray = sum(
            SOFTPLUS_WIDTH * np.logaddexp(0, (idle - free[:, resource] / per_gpu) / SOFTPLUS_WIDTH)
            for resource, per_gpu in ((CPU, self._means.cpu_per_gpu), (MEMORY, self._means.memory_per_gpu))
        )
        return stranded


class PlainCandidates(Candidates):
    """Candidates that look at every node again whenever they are asked."""

    remembers = False

    def scores(self, option: int) -> np.ndarray:
        """See ``Candidates``."""
        rooms = self.free_rooms(option)
        scores, nodes = np.full(len(rooms), np.inf), np.flatnonzero(rooms)
        if len(nodes):
            scores[nodes] = self._score(self, option, nodes)
        return scores if self._randomize is None else self._randomize(scores)

    def free_rooms(self, option: int) -> IntArray:
        """See ``Candidates``."""
        options, workers = self.problem.options, int(self.problem.options.bundle_workers[option])
        rooms = np.full(self.problem.num_nodes, int(options.bundles[option]))
        for resource, need in enumerate((options.demand[option] * workers).tolist()):
            if need:
                rooms = np.minimum(rooms, self.state.node_free[:, resource] // need)
        if options.gpus[option]:
            usable = self.usable(option, np.arange(self.problem.num_nodes)).sum(axis=1)
            rooms = np.minimum(rooms, usable // int(options.bundle_gpus[option]))
        rooms = np.clip(rooms, 0, int(options.workers_per_node[option]) // workers)
        return np.where(self.problem.node_ok(option), rooms, 0)

    def usable(self, option: int, nodes: IntArray) -> np.ndarray:
        """See ``Candidates``."""
        problem, state, options = self.problem, self.state, self.problem.options
        gpus = self.slot_gpu[nodes]
        usable = self.slot_exists[nodes] & problem.gpu_ok(option)[gpus]
        if problem.shares_bind:
            usable &= state.gpu_free_milli[gpus] >= int(options.milli[option])
        if problem.jobs_per_gpu is not None:
            usable &= state.gpu_jobs[gpus] < problem.jobs_per_gpu
        usable &= state.gpu_free_memory[gpus] >= int(options.gpu_memory_mib[option])
        if self._excluded_gpus is not None and usable.any():
            usable &= ~np.isin(gpus, self._excluded_gpus(self, option, gpus[usable].tolist()))
        return usable

    def choose_gpus(self, option: int, node: int, held: frozenset[int] = frozenset()) -> tuple[int, ...]:
        """See ``Candidates``."""
        need = int(self.problem.options.bundle_gpus[option])
        if not need:
            return ()
        gpus = [g for g in self.slot_gpu[node][self.usable(option, np.array([node]))[0]].tolist() if g not in held]
        if len(gpus) <= need:
            return tuple(gpus)
        return closest(self.state, gpus, need) if self._pick is None else self._pick(self, option, gpus, need)


def plain_chooser(score: str) -> type[ByScore]:
    """Return a chooser for ``greedy`` that decides as the score of that name does."""

    class Plain(ByScore):
        def __init__(self, state: State) -> None:
            made = PlainStranding(state.problem) if score == "stranding" else score_named(score, state.problem)
            super().__init__(PlainCandidates(state, made))

    return Plain
