"""Which of the usable GPUs of a node a bundle is given: those that cost least, or the closest together."""

from __future__ import annotations

import numpy as np

from placeopt.problem import State
from placeopt.problem.growth import grown_sets, starts

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
