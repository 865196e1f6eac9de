"""Shortest paths in machines of many GPUs: the faster algorithm, what it may cost, and the clock (issue 16, A3)."""

import networkx as nx
import numpy as np
import pytest

from placeopt import Unsupported
from placeopt.check import distances as referee
from placeopt.check.case import Directory
from placeopt.errors import OutOfTime
from placeopt.model import Cluster, Gpu, Instance, Link, Machine, Node, Part
from placeopt.topology import ClusterTopology, cluster_topology, gpu_distances, machine_distances
from placeopt.topology.machine_distances import ABSENT, shortest_paths


def wired(pairs: list[tuple[int, int]], gpus: int, name: str = "m", weight: int = 1) -> Machine:
    """A machine whose GPUs hang on one vertex by edges of 500, with direct links."""
    links = tuple(Link(gpus=pair, weight=weight) for pair in pairs)
    return Machine(
        id=name, cpu_millicores=0, memory_mib=0, gpus=(Gpu(model="x", uplink_weight=500),) * gpus, links=links
    )


def ring(gpus: int, name: str = "m", weight: int = 1) -> Machine:
    return wired([(i, (i + 1) % gpus) for i in range(gpus)], gpus, name, weight)


def random_weights(seed: int) -> np.ndarray:
    """A graph of up to 30 vertices, sparse or dense, often in several pieces; weights of 0 and of 10^9 too."""
    rng = np.random.default_rng(seed)
    size, density = int(rng.integers(1, 30)), rng.choice([0.05, 0.15, 0.5, 1.0])
    most = int(rng.choice([3, 50, 10**9]))
    weight = np.where(rng.random((size, size)) < density, rng.integers(0, most, (size, size)), ABSENT)
    return np.triu(weight, 1) + np.tril(weight.T, -1)


@pytest.mark.parametrize("seed", range(80))
def test_issue16_a3_shortest_paths_equal_floyd_and_warshall(seed: int) -> None:
    """Issue 16, A3: elimination gives the same integers as the plain closure, whatever the graph."""
    weight = random_weights(seed)
    expected = weight.copy()
    for k in range(len(weight)):
        expected = np.minimum(expected, expected[:, k : k + 1] + expected[k : k + 1, :])
    assert shortest_paths(weight).tolist() == np.minimum(expected, ABSENT).tolist()


@pytest.mark.parametrize("pairs", ["ring", "chain"])
def test_issue16_a3_a_ring_needs_no_closure(pairs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16, A3: of 1,024 GPUs in a ring or chain, at most a handful are left to the cubic closure."""
    left: list[int] = []
    closed = machine_distances._closed
    monkeypatch.setattr(machine_distances, "_closed", lambda d, deadline: left.append(len(d)) or closed(d, deadline))
    links = [(i, (i + 1) % 1024) for i in range(1024 if pairs == "ring" else 1023)]
    distance = gpu_distances(wired(links, 1024))
    assert left[0] <= 8
    assert distance[0, [1, 400, 512, 1023]].tolist() == [1, 400, 512, 1 if pairs == "ring" else 1000]


def test_issue16_a3_the_clock_is_asked_at_every_vertex(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16, A3: a deadline in the past stops at the first vertex; one that passes midway, there."""
    with pytest.raises(OutOfTime, match="distances"):
        gpu_distances(ring(8), deadline=0.0)
    now = iter(range(100))
    monkeypatch.setattr(machine_distances.time, "monotonic", lambda: next(now))
    with pytest.raises(OutOfTime):
        gpu_distances(ring(50), deadline=20)
    assert next(now) == 21


def test_issue16_a3_machine_types_that_are_alike_share_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16, A3: names, memory and bandwidths do not enter distances; another weight does."""
    made: list[str] = []
    monkeypatch.setattr(
        cluster_topology, "gpu_distances", lambda m, deadline: made.append(m.id) or gpu_distances(m, deadline)
    )
    machines = (ring(6, "a"), ring(6, "b").model_copy(update={"memory_mib": 7}), ring(6, "c", weight=2))
    cluster = Cluster(machines=machines, nodes=tuple(Node(id=m.id, machine=m.id) for m in machines))
    topology = ClusterTopology(cluster)
    assert made == ["a", "c"]
    assert topology.distance[0] is topology.distance[1]
    assert topology.distance[2][0, 3] == 6


def test_issue16_a3_tables_beyond_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16, A3: 2,000 different types of 1,024 GPUs would need 16 GB; refused before any is made."""
    monkeypatch.setattr(cluster_topology, "MAX_TABLE_CELLS", 71)
    machines = (ring(6, "a"), ring(6, "b", weight=2))
    nodes = tuple(Node(id=m.id, machine=m.id) for m in machines)
    with pytest.raises(Unsupported, match="72 pairs of GPUs"):
        ClusterTopology(Cluster(machines=machines, nodes=nodes))
    assert ClusterTopology(Cluster(machines=machines[:1], nodes=nodes[:1])).num_gpus == 6


def random_machine(seed: int) -> Machine:
    """Up to 14 GPUs under an uneven tree, with any number of links."""
    rng = np.random.default_rng(seed)
    parts: list[Part] = []
    for p in range(int(rng.integers(0, 6))):
        parent = None if p == 0 or rng.random() < 0.3 else f"p{rng.integers(p)}"
        parts.append(Part(id=f"p{p}", level="switch", parent=parent, uplink_weight=int(rng.integers(0, 30))))
    count, density = int(rng.integers(1, 15)), rng.choice([0.0, 0.1, 0.4, 1.0])
    gpus = tuple(
        Gpu(model="x", part=None if not parts or rng.random() < 0.2 else f"p{rng.integers(len(parts))}")
        for _ in range(count)
    )
    links = tuple(
        Link(gpus=(a, b), weight=int(rng.integers(0, 40)))
        for a in range(count)
        for b in range(a)
        if rng.random() < density
    )
    return Machine(id="m", cpu_millicores=0, memory_mib=0, parts=tuple(parts), gpus=gpus, links=links)


def judged(machine: Machine) -> referee.Distances:
    cluster = Cluster(machines=(machine,), nodes=(Node(id="n", machine="m"),))
    return referee.Distances(Directory(Instance(cluster=cluster, jobs=())))


@pytest.mark.parametrize("few", [0, 2, 8])
@pytest.mark.parametrize("seed", range(40))
def test_issue16_a3_the_referee_finds_the_same_distances(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16, A3: two algorithms, one answer; vertices are taken out, or left to Dijkstra."""
    monkeypatch.setattr(referee, "FEW", few)
    referee._closed.cache_clear()
    machine = random_machine(seed)
    assert [list(row) for row in judged(machine).table("m")] == gpu_distances(machine).tolist()
    referee._closed.cache_clear()


def test_issue16_a3_the_referee_takes_a_ring_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16, A3: no vertex of a ring is left to Dijkstra, and types that are alike are closed once."""
    referee._closed.cache_clear()
    begun: list[int] = []
    from_ = referee._from
    monkeypatch.setattr(referee, "_from", lambda v, edges: begun.append(v) or from_(v, edges))
    assert judged(ring(300)).table("m")[0][150] == 150
    assert begun == []
    assert judged(ring(300, "m")).table("m")[0][299] == 1
    assert referee._closed.cache_info().misses == 1


def test_distances_agree_with_networkx() -> None:
    """A third route, for a machine of 40 GPUs with 80 random links."""
    rng = np.random.default_rng(5)
    pairs = sorted({tuple(sorted(rng.choice(40, 2, replace=False).tolist())) for _ in range(80)})
    machine = wired(pairs, 40, weight=300)
    graph = nx.Graph()
    graph.add_weighted_edges_from((f"g{i}", "root", 500) for i in range(40))
    graph.add_weighted_edges_from((f"g{a}", f"g{b}", 300) for a, b in pairs)
    length = dict(nx.all_pairs_dijkstra_path_length(graph))
    expected = [[length[f"g{a}"][f"g{b}"] for b in range(40)] for a in range(40)]
    assert gpu_distances(machine).tolist() == expected
