"""Reported, not priced: how many slots of N free GPUs a plan leaves, and the paper's own measure of fragmentation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from placeopt.problem import IntArray, State
from placeopt.problem.domains import gpu_parts, node_domains

SIZES = (1, 2, 4, 8)


def slots_left(state: State) -> dict[str, int]:
    """
    Count the slots of 1, 2, 4 and 8 whole free GPUs that are left, at every level that the cluster has.

    A domain of f free GPUs has ``f // N`` slots of N; ``slots_node_4`` is their sum over nodes. Drained nodes take no
    new work and count nothing. Levels: socket, switch, node, those of the cluster's domains, and ``cluster``.
    """
    problem = state.problem
    free = (state.gpu_jobs == 0) & problem.node_schedulable[problem.gpu_node]
    levels: dict[str, IntArray] = {
        level: gpu_parts(problem.instance, problem.topology, level) for level in ("switch", "socket")
    }
    levels["node"] = problem.gpu_node
    for level in dict.fromkeys(domain.level for domain in problem.instance.cluster.domains):
        levels[level] = node_domains(problem.instance, level)[problem.gpu_node]
    levels["cluster"] = np.zeros(problem.num_gpus, dtype=np.int64)
    out: dict[str, int] = {}
    for level, domain in levels.items():
        if not (domain >= 0).any():
            continue
        count = np.bincount(domain[free & (domain >= 0)])
        out.update({f"slots_{level}_{size}": int((count // size).sum()) for size in SIZES})
    return out


def sc17_fragmentation(state: State) -> Fraction:
    """
    Mean over sockets of free / total GPUs (Amaral et al., SC'17, eq. 5): 1 is an empty cluster, 0 a full one.

    A GPU is free if no job holds any of it; what stands in no socket counts as a socket a node. 0 without GPUs. Over a
    round on equal sockets it is a constant once the jobs are chosen, so it steers choices inside one decision only.
    """
    problem = state.problem
    socket = np.where(problem.gpu_socket >= 0, problem.gpu_socket, -1 - problem.gpu_node)
    _, number = np.unique(socket, return_inverse=True)
    total = np.bincount(number)
    free = np.bincount(number[state.gpu_jobs == 0], minlength=len(total))
    parts = [Fraction(int(f), int(t)) for f, t in zip(free, total, strict=True)]
    return sum(parts, Fraction(0)) / len(parts) if parts else Fraction(0)
