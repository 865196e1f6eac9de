"""Machines as networkx graphs (Amaral et al., SC'17, fig. 7): another way to all distances."""

from __future__ import annotations

import networkx as nx

from placeopt.model import Machine
from placeopt.topology import LEVEL_WEIGHTS

Vertex = tuple[str, str | int]
"""``("machine", id)``, ``("part", id)`` or ``("gpu", index)``."""


def machine_graph(machine: Machine) -> nx.Graph[Vertex]:
    """Graph of a machine: vertices with ``level``; edges with ``weight``, ``bandwidth_mbps`` and ``kind``."""
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
