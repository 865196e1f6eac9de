"""The rule of SC'17's artifact: of all sets of GPUs of all machines the one of greatest system utility."""

from __future__ import annotations

from collections.abc import Sequence
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

    def _best(self, node: NodeNow) -> Offer:
        found = super()._best(node)
        if node.problem.options.bundles[node.option] > 1:
            return found
        sets, usable = np.array([found[0]]), np.flatnonzero(node.usable).tolist()
        if comb(len(usable), len(found[0])) <= MOST_SETS:
            sets = np.array(list(combinations(usable, len(found[0]))))
        utility = system_utility(node, sets)
        best = int(utility.argmax())
        return tuple(sets[best].tolist()), float(utility[best])


def system_utility(node: NodeNow, sets: IntArray) -> np.ndarray:
    """Return U_s, shape (S,), of a whole job on sets of a node's GPUs, by index: (S, k)."""
    problem, option, n = node.problem, node.option, sets.shape[1]
    far = max(1, problem.topology.max_machine_distance) * max(n, n * (n - 1) // 2)
    path = node.kind.distances[sets[:, :, None], sets[:, None, :]].sum(axis=(1, 2)) // 2
    more = (path - int(problem.best_path[option])) * talks(problem, option)
    felt, slowed, slowing = (np.zeros(len(sets)) for _ in range(3))
    for meeting, suffered, caused in node.co_runners:
        nearest = np.array(meeting)[sets].min(axis=1)
        felt += _speeds(suffered)[nearest]
        slowed += _speeds(caused)[nearest]
        slowing += np.array(caused)[nearest] > 0
    disturbed = (felt / max(1, len(node.co_runners)) + slowed / np.maximum(1, slowing)) / 2
    free = (sum(node.share) - np.array(node.share)[sets].sum(axis=1)) / node.kind.whole
    terms = more / far, disturbed, np.where(free == 1, 0, free)
    share: np.ndarray = len(terms) * np.cbrt(FLOOR) / sum(np.cbrt(np.maximum(FLOOR, term)) for term in terms)
    return share


def _speeds(excess: Sequence[int]) -> np.ndarray:
    """Return solo over collocated time where jobs disturb each other, else 0."""
    return np.array([1000 / (1000 + more) if more else 0.0 for more in excess])
