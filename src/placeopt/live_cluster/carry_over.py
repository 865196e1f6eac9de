"""What is held on some nodes of a live cluster, under the numbers of another problem."""

from __future__ import annotations

import numpy as np

from placeopt.problem import IntArray, Problem, State


def carried_over(state: State, problem: Problem, nodes: IntArray) -> State:
    """
    Return what is held on ``nodes`` of ``state``, ascending, as a state of a problem whose first nodes these are.

    ``problem`` lists nothing that runs; its further nodes are idle. Machines, and the domains of the cluster, are the
    same in both. No job of ``state`` holds anything on its other nodes, or the problem does not ask for its load there.
    """
    before, out = state.problem, State(problem)
    gpus = np.flatnonzero(np.isin(before.gpu_node, nodes))
    n, g = len(nodes), len(gpus)
    out.node_free[:n] -= (before.node_capacity - state.node_free)[nodes]
    out.gpu_free_milli[:g], out.gpu_free_memory[:g] = state.gpu_free_milli[gpus], state.gpu_free_memory[gpus]
    out.gpu_jobs[:g], out.gpu_utilisation[:g] = state.gpu_jobs[gpus], state.gpu_utilisation[gpus]
    out.gpu_slots[:g] = state.gpu_slots[gpus]
    for level, free in zip(problem.levels, out.level_free, strict=True):
        held = level.gpu_to_domain[out.gpu_jobs > 0]
        free -= np.bincount(held[held >= 0], minlength=len(free))
    out.link_load[:n], out.link_load[problem.num_nodes :] = state.link_load[nodes], state.link_load[before.num_nodes :]
    out.queue_used[:] = state.queue_used
    shifts = (problem.node_gpu_start[:n] - before.node_gpu_start[nodes]).tolist()
    for there, node, by in zip(out.tenants, nodes.tolist(), shifts, strict=False):
        here = state.tenants[node]
        if by:
            here = {(profile, tuple([gpu + by for gpu in held])): count for (profile, held), count in here.items()}
        there.update(here)
    return out
