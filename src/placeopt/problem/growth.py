"""Sets of GPUs that are near each other, grown one GPU at a time from several ones side by side."""

from __future__ import annotations

import numpy as np

from placeopt.problem.arrays import IntArray

FAR = 1 << 60


def starts(num_gpus: int, size: int, steps: int) -> IntArray:
    """
    GPUs to grow sets of ``size`` from: all, where ``num_gpus^2 * size <= steps``, else evenly spaced ones.

    Growing one set looks at every GPU for every member, so this many starts take about ``steps`` steps together; at
    least one start is left.
    """
    count = max(1, min(num_gpus, steps // max(1, num_gpus * size)))
    return np.arange(count) * num_gpus // count


def grown_sets(distance: IntArray, size: int, first: IntArray) -> tuple[IntArray, IntArray]:
    """
    Grow sets of GPUs, each by the GPU whose distances to those in it sum to least; of equals the one listed first.

    Parameters
    ----------
    distance
        Shape ``(g, g)``, symmetric, in link-cost units.
    size
        GPUs of each set at its end, 1 to ``g``.
    first
        Shape ``(s,)``: the GPU that each set begins with.

    Returns
    -------
    tuple of two IntArray
        Members in the order in which they were taken, and the path length between all pairs of the first 1, 2, ...
        members; both of shape ``(s, size)``. Cost ``O(s g size)``.
    """
    each = np.arange(len(first))
    members, path = np.empty((2, len(first), size), dtype=np.int64)
    members[:, 0], path[:, 0] = first, 0
    reach = distance[first].copy()
    reach[each, first] = FAR  # and more from then on: taken
    for k in range(1, size):
        near = reach.argmin(axis=1)
        members[:, k] = near
        path[:, k] = path[:, k - 1] + reach[each, near]
        reach += distance[near]
        reach[each, near] = FAR
    return members, path
