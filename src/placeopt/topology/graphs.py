"""Machines as networkx graphs, for pictures and path queries, and the widest paths in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placeopt.model import Machine
from placeopt.topology.machine_distances import LEVEL_WEIGHTS, IntArray

if TYPE_CHECKING:
    import networkx as nx


Vertex = tuple[str, str | int]
"""``("machine", id)``, ``("part", id)`` or ``("gpu", index)``."""


def machine_graph(machine: Machine) -> nx.Graph[Vertex]:
    """
    Graph of a machine's tree and direct links (Amaral et al., SC'17, fig. 7).

    Returns
    -------
    networkx.Graph
        Vertices ``("machine", id)``, ``("part", id)``, ``("gpu", index)`` with attribute ``level``. Edges have
        ``weight`` (link-cost units), ``bandwidth_mbps`` (or None) and ``kind``: ``tree`` for uplinks, else the link's
        kind, then with ``lanes``. A stated ``gpu_distance_matrix`` is not in it: it has no edges.

    Notes
    -----
    networkx is imported here and not at the top, because it takes 0.12 s and rounds need only the arrays of
    ``machine_distances``.
    """
    import networkx as nx

    graph: nx.Graph[Vertex] = nx.Graph()
    root: Vertex = ("machine", machine.id)
    graph.add_node(root, level="machine")
    for part in machine.parts:
        vertex: Vertex = ("part", part.id)
        graph.add_node(vertex, level=part.level)
        weight = LEVEL_WEIGHTS[part.level] if part.uplink_weight is None else part.uplink_weight
        above: Vertex = root if part.parent is None else ("part", part.parent)
        graph.add_edge(vertex, above, weight=weight, bandwidth_mbps=part.uplink_mbps, kind="tree")
    for i, gpu in enumerate(machine.gpus):
        graph.add_node(("gpu", i), level="gpu")
        weight = LEVEL_WEIGHTS["gpu"] if gpu.uplink_weight is None else gpu.uplink_weight
        above = root if gpu.part is None else ("part", gpu.part)
        graph.add_edge(("gpu", i), above, weight=weight, bandwidth_mbps=gpu.uplink_mbps, kind="tree")
    for link in machine.links:
        a, b = link.gpus
        graph.add_edge(
            ("gpu", a),
            ("gpu", b),
            weight=link.weight,
            bandwidth_mbps=link.bandwidth_mbps,
            kind=link.kind,
            lanes=link.lanes,
        )
    return graph


def bottleneck_mbps(machine: Machine) -> IntArray:
    """
    Bandwidth of the widest path between all GPUs, over the tree and the direct links.

    Returns
    -------
    IntArray
        Shape ``(g, g)``, symmetric, MB/s in one direction, read-only; 0 where no path has all its bandwidths stated,
        and on the diagonal. Like distances, a path may pass through other GPUs.

    Notes
    -----
    The paths of a maximum spanning tree are widest paths. Its edges come widest first, so each is the bottleneck
    between the two components that it joins.
    """
    import networkx as nx

    graph = machine_graph(machine)
    for _, _, edge in graph.edges(data=True):
        edge["width"] = edge["bandwidth_mbps"] or 0
    widest = np.zeros((len(machine.gpus), len(machine.gpus)), dtype=np.int64)
    components = nx.utils.UnionFind(graph)
    gpus_of = {vertex: [int(vertex[1])] if vertex[0] == "gpu" else [] for vertex in graph}
    for tail, head, edge in nx.maximum_spanning_edges(graph, weight="width"):
        here, there = gpus_of.pop(components[tail]), gpus_of.pop(components[head])
        widest[np.ix_(here, there)] = edge["width"]
        widest[np.ix_(there, here)] = edge["width"]
        components.union(tail, head)
        gpus_of[components[tail]] = here + there
    widest.setflags(write=False)
    return widest
