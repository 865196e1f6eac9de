"""Levels inside a machine: groups of GPUs that lie equally close to each other, where distances form such groups."""

from dataclasses import dataclass

import numpy as np

from placeopt.topology.machine_distances import IntArray


@dataclass(frozen=True, eq=False)
class MachineLevels:
    """How the GPUs of a machine lie to each other."""

    exist: bool
    """Whether distances form levels; a cube mesh has none, and then nothing below says anything."""
    height: int
    """Distance of two GPUs that share no group."""
    groups: tuple[tuple[tuple[int, ...], int], ...]
    """GPUs of each group, and by how much its members are closer than those of the next larger one are at most."""
    leaf: IntArray
    """Shape (g,): GPUs of equal number swap without changing any distance inside the machine."""


def machine_levels(distance: IntArray) -> MachineLevels:
    """
    Return the levels of distances, shape (g, g): ``O(h g^2)`` for h different distances that form levels.

    Distances form levels where "at most this far" is transitive for each of them; g GPUs then have fewer than g.
    """
    size = len(distance)
    heights = np.unique(distance[np.triu_indices(size, 1)]).tolist()
    partitions = [np.arange(size)]
    for height in heights:
        near = distance <= height
        first = near.argmax(axis=1)  # of all GPUs that are near: where this is transitive, the name of a group
        if len(heights) >= size or not np.array_equal(near, first[:, None] == first[None, :]):
            return MachineLevels(False, 0, (), np.arange(size))
        partitions.append(first)
    groups: list[tuple[tuple[int, ...], int]] = []
    for above, partition, height in zip(heights[1:], partitions[1:-1], heights, strict=False):
        groups.extend(
            (tuple(int(g) for g in np.flatnonzero(partition == label)), above - height)
            for label in np.unique(partition)
        )
    alike = partitions[1] if heights else partitions[0]
    return MachineLevels(True, heights[-1] if heights else 0, tuple(groups), np.asarray(alike))
