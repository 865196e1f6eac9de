"""Prices of a relaxation that guide a construction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.problem import IntArray


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
