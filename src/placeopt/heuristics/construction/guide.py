"""Prices of a relaxation that guide a construction, and the rankings of nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.problem import IntArray

RANKINGS = ("close_fit", "marginal_cost", "filled_cost")
"""Scores by which nodes for single bundles are ranked: by fit, by cost, by cost as if opened domains fill up."""


@dataclass(frozen=True, eq=False)
class Guide:
    """Prices from a relaxation of the whole round, in units of the cost level. They prove nothing."""

    surplus: np.ndarray  # (O,) cost of a job in the option beyond its worth, at these prices; the less the better
    gpu_rent: IntArray  # (N,) of a GPU on each node
    node_rent: IntArray  # (N,) of a bundle that needs more than ``half`` of the GPUs that are idle on the node
    half: IntArray  # (N,)

    def rent(self, gpus: int, nodes: IntArray) -> IntArray:
        """Shape (len(nodes),): rent of a bundle of ``gpus`` GPUs."""
        large = np.where(gpus > self.half[nodes], self.node_rent[nodes], 0)
        paid: IntArray = gpus * self.gpu_rent[nodes] + large
        return paid
