"""Slots of N free GPUs that a plan leaves; reported, not priced."""

from __future__ import annotations

import numpy as np

from placeopt.problem import IntArray, State
from placeopt.problem.hardware import gpu_parts, node_domains

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
