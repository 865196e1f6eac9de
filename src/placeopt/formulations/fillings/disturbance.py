"""What jobs cost each other where they meet, at least, and the parts of nodes in which that counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.formulations.cost_relaxation.profile_mixes import SOCKET, both_ways
from placeopt.problem import IntArray, Problem
from placeopt.terms.costs.interference import nested_domains


@dataclass(frozen=True, eq=False)
class Disturbance:
    """
    Q profiles that disturb, and parts of nodes: nodes where jobs meet anywhere on one, else sockets.

    Profiles that are alike beside all others are one.
    """

    part: IntArray  # (G,) part of each GPU
    pair: IntArray  # (Q, Q) cost of two jobs that meet in a part, at least
    profile: IntArray  # (P + 1,) 0 to Q - 1 for each profile of the round, -1 where it disturbs no other; -1 for none


def disturbance_of(problem: Problem, weight: int) -> Disturbance:
    """Return what counts of the interference of a round; ``weight`` is its weight W, 0 where it costs nothing."""
    excess = both_ways(problem)
    pairs, part = excess.min(axis=0), problem.gpu_node
    if not pairs.any():
        pairs, part = excess[: SOCKET + 1].min(axis=0), nested_domains(problem)[SOCKET]
    rows, of_profile = np.unique(weight * pairs, axis=0, return_inverse=True)
    of_profile, matters = of_profile.reshape(-1), rows.any(axis=1)
    first = np.array([np.flatnonzero(of_profile == row)[0] for row in np.flatnonzero(matters)], dtype=np.int64)
    number = np.where(matters, np.cumsum(matters) - 1, -1)
    return Disturbance(part, weight * pairs[np.ix_(first, first)], np.append(number[of_profile], -1))
