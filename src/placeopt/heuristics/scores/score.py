"""What a score is: it ranks nodes for a bundle, and may say which of the usable GPUs of a node the bundle is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from placeopt.problem import IntArray, Problem, State
from placeopt.problem.growth import grown_sets, starts

if TYPE_CHECKING:
    from placeopt.heuristics.candidates import Candidates


FloatArray = np.ndarray


class Score(ABC):
    """Ranks nodes for a bundle of an option, the lower the better, and picks its GPUs on one."""

    excludes_gpus = False
    """Whether `excluded_gpus` may name any."""

    def __init__(self, problem: Problem) -> None:
        """Look up what is the same for all decisions."""
        del problem

    @abstractmethod
    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> FloatArray:
        """Return the scores of ``nodes``, (k,), on all of which a bundle of ``option`` fits."""

    def option_features(self, problem: Problem) -> IntArray:
        """
        Return what the score reads of an option beyond its demand on a node.

        Parameters
        ----------
        problem
            The compiled round.

        Returns
        -------
        array of int
            Shape (O, anything).
        """
        return np.zeros((len(problem.options), 0), dtype=np.int64)

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """
        Return the GPUs of a node that a bundle is given: the closest together.

        Parameters
        ----------
        candidates
            What is free.
        option
            The bundle's.
        gpus
            Usable ones of the node, ascending.
        need
            How many the bundle takes.

        Returns
        -------
        tuple of int
            So many of ``gpus``.
        """
        del option
        return closest(candidates.state, gpus, need)

    def excluded_gpus(self, candidates: Candidates, option: int, gpus: list[int]) -> list[int]:
        """
        Return the GPUs of a node that a bundle shall not have although they have room.

        Parameters
        ----------
        candidates
            What is free.
        option
            The bundle's.
        gpus
            Those of the node with room.

        Returns
        -------
        list of int
            Some of ``gpus``.
        """
        del candidates, option, gpus
        return []

    def randomize(self, scores: FloatArray) -> FloatArray:
        """
        Return the scores of all nodes as one decision takes them.

        Parameters
        ----------
        scores
            Shape (N,), as they are kept from decision to decision.

        Returns
        -------
        array of float
            Shape (N,).
        """
        return scores


STEPS = 1 << 22
"""GPUs looked at in one choice of GPUs on a node; all choices up to 161 GPUs try every one as the first."""


def cheapest(gpus: list[int], cost: np.ndarray, need: int) -> tuple[int, ...]:
    """Return the ``need`` of ``gpus`` that cost least, ties by their order."""
    return tuple(sorted(gpus[i] for i in np.argsort(cost, kind="stable")[:need].tolist()))


def closest(state: State, gpus: list[int], need: int) -> tuple[int, ...]:
    """
    Choose ``need`` of ``gpus`` (all of one node): the fullest GPU first, then the nearest to those taken.

    Every GPU is tried as the first one; the set with the least total distance wins, ties go to the set that leaves
    the least of its GPUs and sockets over. Of many GPUs, evenly spaced ones are tried, so that a choice takes about
    ``STEPS`` steps: 512 of 1,024 GPUs are grown from 8.
    """
    problem, here = state.problem, np.array(gpus, dtype=np.int64)
    socket = problem.gpu_socket[here]
    free_gpu = (state.gpu_free_milli if problem.shares_bind else state.gpu_utilisation)[here]
    # what is free of each GPU and, less important, of its socket: the smaller the better to take
    fullness = free_gpu * 1024 + np.bincount(socket - socket.min())[socket - socket.min()]
    if need == 1:
        return (int(here[np.lexsort((here, fullness))[0]]),)
    order = np.argsort(fullness, kind="stable")
    here, full = here[order], fullness[order]  # of equally near GPUs the one listed first is taken
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    first = place[starts(len(order), need, STEPS)]
    members, path = grown_sets(problem.topology.node_distances(here), need, first)
    best = np.lexsort((full[members].sum(axis=1), path[:, -1]))[0]
    return tuple(np.sort(here[members[best]]).tolist())
