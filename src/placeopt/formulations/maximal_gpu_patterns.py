"""Patterns of a single GPU: all the starts to share it to which no further share can be added."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placeopt.problem import IntArray


def maximal_gpu_patterns(share: int, sizes: IntArray, most: int) -> IntArray | None:
    """
    All multisets of ``sizes`` (descending) that fit into ``share`` and to which no more can be added.

    Returns
    -------
    IntArray or None
        Shape (GPU patterns, len(sizes)): how many of each size; None if there are more than ``most``.
    """
    out: list[tuple[int, ...]] = []
    for gpu_pattern, _ in _fill(share, sizes.tolist()):
        out.append(gpu_pattern)
        if len(out) > most:
            return None
    return np.array(out, dtype=np.int64).reshape(len(out), len(sizes))


def _fill(share: int, sizes: list[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the maximal GPU patterns and what each leaves of ``share``."""
    size, rest = sizes[0], sizes[1:]
    if not rest:
        yield (share // size,), share % size
        return
    for number in range(share // size, -1, -1):
        for tail, left in _fill(share - number * size, rest):
            if left < size:
                yield (number, *tail), left
