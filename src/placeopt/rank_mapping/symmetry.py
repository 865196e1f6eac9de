"""Which GPUs a symmetry of the distances can exchange."""

from __future__ import annotations

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray

MAX_STEPS = 20_000
"""Steps of backtracking for one pair; a symmetry not found by then is one not used."""


def orbits(distances: FloatArray, groups: IntArray) -> list[list[int]]:
    """
    Partition the GPUs: two of one part are exchanged by a permutation that keeps all distances and groups together.

    Each pair of GPUs with equal sorted distances is tried by backtracking; parts may be too small, never too large.
    """
    n = len(distances)
    part = list(range(n))
    same = groups[:, None] == groups
    profile = np.sort(distances, axis=1)
    for a in range(n):
        for b in range(a):
            if part[a] == part[b] or (profile[a] != profile[b]).any():
                continue
            if _symmetry(distances, same, a, b):
                old, new = part[a], part[b]
                part = [new if p == old else p for p in part]
    return [[p for p in range(n) if part[p] == label] for label in dict.fromkeys(part)]


def _symmetry(distances: FloatArray, same: np.ndarray, start: int, image: int) -> bool:
    """Return whether a permutation that maps ``start`` to ``image`` keeps distances and groups."""
    n = len(distances)
    sequence = [start, *(p for p in range(n) if p != start)]
    images: list[int] = []
    steps = 0

    def extend(candidates: list[int]) -> bool:
        nonlocal steps
        if len(images) == n:
            return True
        p = sequence[len(images)]
        done = sequence[: len(images)]
        for q in candidates:
            steps += 1
            if steps > MAX_STEPS:
                return False
            if (
                q in images
                or (distances[p, done] != distances[q, images]).any()
                or (same[p, done] != same[q, images]).any()
            ):
                continue
            images.append(q)
            if extend(list(range(n))):
                return True
            images.pop()
        return False

    return extend([image])
