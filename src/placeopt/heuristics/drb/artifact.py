"""The rule of SC'17's artifact: of all sets of GPUs of all machines the one of greatest system utility."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from placeopt.heuristics.drb.node_batch import NodeBatch
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

    def _rated(self, batch: NodeBatch) -> list[Offer]:
        options = batch.problem.options
        found = super()._rated(batch)
        if options.bundles[batch.option] > 1:
            return found
        return [self._best(batch.only(i), offer[0]) for i, offer in enumerate(found)]

    def _best(self, node: NodeBatch, gpus: tuple[int, ...]) -> Offer:
        """Return what one node offers; ``gpus`` are those that bi-partitioning gives."""
        sets = np.array([gpus])
        if comb(int(node.usable.sum()), len(gpus)) <= MOST_SETS:
            sets = np.array(list(combinations(np.flatnonzero(node.usable[0]).tolist(), len(gpus))))
        utility = system_utility(node, sets)
        best = int(utility.argmax())
        return tuple(sets[best].tolist()), float(utility[best]), 0.0


def system_utility(node: NodeBatch, sets: IntArray) -> np.ndarray:
    """Return U_s, shape (m,), of a whole job on sets of a node's GPUs, by index: (m, k)."""
    problem, option, n = node.problem, node.option, sets.shape[1]
    far = max(1, problem.topology.max_machine_distance) * max(n, n * (n - 1) // 2)
    more = (node.path(sets) - int(problem.best_path[option])) * talks(problem, option)
    suffered, caused = node.co_runners.excess(sets[None])
    felt = _speeds(suffered).sum(axis=0) / max(1, len(suffered))
    slowed = _speeds(caused).sum(axis=0) / np.maximum(1, (caused > 0).sum(axis=0))
    free = node.free_without(sets[None])[0]
    terms = more / far, (felt + slowed) / 2, np.where(free == 1, 0, free)
    share: np.ndarray = 3 * FLOOR ** (1 / 3) / sum(np.maximum(FLOOR, term) ** (1 / 3) for term in terms)
    return share


def _speeds(excess: IntArray) -> np.ndarray:
    """Return solo over collocated time where jobs disturb each other, else 0."""
    return np.where(excess > 0, 1000 / (1000 + excess), 0)
