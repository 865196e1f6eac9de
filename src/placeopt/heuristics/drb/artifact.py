"""The rule of SC'17's artifact: of all sets of GPUs of all machines the one of greatest system utility."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from placeopt.heuristics.drb.node import NodeNow
from placeopt.heuristics.drb.node_utility import NodeUtility, Offer
from placeopt.problem import IntArray
from placeopt.terms.costs.utility import talks

FLOOR = 0.01
"""The artifact's floor of every term."""

MOST_SETS = 2_000
"""Sets of GPUs of one node that are all scored; of more, only the one that bi-partitioning finds."""


class ArtifactUtility(NodeUtility):
    """
    The rule of SC'17's artifact: of all sets of GPUs of all machines the one of greatest system utility.

    U_s = 3 f^(1/3) / (t^(1/3) + J^(1/3) + w^(1/3)), f = 0.01, all terms at least f: t as in ``terms.costs.utility``
    (form ``sc17``), J the mean of what the job suffers from and causes to co-runners, as in the artifact a speed (solo
    over collocated time) taken for a cost, w the mean over the machine's sockets of free over total GPUs (0 and 1
    become f).

    Departures from the artifact: the GPUs counted out of w are the chosen ones (it counts others); of equal sets the
    first is taken (it takes the last, by memory addresses); slowdowns are those of the instance at the closest part
    that two jobs share (it has them by numbers of GPUs, and in a common socket only); a GPU is assigned once (it may
    assign it twice a round); jobs on several nodes, which it does not support, are placed as by ``NodeUtility``.
    """

    def _best(self, nodes: NodeNow) -> list[Offer]:
        found = super()._best(nodes)
        if nodes.problem.options.bundles[nodes.option] > 1:
            return found
        for row, ((gpus, _), can) in enumerate(zip(found, nodes.usable, strict=True)):
            sets, usable = np.array([gpus]), np.flatnonzero(can).tolist()
            if comb(len(usable), len(gpus)) <= MOST_SETS:
                sets = np.array(list(combinations(usable, len(gpus))))
            utility = system_utility(nodes, sets, row)
            best = int(utility.argmax())
            found[row] = tuple(sets[best].tolist()), float(utility[best])
        return found


def system_utility(nodes: NodeNow, sets: IntArray, row: int = 0) -> np.ndarray:
    """Return U_s, shape (S,), of a whole job on sets of the GPUs of one of some nodes, by index: (S, k)."""
    problem, option, n, beside = nodes.problem, nodes.option, sets.shape[1], nodes.co_runners
    far = max(1, problem.topology.max_machine_distance) * max(n, n * (n - 1) // 2)
    path = nodes.kind.distances[sets[:, :, None], sets[:, None, :]].sum(axis=(1, 2)) // 2
    more = (path - int(problem.best_path[option])) * talks(problem, option)
    mine = np.flatnonzero(beside.row == row)[:, None]
    nearest = beside.meeting[mine[:, :, None], sets].min(axis=2)  # (co-runners, S)
    suffered, caused = beside.suffered[mine, nearest], beside.caused[mine, nearest]
    slowed = _speeds(caused).sum(axis=0) / np.maximum(1, (caused > 0).sum(axis=0))
    disturbed = (_speeds(suffered).sum(axis=0) / max(1, len(mine)) + slowed) / 2
    free = nodes.free_without(sets)[row]
    terms = more / far, disturbed, np.where(free == 1, 0, free)
    share: np.ndarray = len(terms) * np.cbrt(FLOOR) / sum(np.cbrt(np.maximum(FLOOR, term)) for term in terms)
    return share


def _speeds(excess: IntArray) -> np.ndarray:
    """Return solo over collocated time where jobs disturb each other, else 0."""
    return np.where(excess != 0, 1000 / (1000 + excess), 0.0)
