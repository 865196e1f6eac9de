"""A machine as a networkx graph, for pictures and path queries."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from placeopt.errors import BadInput
from placeopt.model import Machine
from placeopt.topology.weights import LEVEL_WEIGHTS

if TYPE_CHECKING:
    import networkx as nx

Vertex = tuple[str, str | int]
"""``("machine", id)``, ``("part", id)`` or ``("gpu", index)``."""


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
