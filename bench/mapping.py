"""
Maps ranks to GPUs, graph by machine, and prints cost, bound, gap and time as a table; docs/mapping.md quotes it.

    OPENBLAS_NUM_THREADS=1 python bench/mapping.py [--time-limit S] [--write bench/mapping.md]

Protocol: one job on all GPUs of the machines, ranks of one GPU unless the row says otherwise, edge weights 1 (random
graphs: 1 to 4). Every case runs alone, one after the other, in one process, with a deadline of --time-limit seconds and
seed 0. Before is the cost of the ranks in sequence along the GPUs. The times are those of `map_ranks`, by the clock and
of all threads' CPU; distances are given.
Every answer is asserted: the cost is that of the order, the bound is no higher, up to 16 GPUs on the machines listed
first it is proven.
"""

import argparse
import os
import platform
import time
from pathlib import Path

import numpy as np

from placeopt.model import Cluster, Domain, Machine, Node
from placeopt.rank_mapping import Mapping, map_ranks
from placeopt.topology import ClusterTopology, dgx1, dgx2, minsky, pcie_box

HEADER = (
    "| GPUs | machines | ranks x GPUs | graph | before | cost | bound | gap % | seconds | CPU seconds |\n"
    "|---|---|---|---|---|---|---|---|---|---|\n"
)


def machines(machine: Machine, count: int, racks: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances between all GPUs of ``count`` machines in ``racks`` racks, and the node of each."""
    cluster = Cluster(
        machines=(machine,),
        domains=tuple(Domain(id=f"r{r}") for r in range(racks)),
        nodes=tuple(Node(id=f"n{n}", machine=machine.id, domain=f"r{n * racks // count}") for n in range(count)),
    )
    topology = ClusterTopology(cluster)
    return topology.pair_distances(np.arange(topology.num_gpus)), topology.gpu_node


def odd_machine() -> tuple[np.ndarray, np.ndarray]:
    """One machine of 16 GPUs: 8 cards of two GPUs, 1 apart, the cards in a ring with steps of 2 and two shortcuts."""
    card = np.full((8, 8), 100)
    np.fill_diagonal(card, 0)
    for a, b in [*((c, (c + 1) % 8) for c in range(8)), (0, 3), (2, 6)]:
        card[a, b] = card[b, a] = 2
    for via in range(8):
        card = np.minimum(card, card[:, via, None] + card[via])
    distances = np.kron(card, np.ones((2, 2), dtype=np.int64)) + np.kron(np.eye(8, dtype=np.int64), 1 - np.eye(2))
    return distances.astype(np.int64), np.zeros(16, dtype=np.int64)


def symmetric(k: int, edges: list[tuple[int, int]], weights: list[int] | None = None) -> np.ndarray:
    """Weights of a graph on ``k`` ranks."""
    out = np.zeros((k, k), dtype=np.int64)
    for i, (a, b) in enumerate(edges):
        out[a, b] = out[b, a] = 1 if weights is None else weights[i]
    return out


def ring(k: int) -> np.ndarray:
    """Rank r talks to r + 1."""
    return symmetric(k, [(r, (r + 1) % k) for r in range(k)])


def grid(k: int) -> np.ndarray:
    """Two dimensions, as square as can be, no wrap."""
    wide = next(w for w in range(int(k**0.5), 0, -1) if k % w == 0)
    right = [(r, r + 1) for r in range(k) if (r + 1) % wide]
    return symmetric(k, right + [(r, r + wide) for r in range(k - wide)])


def tree(k: int) -> np.ndarray:
    """Binary: rank r talks to (r - 1) // 2."""
    return symmetric(k, [(r, (r - 1) // 2) for r in range(1, k)])


def all_to_all(k: int) -> np.ndarray:
    """Every pair alike."""
    return np.ones((k, k), dtype=np.int64) - np.eye(k, dtype=np.int64)


def sparse(k: int) -> np.ndarray:
    """Random, degree about 4, weights 1 to 4."""
    return at_random(k, 4 / (k - 1))


def dense(k: int) -> np.ndarray:
    """Random, half of all pairs, weights 1 to 4."""
    return at_random(k, 0.5)


def at_random(k: int, share: float) -> np.ndarray:
    """Random graph with that share of all pairs."""
    rng = np.random.default_rng(k)
    a, b = np.triu_indices(k, 1)
    keep = rng.random(len(a)) < share
    return symmetric(k, list(zip(a[keep], b[keep], strict=True)), rng.integers(1, 5, int(keep.sum())).tolist())


GRAPHS = {"ring": ring, "grid": grid, "tree": tree, "all to all": all_to_all, "sparse": sparse, "dense": dense}


def row(name: str, where: tuple[np.ndarray, np.ndarray], graph: str, size: int, limit_s: float, proven: bool) -> str:
    """Run one case; return its line."""
    distances, nodes = where
    k = len(distances) // size
    weights = GRAPHS[graph](k)
    started, deadline, cpu = time.perf_counter(), time.monotonic() + limit_s, time.process_time()
    mapping: Mapping = map_ranks(weights, distances, nodes, gpus_per_rank=size, inside=1, deadline=deadline)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    traffic = np.kron(weights + np.eye(k, dtype=np.int64), np.ones((size, size), dtype=np.int64))
    before = int((traffic * distances).sum()) // 2
    assert mapping.cost == int((traffic * distances[np.ix_(mapping.order, mapping.order)]).sum()) // 2
    assert mapping.bound <= mapping.cost <= before
    assert mapping.optimal or not proven, (name, graph, mapping)
    gap = 100 * (mapping.cost - mapping.bound) / max(1, mapping.cost)
    return (
        f"| {len(distances)} | {name} | {k} x {size} | {graph} | {before:,} | {mapping.cost:,} | {mapping.bound:,} | "
        f"{gap:.1f} | {seconds:.2f} | {cpu:.2f} |\n"
    )


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description="Rank-to-device mapping, graph by machine.")
    parser.add_argument("--time-limit", type=float, default=5.0, help="seconds a case (5)")
    parser.add_argument("--write", type=Path, help="file to write instead of printing")
    arguments = parser.parse_args()
    box = pcie_box(8, gpus_per_switch=2)
    small = {
        "Minsky x 4": machines(minsky(), 4, 1),
        "DGX-1 x 2": machines(dgx1(), 2, 1),
        "DGX-2": machines(dgx2(), 1, 1),
        "PCIe box x 2": machines(box, 2, 1),
    }
    odd = {"ring of 8 x 2, no tree": odd_machine()}
    large = {
        "DGX-1 x 8, 2 racks": machines(dgx1(), 8, 2),
        "socket box x 8, 2 racks": machines(pcie_box(8), 8, 2),
        "PCIe box x 8, 2 racks": machines(box, 8, 2),
    }
    cases = [(name, where, graph, 1, True) for name, where in small.items() for graph in GRAPHS]
    cases += [(name, small[name], graph, 2, True) for name in ("Minsky x 4", "DGX-1 x 2") for graph in GRAPHS]
    cases += [(name, where, graph, 1, False) for name, where in odd.items() for graph in GRAPHS]
    cases += [(name, where, graph, 1, False) for name, where in large.items() for graph in GRAPHS]
    cases += [("DGX-1 x 8, 2 racks", large["DGX-1 x 8, 2 racks"], graph, 2, False) for graph in GRAPHS]
    cases += [("DGX-1 x 32, 4 racks", machines(dgx1(), 32, 4), graph, 1, False) for graph in GRAPHS]
    lines = [row(name, where, graph, size, arguments.time_limit, proven) for name, where, graph, size, proven in cases]
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "(unset)")
    command = f"python bench/mapping.py --time-limit {arguments.time_limit:g} --write bench/mapping.md"
    text = (
        f"# Rank-to-device mapping: measured\n\nBy\n`OPENBLAS_NUM_THREADS={threads} {command}`\n"
        f"on {os.cpu_count()} cores that other work shared, Python {platform.python_version()}, "
        f"numpy {np.__version__}; protocol in the script.\n\n" + HEADER + "".join(lines)
    )
    if arguments.write is None:
        print(text, end="")
    else:
        arguments.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
