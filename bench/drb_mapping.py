"""
Maps task graphs onto tree targets by dual recursive bi-partitioning and by SCOTCH; prints cost and time as a table.

    OPENBLAS_NUM_THREADS=1 python bench/drb_mapping.py [--time-limit S] [--seeds N] [--write bench/drb_mapping.md]

Protocol: as many tasks as GPUs, one task a GPU. Targets: machines of 2 sockets x 4 GPUs, in racks of 4 machines; the
distances are those that placeopt computes from the level weights. SCOTCH (Debian's `scotch`; `gmap` or `scotch_gmap`)
gets the same tree as a `tleaf` architecture whose links add up to those distances; that its own figure of a mapping's
cost agrees with ours is asserted. It runs as it comes, with no load imbalance (`-b0`), and so for quality (`-cq`); a
mapping with two tasks on a GPU is marked, and not compared. Costs are sums of edge weight x distance. Random graphs:
every task talks to 4 others drawn at random, weights 1 to 4; a row a seed.

DRB is the job's placement by method `drb`; swaps is that improved by `map_ranks` from it, as stage `ranks` does it,
with a deadline of --time-limit seconds. Times are wall and CPU; SCOTCH's are wall, with starting it and its files.
"""

import argparse
import os
import platform
import re
import resource
import shutil
import subprocess
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np

from placeopt.heuristics.drb.place import Bipartition
from placeopt.model import Cluster, Communication, Demand, Domain, Edge, Gpu, Instance, Job, Machine, Node, Option, Part
from placeopt.problem import State, compile_problem
from placeopt.rank_mapping import map_ranks

GPUS_A_SOCKET, SOCKETS, NODES_A_RACK = 4, 2, 4
HEADER = (
    "| tasks | graph | in sequence | DRB | s | CPU s | DRB + swaps | s | CPU s | SCOTCH | s | -b0 | s | -b0 -cq | s "
    "| DRB / best SCOTCH | DRB + swaps / best SCOTCH |\n" + "|---|---|" + "---|" * 15 + "\n"
)


def cluster(tasks: int) -> Cluster:
    """Return machines for so many tasks."""
    gpu = [Gpu(model="V100", memory_mib=16_384, part=f"s{s}") for s in range(SOCKETS) for _ in range(GPUS_A_SOCKET)]
    parts = tuple(Part(id=f"s{s}", level="socket") for s in range(SOCKETS))
    machine = Machine(id="m", gpus=tuple(gpu), parts=parts, cpu_millicores=32_000, memory_mib=262_144)
    nodes = tasks // len(gpu)
    racks = nodes // NODES_A_RACK
    return Cluster(
        machines=(machine,),
        domains=tuple(Domain(id=f"r{r}", level="rack") for r in range(racks)),
        nodes=tuple(Node(id=f"n{n}", machine="m", domain=f"r{n // NODES_A_RACK}") for n in range(nodes)),
    )


def lattice(*sides: int) -> np.ndarray:
    """Weights of a grid without wrap."""
    at = np.array(list(product(*map(range, sides))))
    return (np.abs(at[:, None] - at[None]).sum(axis=2) == 1).astype(np.int64)


def ring(tasks: int) -> np.ndarray:
    """Task t talks to t + 1."""
    shift = np.roll(np.eye(tasks, dtype=np.int64), 1, axis=1)
    return shift + shift.T


def random_graph(tasks: int, seed: int) -> np.ndarray:
    """Every task talks to 4 others, weights 1 to 4."""
    rng = np.random.default_rng(seed)
    out = np.zeros((tasks, tasks), dtype=np.int64)
    for a in range(tasks):
        for b in rng.choice([t for t in range(tasks) if t != a], size=4, replace=False):
            out[a, b] = out[b, a] = int(rng.integers(1, 5))
    return out


def shuffled(weights: np.ndarray) -> np.ndarray:
    """Return the same graph with its tasks in another order, so that nobody is helped by their numbers."""
    order = np.random.default_rng(1).permutation(len(weights))
    return weights[np.ix_(order, order)]


def graphs(tasks: int, seeds: int) -> dict[str, np.ndarray]:
    """Return weights by name."""
    flat = (8, 8) if tasks == 64 else (16, 32)
    cube = (4, 4, 4) if tasks == 64 else (8, 8, 8)
    named = {"ring": ring(tasks), "2-D grid": lattice(*flat), "3-D grid": lattice(*cube)}
    out = {**named, **{f"{name}, shuffled": shuffled(weights) for name, weights in named.items()}}
    out["all to all"] = np.ones((tasks, tasks), dtype=np.int64) - np.eye(tasks, dtype=np.int64)
    return {**out, **{f"random {seed}": random_graph(tasks, seed) for seed in range(seeds)}}


def cost(weights: np.ndarray, far: np.ndarray, at: np.ndarray) -> int:
    """Sum over pairs of weight x distance."""
    assert sorted(at.tolist()) == list(range(len(at)))
    return int((weights * far[np.ix_(at, at)]).sum()) // 2


def clocks() -> tuple[float, float]:
    """Wall and CPU seconds, children included."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), time.process_time() + spent.ru_utime + spent.ru_stime


def drb(hardware: Cluster, weights: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return task -> GPU by method ``drb``, and its seconds."""
    tasks = len(weights)
    pairs = np.argwhere(np.triu(weights, 1))
    alike = len(pairs) == tasks * (tasks - 1) // 2 and len(np.unique(weights[weights > 0])) == 1
    edges = tuple(Edge(ranks=(int(a), int(b)), weight=int(weights[a, b])) for a, b in pairs)
    talk = Communication(weight=1) if alike else Communication(edges=edges)
    option = Option(id="o", workers=tasks, demand=Demand(gpus=1))
    problem = compile_problem(Instance(cluster=hardware, jobs=(Job(id="j", options=(option,), communication=talk),)))
    state = State(problem)
    wall, cpu = clocks()
    placement = Bipartition(state).place(0)
    after = clocks()
    assert placement is not None
    return np.array(placement.gpus), after[0] - wall, after[1] - cpu


def swaps(weights: np.ndarray, far: np.ndarray, start: np.ndarray, limit: float) -> tuple[np.ndarray, float, float]:
    """Return a mapping improved by swaps, and its seconds."""
    wall, cpu = clocks()
    mapping = map_ranks(weights, far, start=start, deadline=time.monotonic() + limit)
    after = clocks()
    return mapping.order, after[0] - wall, after[1] - cpu


def scotch(program: str, weights: np.ndarray, far: np.ndarray, *more: str) -> tuple[np.ndarray, float]:
    """Return task -> GPU by SCOTCH, and its seconds."""
    tasks = len(weights)
    sides = [tasks // (GPUS_A_SOCKET * SOCKETS * NODES_A_RACK), NODES_A_RACK, SOCKETS, GPUS_A_SOCKET]
    steps = np.cumprod([1, *sides[::-1]])[:-1].tolist()  # a GPU that many further lies across each level
    reach = [0, *(int(far[0, step]) for step in steps)]
    links = np.diff(reach)[::-1].tolist()
    assert min(links) >= 0
    lines = [f"{int((row > 0).sum())} " + " ".join(f"{row[t]} {t}" for t in np.flatnonzero(row)) for row in weights]
    edges = int((weights > 0).sum())
    with tempfile.TemporaryDirectory() as folder:
        graph, target, out = (Path(folder) / name for name in ("graph.grf", "target.tgt", "out.map"))
        graph.write_text(f"0\n{tasks} {edges}\n0 010\n" + "\n".join(lines) + "\n")
        levels = [(n, link) for n, link in zip(sides, links, strict=True) if n > 1]
        target.write_text(f"tleaf {len(levels)} " + " ".join(f"{n} {link}" for n, link in levels) + "\n")
        wall = time.perf_counter()
        done = subprocess.run([program, *more, "-vm", graph, target, out], check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - wall
        rows = [line.split() for line in out.read_text().splitlines()[1:]]
    at = np.empty(tasks, dtype=np.int64)
    for task, gpu in rows:
        at[int(task)] = int(gpu)
    said = re.search(r"CommExpan=.*\((\d+)\)", done.stdout)
    if len(set(at.tolist())) == tasks:
        assert said is not None
        assert int(said[1]) == cost(weights, far, at)
    return at, seconds


def main() -> None:
    """Run every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    program = shutil.which("gmap") or shutil.which("scotch_gmap")
    if program is None:
        print("SCOTCH is not installed (Debian package scotch): its columns stay empty")
    rows: list[str] = []
    for tasks in (64, 512):
        hardware = cluster(tasks)
        problem = compile_problem(Instance(cluster=hardware))
        far = problem.topology.pair_distances(np.arange(tasks))
        for name, weights in graphs(tasks, given.seeds).items():
            at, wall, cpu = drb(hardware, weights)
            better, more_wall, more_cpu = swaps(weights, far, at, given.time_limit)
            cells = [f"{cost(weights, far, np.arange(tasks)):,}", f"{cost(weights, far, at):,}"]
            cells += [
                f"{wall:.2f}",
                f"{cpu:.2f}",
                f"{cost(weights, far, better):,}",
                f"{more_wall:.2f}",
                f"{more_cpu:.2f}",
            ]
            peers: list[int] = []
            for arguments in ((), ("-b0",), ("-b0", "-cq")) if program is not None else ():
                theirs, seconds = scotch(program, weights, far, *arguments)
                lawful = len(set(theirs.tolist())) == tasks
                peers += [cost(weights, far, theirs)] if lawful else []
                cells += [f"{peers[-1]:,}" if lawful else "two tasks on a GPU", f"{seconds:.2f}"]
            cells += [""] * (6 if program is None else 0)
            cells += [f"{cost(weights, far, order) / min(peers):.3f}" if peers else "-" for order in (at, better)]
            rows.append(f"| {tasks} | {name} | " + " | ".join(cells) + " |")
            print(rows[-1], flush=True)
    if given.write:
        version = ""
        if program is not None:
            said = subprocess.run([program, "-V"], capture_output=True, text=True, check=False)
            match = re.search(r"version (\S+)", said.stdout + said.stderr)
            version = f", SCOTCH {match[1]}" if match else ", SCOTCH"
        given.write.write_text(
            "# Mapping by dual recursive bi-partitioning, beside SCOTCH\n\nBy\n"
            f"`OPENBLAS_NUM_THREADS=1 python bench/drb_mapping.py --time-limit {given.time_limit:g} "
            f"--seeds {given.seeds} --write bench/drb_mapping.md`\non {os.cpu_count()} cores that other work shared, "
            f"Python {platform.python_version()}, numpy {np.__version__}{version}; protocol in the script. Costs are "
            "sums of weight x distance; the last\ntwo columns are at most 1 where ours costs no more.\n\n"
            + HEADER
            + "\n".join(rows)
            + "\n"
        )


if __name__ == "__main__":
    main()
