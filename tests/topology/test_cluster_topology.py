"""The compiled cluster: numbering, distances across nodes at any depth, size."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from helpers.machine_graphs import machine_graph
from placeopt.build import cluster, node
from placeopt.model import Cluster, Domain, Machine
from placeopt.topology import ClusterTopology, dgx1, domain_weights, minsky, pcie_box
from strategies import trees

CPU = Machine(id="cpu", cpu_millicores=1000, memory_mib=1)
DOMAINS = [Domain(id="row", level="row"), Domain(id="a", parent="row"), Domain(id="b", parent="row", uplink_weight=7)]
PLACES = {
    "n0": ("minsky", "a"),
    "n1": ("minsky", "a"),
    "n2": ("minsky", "b"),
    "n3": ("cpu", "row"),
    "n4": ("minsky", None),
}
SMALL = cluster([node(n, *at[:1], domain=at[1]) for n, at in PLACES.items()], machines=[minsky(), CPU], domains=DOMAINS)
"""Row > two racks; nodes: two Minskys in rack a, one in rack b, a CPU box in the row, a Minsky on the network."""


def whole_graph(cluster: Cluster) -> nx.Graph:
    """The cluster as one graph, GPUs named (node, index)."""
    graph = nx.Graph()
    graph.add_node("network")
    for domain, weight in zip(cluster.domains, domain_weights(cluster.domains), strict=True):
        graph.add_edge(("domain", domain.id), ("domain", domain.parent) if domain.parent else "network", weight=weight)
    machines = {machine.id: machine for machine in cluster.machines}
    for n, at in enumerate(cluster.nodes):
        graph.update(nx.relabel_nodes(machine_graph(machines[at.machine]), lambda vertex, n=n: (n, vertex)))
        graph.add_edge((n, ("machine", at.machine)), ("domain", at.domain) if at.domain else "network", weight=100)
    return graph


def test_numbering() -> None:
    topology = ClusterTopology(SMALL)
    assert topology.num_gpus == 16
    assert topology.node_gpu_start.tolist() == [0, 4, 8, 12, 12, 16]
    assert topology.gpu_node.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [4] * 4
    assert topology.gpu_index.tolist() == [0, 1, 2, 3] * 4
    assert topology.node_domain.tolist() == [1, 1, 2, 0, -1]
    assert (topology.node_ancestors(0), topology.node_ancestors(4)) == ([1, 0], [])
    assert topology.domain_level == ["row", "rack", "rack"]
    with pytest.raises(ValueError, match="read-only"):
        topology.gpu_node[0] = 1


def test_distances_by_hand() -> None:
    """GPU to its domain: 1 + 20 + 100 = 121. Racks: a weighs 200, b states 7, the row (height 1) weighs 400."""
    topology = ClusterTopology(SMALL)
    over_row, over_network = 121 + 200 + 7 + 121, 121 + 200 + 400 + 121
    others = np.array([0, 1, 2, 4, 8, 12])
    assert topology.distances(np.array([0]), others).tolist() == [0, 1, 42, 121 + 121, over_row, over_network]
    assert topology.max_distance == over_network
    table = [[0, 200, 7, 400], [200, 0, 207, 600], [7, 207, 0, 407], [400, 600, 407, 0]]
    every = np.array([0, 1, 2, -1])  # the network last
    assert topology.domain_distances(every[:, None], every[None, :]).tolist() == table
    pairs = topology.pair_distances(np.array([8, 0, 1, 8]))  # in any order and repeated
    assert (pairs == pairs.T).all()
    assert pairs[0].tolist() == [0, over_row, over_row, 0]
    assert topology.pair_distances(np.zeros(0, np.int64)).shape == (0, 0)


@pytest.mark.parametrize("more_domains", [0, 2048])
@given(cluster=trees(machines=(minsky(), pcie_box(3, gpus_per_switch=1), CPU)))
def test_same_as_one_big_graph(more_domains: int, cluster: Cluster) -> None:
    """Two routes: the arrays against Dijkstra on the whole cluster's graph; beside many other domains, too."""
    empty = tuple(Domain(id=f"empty{d}", level="l0") for d in range(more_domains))
    topology = ClusterTopology(cluster.model_copy(update={"domains": (*cluster.domains, *empty)}))
    lengths = dict(nx.all_pairs_dijkstra_path_length(whole_graph(cluster), weight="weight"))
    gpus = [(n, ("gpu", i)) for n, i in zip(topology.gpu_node.tolist(), topology.gpu_index.tolist(), strict=True)]
    expected = [[lengths[a][b] for b in gpus] for a in gpus]
    every = np.arange(topology.num_gpus)
    assert topology.pair_distances(every).tolist() == expected
    assert topology.distances(every[:, None], every[None, :]).tolist() == expected
    assert topology.max_distance == max((max(row) for row in expected), default=0)


def test_default_weight_grows_with_height_and_stops() -> None:
    """A chain of 6,000 domains: the lowest weighs 200, the next 400, and none more than the model accepts."""
    chain = [Domain(id=f"d{d}", level=f"l{d}", parent=f"d{d - 1}" if d else None) for d in range(6000)]
    weights = domain_weights(chain)
    assert weights[-2:] == [400, 200]
    assert max(weights) == 1_000_000


def test_a_hundred_thousand_gpus() -> None:
    """12,500 nodes x 8 GPUs: distances are kept by domain and inside machines, not by pairs of nodes, in gigabytes."""
    domains = [Domain(id=f"r{d}") for d in range(313)]
    nodes = [node(f"n{n}", "dgx-1", domain=f"r{n // 40}") for n in range(12_500)]
    topology = ClusterTopology(cluster(nodes, machines=[dgx1()], domains=domains))
    assert (topology.max_distance, topology.num_gpus) == (2 * (31 + 100 + 200), 100_000)
    kept = [value for value in vars(topology).values() if isinstance(value, np.ndarray)]
    assert max(array.size for array in kept) == 100_000
