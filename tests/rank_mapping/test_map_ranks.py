"""The mapping of ranks to GPUs: answers worked by hand, brute force, bounds, what it refuses."""

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from helpers.graphs import any_distances, graph, least_mapping, mapping_cost, ring
from placeopt import BadInput, Unsupported, build
from placeopt.model import Machine
from placeopt.problem import IntArray
from placeopt.rank_mapping import map_ranks
from placeopt.topology import ClusterTopology, dgx1, dgx2, minsky, pcie_box
from strategies import Choice, choices, make_graph, seeded

SOCKETS = np.array([[0, 1, 42, 42], [1, 0, 42, 42], [42, 42, 0, 1], [42, 42, 1, 0]])
"""A Minsky: two sockets of two GPUs."""


def any_graph(ranks: int) -> IntArray:
    """Return weights without any pattern, 0 to 3."""
    return make_graph(seeded(ranks), least=ranks, most=ranks)


def cluster(machine: Machine, nodes: int, racks: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Distances of all GPUs, and the node of each."""
    topology = ClusterTopology(build.cluster(nodes, machines=[machine], racks=racks))
    return topology.pair_distances(np.arange(topology.num_gpus)), topology.gpu_node


def test_ring_of_four_on_two_sockets() -> None:
    """Neighbours share a socket: two edges inside at 1, two across at 42. The worst order, 0 2 1 3, has four across."""
    found = map_ranks(ring(4), SOCKETS, start=np.array([0, 2, 1, 3]))
    assert (found.cost, found.bound, found.optimal) == (2 * 1 + 2 * 42, 86, True)


def test_grouping_inside_a_node_is_part_of_the_choice() -> None:
    """
    Two ranks of two GPUs on one Minsky. With much traffic inside each takes a socket: 2 x 10 x 1 + 4 x 42; with none
    inside they share both sockets: two pairs at 1, two at 42.
    """
    assert map_ranks(graph(2, {(0, 1): 1}), SOCKETS, gpus_per_rank=2, inside=10).cost == 188
    assert map_ranks(graph(2, {(0, 1): 1}), SOCKETS, gpus_per_rank=2).cost == 86
    apart = map_ranks(graph(2, {(0, 1): 1}), SOCKETS, np.array([0, 0, 1, 1]), gpus_per_rank=2)
    assert apart.cost == apart.bound == 168  # as groups, sockets keep each rank together


@pytest.mark.parametrize("kind", ["tree", "nodes", "any"])
@pytest.mark.parametrize("size", [1, 2])
@given(choice=choices)
def test_exact_equals_brute_force_and_bounds_hold(kind: str, size: int, choice: Choice) -> None:
    """On graphs and distances without any pattern; without time for a proof the bound is no more than the optimum."""
    weights = make_graph(choice, least=2, most=6 if size == 1 else 3)
    k = len(weights)
    groups = np.array(sorted(choice.number(0, 2) for _ in range(k))).repeat(size)
    mixed = np.array(choice.shuffled(range(k * size)))
    distances, groups = any_distances(choice, kind, groups)[np.ix_(mixed, mixed)], groups[mixed]
    found = map_ranks(weights, distances, groups, gpus_per_rank=size, inside=1)
    best = least_mapping(weights, distances, groups, size, inside=1)
    assert found.cost == found.bound == best == mapping_cost(weights, distances, found.order, size, inside=1)
    nodes = groups[found.order].reshape(k, size)
    assert (nodes == nodes[:, :1]).all()
    hasty = map_ranks(weights, distances, groups, gpus_per_rank=size, inside=1, deadline=time.monotonic())
    assert hasty.bound <= best <= hasty.cost


@pytest.mark.parametrize(
    ("machine", "nodes"), [(minsky(), 4), (dgx1(), 2), (dgx2(), 1), (pcie_box(8, gpus_per_switch=2), 2)]
)
def test_sixteen_gpus_are_proven(machine: Machine, nodes: int) -> None:
    """The promise of docs/mapping.md, for whole GPUs and pairs; bench/specs/ranks.py has the seconds."""
    distances, groups = cluster(machine, nodes)
    for size in (1, 2):
        for weights in (ring(16 // size), any_graph(16 // size)):
            found = map_ranks(weights, distances, groups, gpus_per_rank=size, inside=1)
            assert found.optimal
            assert found.cost == mapping_cost(weights, distances, found.order, size, inside=1)


@pytest.mark.parametrize("machine", [dgx1(), pcie_box(8)])
def test_ring_of_64_on_64_gpus_is_proven(machine: Machine) -> None:
    """
    Every node and every rack is left by two edges: of the 8 between nodes 6 stay in a rack. In a DGX-1 the other 7 are
    links; a box with two sockets has 6 at 2 inside sockets and one at 42 across.
    """
    distances, groups = cluster(machine, 8, racks=2)
    shuffled = np.random.default_rng(0).permutation(64)
    found = map_ranks(ring(64), distances[np.ix_(shuffled, shuffled)], groups[shuffled])
    inside = 7 if machine.id == "dgx-1" else 6 * 2 + 42
    across = int(distances[0, 8]), int(distances[0, 63])
    assert found.cost == found.bound == 8 * inside + 6 * across[0] + 2 * across[1]


def test_all_to_all_costs_the_same_everywhere() -> None:
    """Known without a search, at any size."""
    distances, groups = cluster(dgx1(), 8)
    weights = np.ones((64, 64), dtype=np.int64)
    found = map_ranks(weights, distances, groups)
    assert found.cost == found.bound == distances.sum() // 2


def test_same_seed_same_order_and_never_worse_than_the_start() -> None:
    """Above 16 GPUs the search is random; a caller's plan must not be."""
    rng = np.random.default_rng(1)
    weights, (distances, groups) = any_graph(24), cluster(minsky(), 6)
    start = rng.permutation(24)
    first, second = (map_ranks(weights, distances, groups, start=start, seed=5) for _ in range(2))
    assert (first.order == second.order).all()
    assert first.cost <= mapping_cost(weights, distances, start)
    assert first.bound <= first.cost


def test_deadline_in_the_past_returns_the_start() -> None:
    """Whatever is asked for, an answer comes back, and no more than is asked for is done."""
    for size in (16, 64):
        weights, (distances, groups) = any_graph(size), cluster(dgx1(), size // 8)
        found = map_ranks(weights, distances, groups, start=np.arange(size), deadline=time.monotonic())
        assert found.bound <= found.cost == mapping_cost(weights, distances, found.order)


def test_deadline_cuts_a_long_proof() -> None:
    """Two machines whose distances have no pattern: the proof takes seconds, the caller has 0.3."""
    rng = np.random.default_rng(0)
    distances = np.triu(rng.integers(1, 30, (16, 16)), 1)
    distances[:8, 8:] = 32
    weights = np.triu(rng.integers(0, 5, (16, 16)), 1)
    found = map_ranks(
        weights + weights.T, distances + distances.T, np.repeat([0, 1], 8), deadline=time.monotonic() + 0.3
    )
    assert found.bound <= found.cost
    assert not found.optimal


LOPSIDED = graph(4, {(0, 1): 1}) + np.eye(4, k=1, dtype=np.int64)
PAIRS: dict[str, Any] = {"groups": np.array([0, 0, 1, 1]), "gpus_per_rank": 2}
BIG = np.zeros((1025, 1025), dtype=np.int64)


@pytest.mark.parametrize(
    ("weights", "distances", "more", "words"),
    [
        (LOPSIDED, SOCKETS, {}, "weights"),
        (ring(4), -SOCKETS, {}, "distances"),
        (ring(4), SOCKETS + 1, {}, "diagonal"),
        (ring(4), SOCKETS[:3, :3], {}, "expected 4"),
        (ring(4).astype(float), SOCKETS, {}, "integers"),
        (ring(2), SOCKETS, {**PAIRS, "groups": np.array([0, 1, 1, 1])}, "multiple of 2"),
        (ring(4), SOCKETS, {"start": np.array([0, 0, 1, 2])}, "start"),
        (ring(2), SOCKETS, {**PAIRS, "start": np.array([0, 2, 1, 3])}, "one group"),
        (BIG, BIG, {}, "limit 1024"),
        (ring(4) * 10**9, SOCKETS * 10**6, {}, "2\\^47"),
    ],
)
def test_refuses_what_is_no_mapping(weights: IntArray, distances: IntArray, more: dict[str, Any], words: str) -> None:
    """Each message names the argument."""
    with pytest.raises((BadInput, Unsupported), match=words):
        map_ranks(weights, distances, **more)
