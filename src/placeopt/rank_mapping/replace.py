"""A job's placement with its ranks permuted, on the same GPUs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placeopt.errors import Unsupported
from placeopt.problem import Placement, Problem
from placeopt.rank_mapping.ranks import MAX_GPUS, map_ranks
from placeopt.terms.costs.communication import job_cost


def improve_ranks(
    problem: Problem, job: int, placement: Placement, deadline: float, *, seed: int = 0
) -> tuple[Placement, int]:
    """
    Permute the ranks of a job on the GPUs that it holds, so that its communication costs less.

    Every rule still holds: the same GPUs are held, each node has as many workers as before, and a worker's GPUs lie on
    one node (which two of a node's GPUs a worker of two gets may change). Shares stay with their GPUs.

    Parameters
    ----------
    problem, job, placement
        The placement need not be in any state.
    deadline
        Of ``time.monotonic()``.
    seed
        See ``map_ranks``.

    Returns
    -------
    tuple
        The placement, or the same object where nothing better was found, and a proven lower bound on
        ``job_cost`` over all ways to hand out these GPUs. Only a job with edges can gain; for others the bound is its
        cost. Beyond the limits of ``map_ranks`` (1,024 GPUs, costs of 2^47) nothing is tried and the bound is 0.
    """
    communication = problem.class_communication[problem.job_class[job]]
    before = job_cost(problem, job, placement)
    if not communication.edges or before == 0:
        return placement, before
    workers = len(placement.nodes)
    gpus = np.array(placement.gpus, dtype=np.int64)
    if len(gpus) > MAX_GPUS:  # before the table of distances is made
        return placement, 0
    weights = np.zeros((workers, workers), dtype=np.int64)
    for edge in communication.edges:
        a, b = edge.ranks
        if max(a, b) < workers:
            weights[a, b] = weights[b, a] = edge.weight
    try:
        mapping = map_ranks(
            weights,
            problem.topology.pair_distances(gpus),
            problem.gpu_node[gpus],
            gpus_per_rank=len(gpus) // workers,
            inside=int(communication.weight),
            start=np.arange(len(gpus)),
            deadline=deadline,
            seed=seed,
        )
    except Unsupported:
        return placement, 0
    if mapping.cost >= before:
        return placement, mapping.bound
    held = gpus[mapping.order]
    return (
        replace(
            placement,
            nodes=tuple(problem.gpu_node[held].reshape(workers, -1)[:, 0].tolist()),
            gpus=tuple(held.tolist()),
        ),
        mapping.bound,
    )
