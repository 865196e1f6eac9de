"""How close together k GPUs of a machine can be, of those that are usable."""

from __future__ import annotations

import numpy as np

from placeopt.problem import UNLIMITED, BoolArray, IntArray

MOST_GPUS = 12
"""GPUs of a machine up to which all its subsets are looked at (4,096 of them); beyond, pairs are bounded one by one."""


class LeastPaths:
    """
    Least sum of distances over all pairs of k usable GPUs of one machine, for every k and any usable set.

    Exact up to ``MOST_GPUS`` GPUs. Beyond, a lower bound: each of the k has at least the distances to its k - 1
    closest, and the k GPUs with the least of these sums count, each pair half for either end.

    Parameters
    ----------
    distance
        Shape (g, g), between the machine's GPUs.
    """

    def __init__(self, distance: IntArray) -> None:
        self._distance = distance
        self._cache: dict[bytes, IntArray] = {}
        size = len(distance)
        if size <= MOST_GPUS:
            self._masks = np.arange(1 << size, dtype=np.int64)
            member = (self._masks[:, None] >> np.arange(size)) & 1  # (2^g, g)
            self._count: IntArray = member.sum(axis=1)
            self._path: IntArray = np.einsum("mi,ij,mj->m", member, distance, member) // 2

    def of(self, usable: BoolArray) -> IntArray:
        """Shape (g + 1,): by k, of the GPUs where ``usable``, (g,), is true; ``UNLIMITED`` where there are fewer."""
        key = usable.tobytes()
        if key not in self._cache:
            exact = len(self._distance) <= MOST_GPUS
            self._cache[key] = self._least(usable) if exact else self._bounded(usable)
        return self._cache[key]

    def _least(self, usable: BoolArray) -> IntArray:
        outside = int((~usable) @ (1 << np.arange(len(usable))))
        inside = (self._masks & outside) == 0
        out = np.full(len(usable) + 1, UNLIMITED, dtype=np.int64)
        np.minimum.at(out, self._count[inside], self._path[inside])
        return out

    def _bounded(self, usable: BoolArray) -> IntArray:
        out = np.full(len(usable) + 1, UNLIMITED, dtype=np.int64)
        here = np.flatnonzero(usable)
        near = np.sort(self._distance[np.ix_(here, here)], axis=1)  # the GPU itself comes first, at 0
        reach = np.cumsum(near, axis=1)  # (u, u): to the closest 0, 1, 2, ... others
        for k in range(len(here) + 1):
            ends = np.sort(reach[:, k - 1])[:k].sum() if k else 0
            out[k] = -(-int(ends) // 2)
        return out
