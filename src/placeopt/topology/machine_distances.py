"""Weights of edges; distances, levels of equal distance and bandwidths between the GPUs of one machine, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placeopt.model import Domain, Machine

LEVEL_WEIGHTS = {"gpu": 1, "switch": 10, "numa": 10, "socket": 20, "machine": 100}
"""
Default weight of the edge from a vertex of the level up to its parent.

Amaral et al. (SC'17, section 4.1.2 and fig. 7) print 1 at the GPU and 20 at the socket, call the weights qualitative
and ask only that higher levels weigh more; switch, numa, machine and the domains are ours, chosen to keep that order.
"""

RACK_WEIGHT = 200
"""Default uplink weight of a domain that has no domain below it."""

MAX_WEIGHT = 1_000_000
"""The largest weight that the model accepts; the default of a very deep network stops there."""


def domain_weights(domains: Sequence[Domain]) -> list[int]:
    """Uplink weight of every domain: its own, or ``RACK_WEIGHT`` x (1 + height), at most ``MAX_WEIGHT``."""
    # The height of a domain counts the domains on the longest way down from it: 0 for a rack, 1 for a row of racks. So
    # an edge weighs more the higher it stands, at any depth, whatever the levels are called (the rule is ours). Domains
    # stand parents first, as ``Cluster`` guarantees.
    position = {domain.id: d for d, domain in enumerate(domains)}
    height = [0] * len(domains)
    for d in range(len(domains) - 1, -1, -1):
        parent = domains[d].parent
        if parent is not None:
            above = position[parent]
            height[above] = max(height[above], height[d] + 1)
    return [
        domain.uplink_weight if domain.uplink_weight is not None else min(RACK_WEIGHT * (1 + height[d]), MAX_WEIGHT)
        for d, domain in enumerate(domains)
    ]


IntArray = npt.NDArray[np.int64]


def tree_paths(parent: IntArray, edge: IntArray, join: np.ufunc = np.add, itself: int = 0) -> IntArray:
    """
    Shape ``(V, V)``: what the edges on the path between two vertices of a tree are together, by default their sum.

    Vertex 0 is the root; ``parent``, ``(V,)``, is below the vertex itself, ``edge`` the figure of the edge to it,
    ``itself`` that of the path of no edge. Cost ``O(V^2)``: a path that ends in ``v`` and starts at an earlier vertex
    goes through ``parent[v]``, whose row is known.
    """
    paths = np.full((len(parent),) * 2, itself, dtype=np.int64)
    for v in range(1, len(parent)):
        paths[v, :v] = paths[:v, v] = join(paths[parent[v], :v], edge[v])
    return paths


def gpu_distances(machine: Machine) -> IntArray:
    """
    Distance between all GPUs of a machine: the stated matrix, or shortest paths over the tree and the direct links.

    Shape ``(g, g)``, symmetric, zero diagonal, read-only, in link-cost units.

    Amaral et al. (SC'17, section 4.1.2): the distance is the sum of the weights on the shortest path. A path may pass
    through other GPUs: on a DGX-1, GPUs 0 and 5 have no link, but 0-1-5 costs 2. That is the paper's graph; hardware
    does not forward by itself, a library that builds rings does. A tree alone takes ``O(V^2)``; with direct links,
    Dijkstra's algorithm from each GPU takes ``O(g E log V)``.
    """
    if machine.gpu_distance_matrix is not None:
        size = len(machine.gpus)
        distance = np.array(machine.gpu_distance_matrix, dtype=np.int64).reshape(size, size)
    else:
        parent, weight, _ = _tree(machine)
        first = 1 + len(machine.parts)
        paths = _shortest_paths(machine, parent, weight) if machine.links else tree_paths(parent, weight)[first:]
        distance = paths[:, first:].copy()
    distance.setflags(write=False)
    return distance


def root_distances(machine: Machine) -> IntArray:
    """Shape ``(g,)``: path weight from each GPU up the tree to the machine's own vertex, read-only."""
    # Through the tree only, also where a matrix is stated: a matrix states nothing about the way out of the machine.
    parent, weight, _ = _tree(machine)
    root = tree_paths(parent, weight)[0, 1 + len(machine.parts) :].copy()
    root.setflags(write=False)
    return root


def bottleneck_mbps(machine: Machine) -> IntArray:
    """
    Bandwidth of the path through the tree between all GPUs of a machine, in MB/s in one direction.

    Shape ``(g, g)``, symmetric, read-only; 0 where the path has not all its bandwidths stated, and on the diagonal.
    """
    parent, _, mbps = _tree(machine)
    first = 1 + len(machine.parts)
    widths = tree_paths(parent, mbps, np.minimum, np.iinfo(np.int64).max)[first:, first:].copy()
    np.fill_diagonal(widths, 0)
    widths.setflags(write=False)
    return widths


def _tree(machine: Machine) -> tuple[IntArray, IntArray, IntArray]:
    """Parent of each vertex (the machine, its parts, its GPUs), weight and bandwidth (0: unknown) of the edge to it."""
    position: dict[str | None, int] = {None: 0, **{part.id: 1 + p for p, part in enumerate(machine.parts)}}
    rows = [(-1, 0, 0)]
    for part in machine.parts:
        weight = LEVEL_WEIGHTS[part.level] if part.uplink_weight is None else part.uplink_weight
        rows.append((position[part.parent], weight, part.uplink_mbps or 0))
    for gpu in machine.gpus:
        weight = LEVEL_WEIGHTS["gpu"] if gpu.uplink_weight is None else gpu.uplink_weight
        rows.append((position[gpu.part], weight, gpu.uplink_mbps or 0))
    parent, weights, mbps = np.array(rows, np.int64).T
    return parent, weights, mbps


def _shortest_paths(machine: Machine, parent: IntArray, weight: IntArray) -> IntArray:
    """Shape (g, V): shortest path over the tree and the links from each GPU."""
    from scipy.sparse import csr_array  # loaded where a machine has links: it takes 0.1 s
    from scipy.sparse.csgraph import dijkstra

    first, size = 1 + len(machine.parts), len(parent)
    links = np.array([link.gpus for link in machine.links], dtype=np.int64).T + first
    tails, heads = np.append(np.arange(1, size), links[0]), np.append(parent[1:], links[1])
    weights = np.append(weight[1:], [link.weight for link in machine.links])
    # A link of weight 0 is an edge, too: a sparse array keeps zeros that are stated.
    edges = csr_array((weights.astype(float), (tails, heads)), shape=(size, size))
    paths = dijkstra(edges, directed=False, indices=np.arange(first, size))
    return np.asarray(paths).astype(np.int64)  # sums below 2^53 are whole numbers


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


def components(near: npt.NDArray[np.bool_]) -> IntArray:
    """Shape (n,): the first vertex of each one's component of a graph by its adjacency, (n, n), symmetric."""
    part, before = np.arange(len(near)), None
    while before is None or (part != before).any():
        before = part
        part = np.minimum(part, np.where(near, part, len(near)).min(axis=1))
    return part


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
