"""Fragmentation gradient descent: a job goes where it makes the least of what is left useless (Weng et al., ATC'23)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.scores.score import Score
from placeopt.heuristics.scores.table import MOST_STATES, Columns, FloatArray
from placeopt.problem import CPU, GPU_MILLI, IntArray, Problem, State
from placeopt.problem.target import Target, weigh
from placeopt.terms.costs.fgd import changes_if_placed


@dataclass(frozen=True, eq=False)
class _Wanted:
    """The typical workers that take a type of GPU, in groups that ask for the same GPUs: Q of them, R CPU demands."""

    gpus: IntArray  # (Q,)
    hosted: FloatArray  # (Q, R + 1) frequency of those that the r smallest CPU demands cover
    held: FloatArray  # (1001, Q) free share for a worker of the group, by free share of the GPU
    enough: IntArray  # (1001, Q) 1 where it has enough left for one


class GradientColumns(Columns):
    """
    The change of F_n by every shape at once, for nodes of one GPU model.

    With ``u_q`` the free share of the GPUs that group q could take, and 0 where these are too few, F_n is
    ``total x all that is left - sum over q of u_q x frequency of those whose CPU demand is met``. All of it depends on
    the free share of the GPUs and on how many of the typical CPU demands are met, so it is cached by these. Numbers
    are whole and below 2^53, so floats hold them exactly.
    """

    def __init__(self, target: Target, state: State) -> None:
        super().__init__(state)
        self.target = target
        self._demands: IntArray = np.unique(target.cpu)
        self._needs, self._need = np.unique(self.cpu, return_inverse=True)
        first, problem = self.problem.first_gpu, self.problem
        node_of_class = {c: n for n, c in enumerate(problem.node_class.tolist())}
        with_gpus = {c: first[n] for c, n in node_of_class.items() if first[n] < first[n + 1]}
        self._wanted = {c: _wanted(target, int(problem.gpu_type[gpu]), self._demands) for c, gpu in with_gpus.items()}
        kinds, kind = np.unique(np.column_stack((self.gpus, self.milli)), axis=0, return_inverse=True)
        self._kind_gpus, self._share = kinds.T
        self._row = kind.reshape(-1) * (len(self._demands) + 1)  # of each shape, in the flat table of a state of GPUs
        self._cache: dict[tuple[int, tuple[int, ...]], tuple[FloatArray, FloatArray]] = {}

    def column(self, node_class: int, cpu: int, memory: int, left: tuple[int, ...]) -> FloatArray:
        """See ``Columns``."""
        del memory
        key = (node_class, left)
        cached = self._cache.get(key)
        if cached is None:
            if len(self._cache) >= MOST_STATES:
                self._cache.clear()
            cached = self._cache[key] = self._of_gpus(node_class, left)
        now, after = cached
        met = self._demands.searchsorted(cpu - self._needs, side="right")
        change: FloatArray = (
            after.take(self._row + met.take(self._need)) - now[self._demands.searchsorted(cpu, "right")]
        )
        return change

    def _of_gpus(self, node_class: int, left: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """Return F_n now, R + 1, and the least after each kind of demand, kinds x (R + 1), by CPU demands met."""
        if not left:
            width = len(self._demands) + 1
            return np.zeros(width), np.zeros(len(self._share) * width)
        wanted, at = self._wanted[node_class], np.array(left, dtype=np.int64)
        held, enough = wanted.held[at].sum(axis=0), wanted.enough[at].sum(axis=0)
        now = self._lost(wanted, int(at.sum()), held, enough)
        levels = np.unique(at)
        rest = levels[None, :] - self._share[:, None]  # (kinds, levels)
        taken = self._kind_gpus[:, None, None]
        after = np.maximum(rest, 0)
        held = held + taken * (wanted.held[after] - wanted.held[levels])
        enough = enough + taken * (wanted.enough[after] - wanted.enough[levels])
        lost = self._lost(wanted, int(at.sum()) - (self._kind_gpus * self._share)[:, None], held, enough)
        room = np.array([np.count_nonzero(at == level) for level in levels.tolist()])
        fits = (rest >= 0) & ((self._kind_gpus[:, None] <= 1) | (room >= self._kind_gpus[:, None]))
        return now, np.where(fits[:, :, None], lost, np.inf).min(axis=1).ravel()

    def _lost(self, wanted: _Wanted, left: int | IntArray, held: FloatArray, enough: IntArray) -> FloatArray:
        """F_n by the number of CPU demands met, the last axis; ``left`` in all, ``held`` and ``enough`` (..., Q)."""
        usable = np.where(enough >= wanted.gpus, held, 0.0)
        lost: FloatArray = self.target.total * np.asarray(left, dtype=float)[..., None] - usable @ wanted.hosted
        return lost

    def pick(self, option: int, node: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """Return the GPU of a node where a share changes F_n least, ties by number, or the first whole ones."""
        shape = self.row[option]
        share = int(self.milli[shape])
        if share >= 1000:
            return tuple(gpus[:need])
        return (gpus[int(self.changes(shape, node, gpus, share).argmin())],)

    def changes(self, shape: int, node: int, gpus: list[int], share: int) -> FloatArray:
        """Change of F_n by a share of each of ``gpus``, all of one node."""
        wanted, first = self._wanted[int(self.problem.node_class[node])], self.problem.first_gpu
        cpu = int(self.state.node_free[node, CPU])
        met = np.searchsorted(self._demands, [cpu, cpu - int(self.cpu[shape])], side="right")
        at = np.maximum(self.state.gpu_free_milli[first[node] : first[node + 1]], 0)
        held, enough = wanted.held[at].sum(axis=0), wanted.enough[at].sum(axis=0)
        before = self._lost(wanted, int(at.sum()), held, enough)[met[0]]
        levels = self.state.gpu_free_milli[gpus]
        held = held + wanted.held[levels - share] - wanted.held[levels]
        enough = enough + wanted.enough[levels - share] - wanted.enough[levels]
        change: FloatArray = self._lost(wanted, int(at.sum()) - share, held, enough)[:, met[1]] - before
        return change


def _wanted(target: Target, gpu_type: int, demands: IntArray) -> _Wanted:
    mine = np.flatnonzero(target.type_ok[:, gpu_type] & (target.gpus > 0))
    groups, group = np.unique(np.column_stack((target.gpus, target.milli))[mine], axis=0, return_inverse=True)
    by_demand = np.zeros((len(groups), len(demands) + 1))
    np.add.at(by_demand, (group.reshape(-1), np.searchsorted(demands, target.cpu[mine]) + 1), target.parts[mine])
    level = np.arange(GPU_MILLI + 1)[:, None]
    enough = (level >= groups[:, 1]).astype(np.int64)
    return _Wanted(groups[:, 0], by_demand.cumsum(axis=1), (enough * level).astype(float), enough)


class FragmentationGradient(Score):
    """
    The node, and there the GPU, with the smallest increase of F_n, the GPU share that the target workload cannot use.

    The target is the policy's (``fragmentation.form`` ``fgd``); under another form the jobs of the round themselves:
    the first option of each, by frequency. Departure from the authors' simulator: increases are compared as they are,
    not as whole points of a sigmoid, so ties by node name are rare. On nodes of one GPU model and for one worker of
    whole GPUs all choices of GPUs are equal, and the first usable ones are taken.
    """

    def __init__(self, problem: Problem, counts: IntArray | None = None) -> None:
        """Take the target from the policy, or from ``counts`` jobs of each class, (K,)."""
        counts = problem.jobs_per_class if counts is None else counts
        self.target = problem.target if len(problem.target) else _own_target(problem, counts)
        self._columns: GradientColumns | None = None

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Smallest increase over the GPUs of each node, shape (len(nodes),)."""
        usable = candidates.usable(option, nodes)
        changes = changes_if_placed(candidates.state, option, nodes, usable, self.target)
        score: np.ndarray = changes.min(axis=1).astype(float) if changes.shape[1] else np.zeros(len(nodes))
        return score

    def columns(self, state: State) -> GradientColumns:
        """Prepare the same score for a table."""
        self._columns = GradientColumns(self.target, state)
        return self._columns

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """Return the GPU with the smallest increase and the next usable ones; ties by number."""
        node = int(candidates.problem.gpu_node[gpus[0]])
        if self._columns is not None and option in self._columns.row:
            return self._columns.pick(option, node, gpus, need)
        first = candidates.problem.first_gpu[node]
        usable = np.zeros((1, candidates.slot_gpu.shape[1]), dtype=bool)
        usable[0, [gpu - first for gpu in gpus]] = True
        changes = changes_if_placed(candidates.state, option, np.array([node]), usable, self.target)[0]
        at = gpus.index(first + int(changes.argmin()))
        return tuple(gpus[at : at + need])


def _own_target(problem: Problem, jobs: IntArray) -> Target:
    """Return the jobs of the round as target: the first option of every class, weighted by its workers."""
    options = problem.options
    has, first = problem.first_options
    return weigh(
        options.gpus[first],
        np.where(options.gpus[first] > 0, options.milli[first], 1),
        options.demand[first, CPU],
        options.gpu_type_ok[first],
        jobs[has] * options.workers[first],
    )
