"""The network as a graph: its vertices by hand, and its shortest paths beside the compiled arrays."""

import networkx as nx
import numpy as np

from placeopt.model import Cluster, Domain, Node
from placeopt.topology import ClusterTopology, cluster_graph, minsky

CLUSTER = Cluster(
    machines=(minsky(),),
    domains=(Domain(id="row", level="row"), Domain(id="rack", parent="row", uplink_mbps=100)),
    nodes=(
        Node(id="a", machine=minsky().id, domain="rack"),
        Node(id="b", machine=minsky().id, domain="rack"),
        Node(id="c", machine=minsky().id, domain="row"),
        Node(id="d", machine=minsky().id),
    ),
)


def test_the_network_is_a_tree() -> None:
    graph = cluster_graph(CLUSTER)
    assert nx.is_tree(graph)
    assert set(graph) == {("network", ""), ("domain", "row"), ("domain", "rack"), *(("node", n) for n in "abcd")}
    assert graph.edges[("domain", "rack"), ("domain", "row")]["bandwidth_mbps"] == 100
    assert graph.nodes["node", "a"]["machine"] == minsky().id


def test_shortest_paths_are_the_distances_of_the_arrays() -> None:
    """Between nodes: GPU to machine, the path of the graph, machine to GPU."""
    graph, topology = cluster_graph(CLUSTER), ClusterTopology(CLUSTER)
    root = topology.root[0]
    for i, one in enumerate("abcd"):
        for j, other in enumerate("abcd"):
            if i != j:
                a, b = int(topology.node_gpu_start[i]), int(topology.node_gpu_start[j])
                path = nx.shortest_path_length(graph, ("node", one), ("node", other), weight="weight")
                assert topology.distances(np.array([a]), np.array([b]))[0] == root[0] + path + root[0]
