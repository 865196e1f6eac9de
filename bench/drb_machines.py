"""
Where Fiduccia-Mattheyses matters inside machines: ``python bench/drb_machines.py [--data DIR] [--out FILE.md]``.

Dual recursive bi-partitioning (``placeopt.heuristics.drb``) places a job of k GPUs that all communicate alike on a
machine of which some GPUs are free, both drawn. Three ways to halve the hardware are compared by the job's sum of
distances over the least possible one: in the order of the GPUs; by Fiduccia and Mattheyses once for the machine, which
is what placeopt does; and by them anew for the free GPUs of every job, as SC'17's algorithm 2 is printed. ``--data``
adds the machines of dumps that ``placeopt`` reads, such as ``nvidia-smi topo -m``.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from unittest.mock import patch

import numpy as np

from placeopt import PlaceoptError
from placeopt.environment import usable_cores, versions
from placeopt.formats.table import markdown_table
from placeopt.formats.topo.read import read_topo
from placeopt.heuristics.drb import hardware_tree
from placeopt.heuristics.drb.hardware_tree import HalvingTree, machine_tree
from placeopt.heuristics.drb.split import Inside
from placeopt.model import Machine
from placeopt.problem import IntArray
from placeopt.topology import MACHINES, gpu_distances

GPUS_MOST = 16
"""GPUs of a machine up to which the least distance is found by trying all sets."""


def machines(data: Path | None) -> Iterator[tuple[str, IntArray]]:
    """Yield names and distances of machines that differ in their distances, of 3 to ``GPUS_MOST`` GPUs."""
    known: set[bytes] = set()
    built = ((name, build()) for name, build in MACHINES.items())
    for name, machine in (*built, *_dumped(data)):
        distances = gpu_distances(machine)
        if 3 <= len(distances) <= GPUS_MOST and distances.tobytes() not in known:
            known.add(distances.tobytes())
            yield name, distances


def _dumped(data: Path | None) -> Iterator[tuple[str, Machine]]:
    for path in () if data is None else sorted(path for path in data.rglob("*") if path.is_file()):
        try:
            read = read_topo([path])
        except PlaceoptError:
            continue
        if isinstance(read, Machine):
            yield path.name, read


def in_file_order(size: int) -> HalvingTree:
    """Return the halves of so many GPUs in their order."""
    return machine_tree(np.ones((size, size), dtype=np.int64) - np.eye(size, dtype=np.int64))


def path_of(distances: IntArray, free: list[int], count: int, tree: HalvingTree, leaves: list[int]) -> int:
    """Return the sum of distances of a job of ``count`` GPUs; ``tree`` halves ``leaves``."""
    size = len(leaves)
    usable = np.isin(leaves, free)
    nothing = np.zeros(size, dtype=np.int64)
    inside = Inside(
        tree, distances[np.ix_(leaves, leaves)], usable, usable, nothing, np.zeros(size), 1.0, lambda _, __: 0.0
    )
    gpu_of: dict[int, int] = {}
    if not inside.drb(list(range(count)), None, 0, gpu_of, np.random.default_rng(0)):
        raise RuntimeError("no room")
    chosen = [leaves[gpu] for gpu in gpu_of.values()]
    return int(distances[np.ix_(chosen, chosen)].sum()) // 2


def least_path(distances: IntArray, free: list[int], count: int) -> int:
    """Return the least sum of distances of ``count`` free GPUs."""
    sets = np.array(list(combinations(free, count)))
    total = sum(distances[sets[:, i], sets[:, j]] for i, j in combinations(range(count), 2))
    return int(np.min(total))


def row(name: str, distances: IntArray, seeds: int, cases: int) -> tuple[str | int, ...]:
    """Return the row of a machine."""
    size, everything = len(distances), list(range(len(distances)))
    with patch.object(hardware_tree, "bisect", wraps=hardware_tree.bisect) as cuts:
        hardware_tree._machine_tree.cache_clear()
        once = machine_tree(distances)
        calls = cuts.call_count
    ordered = in_file_order(size)
    excess: dict[str, list[float]] = {"order": [], "once": [], "anew": []}
    worse = dict.fromkeys(excess, 0)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        for _ in range(cases):
            num_free = int(rng.integers(3, size + 1))
            free = sorted(rng.choice(size, num_free, replace=False).tolist())
            count = int(rng.integers(2, max(3, num_free)))
            least = least_path(distances, free, count)
            anew = machine_tree(distances[np.ix_(free, free)])
            for how, tree, leaves in (
                ("order", ordered, everything),
                ("once", once, everything),
                ("anew", anew, free),
            ):
                path = path_of(distances, free, count, tree, leaves)
                excess[how].append(path / least)
                worse[how] += path > least
    cells = [f"{np.mean(excess[how]):.3f} ({100 * worse[how] / (seeds * cases):.0f} %)" for how in excess]
    return (name, size, len(np.unique(distances)) - 1, calls, *cells)


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cases", type=int, default=40, help="jobs a seed and machine")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = [row(name, distances, arguments.seeds, arguments.cases) for name, distances in machines(arguments.data)]
    made_with = ", ".join(f"{name} {version}" for name, version in versions().items())
    text = (
        "# Fiduccia-Mattheyses inside machines\n\n"
        "A job's sum of distances over the least possible one, mean of "
        f"{arguments.seeds} seeds of {arguments.cases} jobs, and in how many of them it is\n"
        "above the least; `levels`: different distances between GPUs; `cuts`: calls of Fiduccia-Mattheyses for the\n"
        "machine. `order`: halves in the order of the GPUs; `once`: placeopt's; `anew`: halves of the free GPUs, for\n"
        f"every job. `python bench/drb_machines.py --seeds {arguments.seeds} --cases {arguments.cases}"
        f"{' --data DIR' if arguments.data else ''}`;\n{usable_cores()} cores, Python {platform.python_version()}, "
        f"{made_with}.\n\n"
        + markdown_table(
            ("machine", "GPUs", "levels", "cuts", "order", "once", "anew"),
            rows,
            right=("GPUs", "levels", "cuts", "order", "once", "anew"),
            aligned=True,
        )
    )
    if arguments.out is None:
        print(text)
    else:
        arguments.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
