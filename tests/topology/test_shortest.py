"""Shortest paths in machines of many GPUs: by hand and by networkx."""

import networkx as nx
import numpy as np
import pytest

from placeopt import Unsupported
from placeopt.build import cluster, machine, node
from placeopt.model import Gpu, Link, Machine
from placeopt.topology import ClusterTopology, gpu_distances


def wired(pairs: list[tuple[int, int]], gpus: int, name: str = "m", weight: int = 1) -> Machine:
    """A machine whose GPUs hang on one vertex by edges of 500, with direct links."""
    links = tuple(Link(gpus=pair, weight=weight) for pair in pairs)
    return machine(name, [Gpu(model="x", uplink_weight=500)] * gpus, links=links)


def ring(gpus: int, name: str = "m", weight: int = 1) -> Machine:
    return wired([(i, (i + 1) % gpus) for i in range(gpus)], gpus, name, weight)


def test_a_machine_of_many_links() -> None:
    """40 GPUs with 80 random links, by a second route."""
    rng = np.random.default_rng(5)
    pairs = sorted({tuple(sorted(rng.choice(40, 2, replace=False).tolist())) for _ in range(80)})
    kind = wired(pairs, 40, weight=300)
    graph = nx.Graph()
    graph.add_weighted_edges_from((f"g{i}", "root", 500) for i in range(40))
    graph.add_weighted_edges_from((f"g{a}", f"g{b}", 300) for a, b in pairs)
    length = dict(nx.all_pairs_dijkstra_path_length(graph))
    expected = [[length[f"g{a}"][f"g{b}"] for b in range(40)] for a in range(40)]
    assert gpu_distances(kind).tolist() == expected


def test_links_of_weight_0_are_links() -> None:
    """0 and 1 are one place: from 2 the way to either costs the same."""
    kind = machine("m", 3, links=(Link(gpus=(0, 1), weight=0), Link(gpus=(1, 2), weight=1)))
    assert gpu_distances(kind).tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize("around", [True, False])
def test_rings_and_chains_of_1024_gpus(around: bool) -> None:
    """Half of the way around at most, or 500 up and 500 down."""
    links = [(i, (i + 1) % 1024) for i in range(1024 if around else 1023)]
    assert gpu_distances(wired(links, 1024))[0, [1, 400, 512, 1023]].tolist() == [1, 400, 512, 1 if around else 1000]


def test_machine_types_that_are_alike_share_a_table() -> None:
    """Names, memory and bandwidths do not enter distances; another weight does."""
    kinds = [ring(6, "a"), ring(6, "b").model_copy(update={"memory_mib": 7}), ring(6, "c", weight=2)]
    topology = ClusterTopology(cluster([node(kind.id, kind.id) for kind in kinds], machines=kinds))
    assert topology.distance[0] is topology.distance[1]
    assert topology.distance[2][0, 3] == 6


def test_tables_beyond_memory_are_refused() -> None:
    """17 different types of 1,024 GPUs have 17,825,792 pairs; refused before any is made."""
    first = machine("m0", [Gpu(model="x")] * 1024)
    kinds = [first.model_copy(update={"id": f"m{i}", "links": (Link(gpus=(0, 1), weight=i),)}) for i in range(17)]
    nodes = [node(kind.id, kind.id) for kind in kinds]
    round_ = cluster(nodes[:1], machines=[first]).model_copy(update={"machines": tuple(kinds), "nodes": tuple(nodes)})
    with pytest.raises(Unsupported, match="17825792 pairs of GPUs"):
        ClusterTopology(round_)
