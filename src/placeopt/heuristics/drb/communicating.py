"""Dual recursive bi-partitioning for jobs that communicate, a score of nodes for all others."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.drb.place import Bipartition
from placeopt.heuristics.greedy_pass import ByScore, table_for
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import BoolArray, Placement, Problem, State


class BipartitionOfCommunicating:
    """Chooses places by bi-partitioning for `communicating_jobs`, by ``score`` for others; see ``greedy.Chooser``."""

    def __init__(self, state: State, score: str) -> None:
        self._communicating = communicating_jobs(state.problem)
        self._bipartition = Bipartition(state)
        self._by_score = table_for(state, score) or ByScore(Candidates(state, score_named(score, state.problem)))

    def place(self, job: int) -> Placement | None:
        """See ``greedy.Chooser``."""
        return (self._bipartition if self._communicating[job] else self._by_score).place(job)

    def changed(self, node: int) -> None:
        """See ``greedy.Chooser``."""
        self._bipartition.changed(node)
        self._by_score.changed(node)


def communicating_jobs(problem: Problem) -> BoolArray:
    """Shape (J,): jobs that state traffic and have an option of several GPUs."""
    options = problem.options
    of_class = [communication.weight > 0 or bool(communication.edges) for communication in problem.class_communication]
    several = options.job_class[options.gpus * options.workers > 1]
    return np.array(of_class, dtype=bool)[problem.job_class] & np.isin(problem.job_class, several)
