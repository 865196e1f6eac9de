"""Machines and networks as networkx graphs, for pictures, path queries and checks of the compiled arrays."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from placeopt.errors import BadInput
from placeopt.model import Cluster, Machine
from placeopt.topology.cluster_topology import ClusterTopology
from placeopt.topology.machine_distances import LEVEL_WEIGHTS, IntArray

if TYPE_CHECKING:
    import networkx as nx


Vertex = tuple[str, str | int]
"""
Of a machine ``("machine", id)``, ``("part", id)`` or ``("gpu", index)``; of a network ``("network", "")``,
``("domain", id)`` or ``("node", id)``.
"""


@dataclass(frozen=True)
class PathEdge:
    """One edge on a path: ``kind`` is ``tree``, ``nvlink``, ``xgmi`` or ``pcie``; None means bandwidth not known."""

    ends: tuple[Vertex, Vertex]
    kind: str
    weight: int
    bandwidth_mbps: int | None


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


def path_links(machine: Machine, a: int, b: int) -> list[PathEdge]:
    """
    Edges of a shortest path between two GPUs, from ``a`` to ``b``.

    Of several shortest paths, one with the fewest edges is taken. Where the machine states its distance matrix, the
    path is still that of tree and links: the way is drawn, the matrix says what it costs.

    Raises
    ------
    BadInput
        If the machine has no such GPU.
    """
    import networkx as nx

    for gpu in (a, b):
        if not 0 <= gpu < len(machine.gpus):
            raise BadInput(f"machine {machine.id!r}: no GPU {gpu}; expected 0 to {len(machine.gpus) - 1}")
    graph = machine_graph(machine)
    longest = graph.number_of_nodes()  # no path has as many edges: they only break ties
    for _, _, data in graph.edges(data=True):
        data["order"] = data["weight"] * longest + 1
    path = nx.shortest_path(graph, ("gpu", a), ("gpu", b), weight="order")
    edges = []
    for tail, head in pairwise(path):
        data = graph.edges[tail, head]
        edges.append(PathEdge((tail, head), data["kind"], data["weight"], data["bandwidth_mbps"]))
    return edges


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


NETWORK: Vertex = ("network", "")


def cluster_graph(cluster: Cluster) -> nx.Graph[Vertex]:
    """
    Return the tree of network domains and nodes; `placeopt.topology.graphs` has the inside of a node.

    Parameters
    ----------
    cluster
        The cluster.

    Returns
    -------
    networkx.Graph
        A tree of vertices ``("network", "")``, ``("domain", id)`` and ``("node", id)`` with attribute ``level``; nodes
        also have ``machine``, the id of their type. Every edge is the uplink of its lower end, with ``weight``
        (link-cost units) and ``bandwidth_mbps`` (MB/s in one direction, None: not known).

    Notes
    -----
    The shortest path between two nodes, plus the distance of both GPUs to the network inside their machines
    (`placeopt.topology.root_distances`), is what the communication cost counts (Amaral et al., SC'17, fig. 7).
    networkx is imported here and not at the top, because it takes 0.12 s and rounds need only arrays.
    """
    import networkx as nx

    topology = ClusterTopology(cluster)
    graph: nx.Graph[Vertex] = nx.Graph()
    graph.add_node(NETWORK, level="network")
    for domain, weight in zip(cluster.domains, topology.domain_uplink.tolist(), strict=True):
        vertex: Vertex = ("domain", domain.id)
        above = NETWORK if domain.parent is None else ("domain", domain.parent)
        graph.add_node(vertex, level=domain.level)
        graph.add_edge(vertex, above, weight=weight, bandwidth_mbps=domain.uplink_mbps)
    for node, weight in zip(cluster.nodes, topology.node_uplink.tolist(), strict=True):
        vertex = ("node", node.id)
        above = NETWORK if node.domain is None else ("domain", node.domain)
        graph.add_node(vertex, level="node", machine=node.machine)
        graph.add_edge(vertex, above, weight=weight, bandwidth_mbps=cluster.machine_of(node).network_bandwidth_mbps)
    return graph
