"""Fragmentation gradient descent: a job goes where it makes the least of what is left useless (Weng et al., ATC'23)."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.scores.fragmentation_columns import GradientColumns
from placeopt.problem import RESOURCES, IntArray, Problem, State
from placeopt.problem.target import Target, weigh
from placeopt.terms.costs.fgd import changes_if_placed

CPU = RESOURCES.index("cpu_millicores")


class FragmentationGradient:
    """
    The node, and there the GPU, with the smallest increase of F_n, the GPU share that the target workload cannot use.

    The target is the policy's (``fragmentation.form`` ``fgd``); under another form the jobs of the round themselves:
    the first option of each, by frequency. Departure from the authors' simulator: increases are compared as they are,
    not as whole points of a sigmoid, so ties by node name are rare. On nodes of one GPU model and for one worker of
    whole GPUs all choices of GPUs are equal, and the first usable ones are taken.
    """

    cacheable = True

    def __init__(self, problem: Problem, counts: IntArray | None = None) -> None:
        """Take the target from the policy, or from so many jobs of each class, shape (K,)."""
        if counts is None:
            counts = np.bincount(problem.job_class, minlength=len(problem.class_communication))
        self.target = problem.target if len(problem.target) else _own_target(problem, counts)

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Smallest increase over the GPUs of each node, shape (len(nodes),)."""
        usable = candidates.usable(option, nodes)
        changes = changes_if_placed(candidates.state, option, nodes, usable, self.target)
        score: np.ndarray = changes.min(axis=1).astype(float) if changes.shape[1] else np.zeros(len(nodes))
        return score

    def columns(self, state: State, representatives: list[int]) -> GradientColumns:
        """Prepare the same score for a table; each shape of jobs is represented by an option."""
        return GradientColumns(self.target, state, representatives)

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """Return the GPU with the smallest increase and the next usable ones; ties by number."""
        node = int(candidates.problem.gpu_node[gpus[0]])
        first = candidates.problem.first_gpu[node]
        usable = np.zeros((1, candidates.slot_gpu.shape[1]), dtype=bool)
        usable[0, [gpu - first for gpu in gpus]] = True
        changes = changes_if_placed(candidates.state, option, np.array([node]), usable, self.target)[0]
        at = gpus.index(first + int(changes.argmin()))
        return tuple(gpus[at : at + need])


def _own_target(problem: Problem, jobs: IntArray) -> Target:
    """Return the jobs of the round as target: the first option of every class, weighted by its workers."""
    options = problem.options
    has = np.flatnonzero(np.diff(problem.class_option_start) > 0)
    first = problem.class_option_start[:-1][has]
    return weigh(
        options.gpus[first],
        np.where(options.gpus[first] > 0, options.milli[first], 1),
        options.demand[first, CPU],
        options.gpu_type_ok[first],
        jobs[has] * options.workers[first],
    )
