"""Distances and widths between all vertices of a tree given as arrays, parents first."""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

UNBOUNDED = np.iinfo(np.int64).max
"""Width of the empty path: no edge limits it."""


def tree_distances(parent: IntArray, weight: IntArray) -> IntArray:
    """
    Path weight between all vertices of a tree.

    Parameters
    ----------
    parent
        Shape ``(V,)``; ``parent[v] < v``, and -1 for the root, which is vertex 0.
    weight
        Shape ``(V,)``, >= 0: weight of the edge from ``v`` to its parent; the root's is not read.

    Returns
    -------
    IntArray
        Shape ``(V, V)``, symmetric, zero diagonal. Cost ``O(V^2)``: a path that ends in ``v`` and starts at an earlier
        vertex goes through ``parent[v]``, whose row is known.
    """
    size = len(parent)
    distance = np.zeros((size, size), dtype=np.int64)
    for v in range(1, size):
        distance[v, :v] = distance[parent[v], :v] + weight[v]
        distance[:v, v] = distance[v, :v]
    return distance


def tree_widths(parent: IntArray, width: IntArray) -> IntArray:
    """
    Smallest edge width on the path between all vertices of a tree.

    Parameters
    ----------
    parent
        As in ``tree_distances``.
    width
        Shape ``(V,)``: width of the edge to the parent, 0 where it is not known.

    Returns
    -------
    IntArray
        Shape ``(V, V)``, symmetric; ``UNBOUNDED`` on the diagonal; 0 where the path has an edge of unknown width.
    """
    size = len(parent)
    widths = np.full((size, size), UNBOUNDED, dtype=np.int64)
    for v in range(1, size):
        widths[v, :v] = np.minimum(widths[parent[v], :v], width[v])
        widths[:v, v] = widths[v, :v]
    return widths
