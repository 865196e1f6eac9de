"""What jobs cost each other where they meet, at least, and the parts of nodes in which that counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.problem import IntArray, Problem, State
from placeopt.terms.costs.interference import nested_domains

SOCKET = 2
"""Level of ``interference.nested_domains``; what is closer shares it."""


@dataclass(frozen=True, eq=False)
class Disturbance:
    """
    Q profiles that disturb, and parts of nodes: nodes where jobs meet anywhere on one, else sockets.

    Profiles that are alike beside all others are one. Each is there twice: for jobs on one node, and Q / 2 later for
    those on several, which may meet each other in many places, where each pair counts once: so that is left out.
    """

    part: IntArray  # (G,) part of each GPU
    pair: IntArray  # (Q, Q) cost of two jobs that meet in a part, at least
    profile: (
        IntArray  # (P + 1,) 0 to Q / 2 - 1 for each profile of the round, -1 where it disturbs no other, or for none
    )

    def of_gangs(self, profile: IntArray) -> IntArray:
        """Return the numbers of profiles for jobs on several nodes."""
        return np.where(profile < 0, -1, profile + len(self.pair) // 2)

    def residents(self, state: State, node: int) -> list[tuple[int, tuple[int, ...]]]:
        """Return profile and GPUs on a node of each job that disturbs there."""
        problem, out = state.problem, []
        a, b = int(problem.node_gpu_start[node]), int(problem.node_gpu_start[node + 1])
        for job in state.node_jobs[node]:
            placement, profile = state.placements[job], self.profile[problem.class_profile[problem.job_class[job]]]
            if placement is not None and profile >= 0:
                gangs = len(set(placement.nodes)) > 1
                number = int(self.of_gangs(profile)) if gangs else int(profile)
                out.append((number, tuple(gpu for gpu in placement.gpus if a <= gpu < b)))
        return out


def disturbance_of(problem: Problem, weight: int) -> Disturbance:
    """Return what counts of the interference of a round; ``weight`` is its weight W, 0 where it costs nothing."""
    by_pairs = problem.policy.interference.model == "pairwise"
    excess = (problem.slowdown + problem.slowdown.transpose(0, 2, 1)) * by_pairs  # (4, P, P), by the closest level
    pairs, part = excess.min(axis=0), problem.gpu_node
    if not pairs.any():
        pairs, part = excess[: SOCKET + 1].min(axis=0), nested_domains(problem)[SOCKET]
    rows, of_profile = np.unique(weight * pairs, axis=0, return_inverse=True)
    of_profile, matters = of_profile.reshape(-1), rows.any(axis=1)
    first = np.array([np.flatnonzero(of_profile == row)[0] for row in np.flatnonzero(matters)], dtype=np.int64)
    number = np.where(matters, np.cumsum(matters) - 1, -1)
    pair = weight * pairs[np.ix_(first, first)]
    both = np.block([[pair, pair], [pair, np.zeros_like(pair)]])
    return Disturbance(part, both, np.append(number[of_profile], -1))
