"""What a job's workers, and its GPUs, send to each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.problem import BoolArray, IntArray, Problem
from placeopt.terms.costs.communication import rank_traffic


def task_traffic(problem: Problem, option: int, ranks: Sequence[int], each: int = 1) -> IntArray | None:
    """Shape (k, k), zero diagonal: weights between ``each`` tasks of some ranks, rank after rank; None: all alike."""
    communication = problem.class_communication[problem.options.job_class[option]]
    if not communication.edges:
        return None
    between = rank_traffic(communication, int(problem.options.workers[option]))[np.ix_(ranks, ranks)]
    np.fill_diagonal(between, communication.weight)
    weights: IntArray = between.repeat(each, axis=0).repeat(each, axis=1)
    np.fill_diagonal(weights, 0)
    return weights


def communicating_jobs(problem: Problem) -> BoolArray:
    """Shape (J,): jobs that state traffic and have an option of several GPUs."""
    options = problem.options
    of_class = [communication.weight > 0 or bool(communication.edges) for communication in problem.class_communication]
    several = options.job_class[options.gpus * options.workers > 1]
    return np.array(of_class, dtype=bool)[problem.job_class] & np.isin(problem.job_class, several)
