"""What a score is: it ranks nodes for a bundle, and may say which GPUs of a node the bundle is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from placeopt.heuristics.gpu_choice import closest
from placeopt.problem import IntArray, Problem

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
