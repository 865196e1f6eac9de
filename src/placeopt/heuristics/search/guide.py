"""What a relaxation of the whole round says about single jobs and nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.problem import IntArray


@dataclass(frozen=True, eq=False)
class Guide:
    """
    Prices, in units of the cost level. They steer; nothing is proven by them.

    Attributes
    ----------
    surplus
        Shape (O,): what a job in the option costs beyond what it is worth, at these prices; the less the better.
    gpu_rent
        Shape (N,): of a GPU on each node.
    node_rent
        Shape (N,): of a bundle that needs more than ``half`` of the GPUs that are idle on the node.
    half
        Shape (N,).
    """

    surplus: np.ndarray
    gpu_rent: IntArray
    node_rent: IntArray
    half: IntArray

    def rent(self, gpus: int, nodes: IntArray) -> IntArray:
        """Shape (len(nodes),): what a bundle of so many GPUs pays for its place."""
        large = np.where(gpus > self.half[nodes], self.node_rent[nodes], 0)
        paid: IntArray = gpus * self.gpu_rent[nodes] + large
        return paid
