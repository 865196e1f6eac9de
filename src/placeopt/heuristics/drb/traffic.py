"""What a job's workers, and its GPUs, send to each other."""

from __future__ import annotations

import numpy as np

from placeopt.problem import BoolArray, IntArray, Problem


def rank_traffic(problem: Problem, option: int) -> IntArray | None:
    """Shape (workers, workers): weights of the edges between a job's workers; None where all pairs talk alike."""
    edges = problem.class_communication[problem.options.job_class[option]].edges
    if not edges:
        return None
    workers = int(problem.options.workers[option])
    out = np.zeros((workers, workers), dtype=np.int64)
    for edge in edges:
        a, b = edge.ranks
        if max(a, b) < workers:
            out[a, b] = out[b, a] = edge.weight
    return out


def gpu_traffic(problem: Problem, option: int, ranks: list[int]) -> IntArray | None:
    """Shape (k, k): weights between the GPUs of some ranks, worker after worker; None where all pairs talk alike."""
    between = rank_traffic(problem, option)
    if between is None:
        return None
    inside = int(problem.class_communication[problem.options.job_class[option]].weight)
    gpus = int(problem.options.gpus[option])
    of_ranks = between[np.ix_(ranks, ranks)] + inside * np.eye(len(ranks), dtype=np.int64)
    weights: IntArray = np.kron(of_ranks, np.ones((gpus, gpus), dtype=np.int64))
    np.fill_diagonal(weights, 0)
    return weights


def communicating_jobs(problem: Problem) -> BoolArray:
    """Shape (J,): jobs that state traffic and have an option of several GPUs."""
    options = problem.options
    of_class = [communication.weight > 0 or bool(communication.edges) for communication in problem.class_communication]
    several = options.job_class[options.gpus * options.workers > 1]
    return np.array(of_class, dtype=bool)[problem.job_class] & np.isin(problem.job_class, several)
