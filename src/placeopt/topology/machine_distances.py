"""Distances and bandwidths between the GPUs of one machine, as arrays."""

import numpy as np

from placeopt.model import Machine
from placeopt.topology.shortest import ABSENT, shortest_paths
from placeopt.topology.tree import IntArray, tree_distances, tree_widths
from placeopt.topology.weights import LEVEL_WEIGHTS


def gpu_distances(machine: Machine, deadline: float = float("inf")) -> IntArray:
    """
    Distance between all GPUs of a machine: the stated matrix, or shortest paths over the tree and the direct links.

    Parameters
    ----------
    machine
        ``V`` vertices: the machine, its parts, its ``g`` GPUs.
    deadline
        Of ``time.monotonic()``, asked where there are direct links.

    Returns
    -------
    IntArray
        Shape ``(g, g)``, symmetric, zero diagonal, read-only, in link-cost units.

    Raises
    ------
    OutOfTime
        At the deadline.

    Notes
    -----
    Amaral et al. (SC'17, section 4.1.2): the distance is the sum of the weights on the shortest path. A path may pass
    through other GPUs: on a DGX-1, GPUs 0 and 5 have no link, but 0-1-5 costs 2. That is the paper's graph; hardware
    does not forward by itself, a library that builds rings does. A tree alone takes ``O(V^2)``; with direct links,
    ``O(V^2 w)`` for graphs of treewidth about w (a ring: 3), and ``O(V^3)`` at worst (`shortest_paths`).
    """
    if machine.gpu_distance_matrix is not None:
        size = len(machine.gpus)
        distance = np.array(machine.gpu_distance_matrix, dtype=np.int64).reshape(size, size)
    else:
        parent, weight, _ = _tree(machine)
        first = 1 + len(machine.parts)
        if machine.links:
            distance = shortest_paths(_edges(machine, parent, weight), deadline)
        else:
            distance = tree_distances(parent, weight)
        distance = distance[first:, first:].copy()
    distance.setflags(write=False)
    return distance


def root_distances(machine: Machine) -> IntArray:
    """
    Path weight from each GPU up the tree to the machine's own vertex.

    Returns
    -------
    IntArray
        Shape ``(g,)``, read-only. Through the tree only, also where a matrix is stated: a matrix tells nothing about
        the way out of the machine.
    """
    parent, weight, _ = _tree(machine)
    to_root = np.zeros(len(parent), dtype=np.int64)
    for v in range(1, len(parent)):
        to_root[v] = to_root[parent[v]] + weight[v]
    root = to_root[1 + len(machine.parts) :].copy()
    root.setflags(write=False)
    return root


def bottleneck_mbps(machine: Machine) -> IntArray:
    """
    Bandwidth of the widest path between all GPUs, over the tree and the direct links.

    Returns
    -------
    IntArray
        Shape ``(g, g)``, symmetric, MB/s in one direction, read-only; 0 where no path has all its bandwidths stated,
        and on the diagonal. Like distances, a path may pass through other GPUs.
    """
    parent, _, width = _tree(machine)
    first = 1 + len(machine.parts)
    widest = tree_widths(parent, width)[first:, first:].copy()
    for link in machine.links:
        a, b = link.gpus
        widest[a, b] = widest[b, a] = max(int(widest[a, b]), link.bandwidth_mbps or 0)
    for k in _linked(machine):
        np.maximum(widest, np.minimum(widest[:, k : k + 1], widest[k : k + 1, :]), out=widest)
    np.fill_diagonal(widest, 0)
    widest.setflags(write=False)
    return widest


def _tree(machine: Machine) -> tuple[IntArray, IntArray, IntArray]:
    """Parent, uplink weight and uplink MB/s (0 = unknown) of each vertex: the machine, its parts, its GPUs."""
    position = {part.id: 1 + p for p, part in enumerate(machine.parts)}
    parent, weight, width = [-1], [0], [0]
    for part in machine.parts:
        parent.append(0 if part.parent is None else position[part.parent])
        weight.append(LEVEL_WEIGHTS[part.level] if part.uplink_weight is None else part.uplink_weight)
        width.append(part.uplink_mbps or 0)
    for gpu in machine.gpus:
        parent.append(0 if gpu.part is None else position[gpu.part])
        weight.append(LEVEL_WEIGHTS["gpu"] if gpu.uplink_weight is None else gpu.uplink_weight)
        width.append(gpu.uplink_mbps or 0)
    return np.array(parent, np.int64), np.array(weight, np.int64), np.array(width, np.int64)


def _edges(machine: Machine, parent: IntArray, weight: IntArray) -> IntArray:
    """Shape (V, V): weight of the edge between two vertices of tree and links, `ABSENT` without one."""
    edges = np.full((len(parent), len(parent)), ABSENT, dtype=np.int64)
    np.fill_diagonal(edges, 0)
    below = np.arange(1, len(parent))
    edges[below, parent[1:]] = edges[parent[1:], below] = weight[1:]
    a, b = np.array([link.gpus for link in machine.links], dtype=np.int64).T + 1 + len(machine.parts)
    edges[a, b] = edges[b, a] = [link.weight for link in machine.links]  # a pair is linked once, and never by the tree
    return edges


def _linked(machine: Machine) -> list[int]:
    """GPUs that a wider way than the tree's can pass through: those that have a direct link."""
    return sorted({gpu for link in machine.links for gpu in link.gpus})
