"""A cluster's network as a networkx graph, for pictures, path queries and checks of the compiled arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeopt.model import Cluster
from placeopt.topology.cluster_topology import ClusterTopology

if TYPE_CHECKING:
    import networkx as nx

Vertex = tuple[str, str]
"""``("network", "")``, ``("domain", id)`` or ``("node", id)``."""

NETWORK: Vertex = ("network", "")


def cluster_graph(cluster: Cluster) -> nx.Graph[Vertex]:
    """
    Return the tree of network domains and nodes; `placeopt.topology.machine_graph` has the inside of a node.

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
    uplink_mbps = {machine.id: machine.network_bandwidth_mbps for machine in cluster.machines}
    for node, weight in zip(cluster.nodes, topology.node_uplink.tolist(), strict=True):
        vertex = ("node", node.id)
        above = NETWORK if node.domain is None else ("domain", node.domain)
        graph.add_node(vertex, level="node", machine=node.machine)
        graph.add_edge(vertex, above, weight=weight, bandwidth_mbps=uplink_mbps[node.machine])
    return graph
