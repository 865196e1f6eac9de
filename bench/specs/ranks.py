"""Ranks to GPUs: cost of the best order found for traffic between ranks, its bound, and the cost of the given order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from placeopt.model import Cluster, Domain, Machine, Node
from placeopt.rank_mapping import map_ranks
from placeopt.topology import ClusterTopology, dgx1, dgx2, minsky, pcie_box
from spec import FAILED, BenchSpec, Row

LIMIT_S = 5.0
Edges = Callable[[int], list[tuple[int, int]]]


class Machines(NamedTuple):
    """One job on all GPUs of some machines in some racks."""

    machine: Machine
    number: int
    racks: int


def ring(ranks: int) -> list[tuple[int, int]]:
    """Return the pairs (r, r + 1), and the last with the first."""
    return [(r, (r + 1) % ranks) for r in range(ranks)]


def tree(ranks: int) -> list[tuple[int, int]]:
    """Return the pairs of a binary tree."""
    return [(r, (r - 1) // 2) for r in range(1, ranks)]


def sparse(ranks: int) -> list[tuple[int, int]]:
    """Return random pairs, about two for each rank."""
    rng = np.random.default_rng(ranks)
    pairs = zip(*np.triu_indices(ranks, 1), strict=True)
    return [(int(a), int(b)) for a, b in pairs if rng.random() < 4 / (ranks - 1)]


GRAPHS: dict[str, Edges] = {"ring": ring, "tree": tree, "sparse": sparse}


def run(asked: Machines) -> Iterator[Row]:
    """Map each graph, one rank a GPU."""
    cluster = Cluster(
        machines=(asked.machine,),
        domains=tuple(Domain(id=f"r{rack}") for rack in range(asked.racks)),
        nodes=tuple(
            Node(id=f"n{n}", machine=asked.machine.id, domain=f"r{n * asked.racks // asked.number}")
            for n in range(asked.number)
        ),
    )
    topology = ClusterTopology(cluster)
    ranks = topology.num_gpus
    distances = topology.pair_distances(np.arange(ranks))
    for name, edges in GRAPHS.items():
        weights = np.zeros((ranks, ranks), dtype=np.int64)
        for a, b in edges(ranks):
            weights[a, b] = weights[b, a] = 1
        began = time.perf_counter()
        found = map_ranks(weights, distances, topology.gpu_node, deadline=time.monotonic() + LIMIT_S)
        row: Row = {
            "call": name,
            "ranks": ranks,
            "seconds": round(time.perf_counter() - began, 2),
            "in_sequence": int((weights * distances).sum()) // 2,
            "cost": int(found.cost),
            "bound": int(found.bound),
        }
        again = int((weights * distances[np.ix_(found.order, found.order)]).sum()) // 2
        yield row | ({FAILED: f"the order costs {again}, not {found.cost}"} if again != found.cost else {})


BOX = pcie_box(8, gpus_per_switch=2)
SPEC = BenchSpec(
    name="ranks",
    question="How much traffic does the order of ranks save, and how near is it to its bound?",
    rounds={
        "Minsky x 4": Machines(minsky(), 4, 1),
        "DGX-1 x 2": Machines(dgx1(), 2, 1),
        "DGX-2": Machines(dgx2(), 1, 1),
        "PCIe box x 2": Machines(BOX, 2, 1),
        "DGX-1 x 8, 2 racks": Machines(dgx1(), 8, 2),
        "PCIe box x 8, 2 racks": Machines(BOX, 8, 2),
        "DGX-1 x 32, 4 racks": Machines(dgx1(), 32, 4),
    },
    run=run,
    columns=("round", "call", "ranks", "seconds", "in_sequence", "cost", "bound", "load"),
    minutes=2,
)
