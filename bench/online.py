"""
openb by FGD's protocol: ``python bench/online.py FOLDER [--lists L,..] [--policies P,..] [--seeds N] [--out FILE.md]``.

One pod at a time, none ever leaves, none is tried twice; the authors' own ten orders. FOLDER holds the trace's csv
files (alibaba/clusterdata, cluster-trace-gpu-v2023). Prints what is allocated at 100 and 130 % arrived, in percent of
the 6,212 GPUs, beside the means that were published (Weng et al., ATC'23, expected results of the simulator).
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from arrivals import Arrivals, read_arrivals
from placeopt.heuristics import Candidates, place, score_named
from placeopt.problem import State
from placeopt.workplace import versions
from points import InPoints

LISTS = ("default", "gpuspec33", "multigpu20")
SEEDS = range(42, 52)
PUBLISHED = {
    "default": ((86.30, 87.47), (90.62, 90.85), (91.65, 91.88), (91.78, 92.00), (92.86, 93.08), (95.23, 95.39)),
    "gpuspec33": ((83.87, 86.46), (79.82, 89.14), (81.09, 92.12), (82.22, 93.22), (80.39, 93.09), (87.84, 94.55)),
    "multigpu20": ((86.92, 88.69), (91.85, 92.06), (93.34, 93.56), (93.50, 93.71), (93.73, 93.93), (95.53, 95.65)),
}
"""Means of ten seeds at 100 and 130 % arrived, in the order of ``PEERS``."""

PEERS = ("random", "dot_product", "gpu_clustering", "gpu_packing", "best_fit", "fgd")
POINTS = ("dot_product", "gpu_packing", "fgd")
"""Also shown as the authors' simulator compares them, in whole points."""

POLICIES = (*PEERS, *(f"{name}:points" for name in POINTS), "stranding", "prices")

Run = Callable[[Arrivals, np.ndarray, int], np.ndarray]


def by_score(score: str) -> Run:
    """Let greedy's candidates decide, by a score (``:points`` rounds it): who was placed, in order of arrival."""
    name, _, points = score.partition(":")

    def run(arrivals: Arrivals, order: np.ndarray, seed: int) -> np.ndarray:
        problem = arrivals.problem
        state = State(problem)
        candidates = Candidates(state, InPoints(name, problem) if points else score_named(name, problem, seed))
        placed, hopeless = np.zeros(len(order), dtype=bool), set()
        classes = problem.job_class.tolist()
        for i, job in enumerate(order.tolist()):
            if classes[job] in hopeless:
                continue
            placement = place(candidates, job)
            if placement is None:
                hopeless.add(classes[job])  # nothing ever leaves
                continue
            state.take(job, placement)
            for node in placement.nodes:
                if score == "gpu_clustering":  # asks who is there
                    state.node_jobs[node][job] = None
                    state.placements[job] = placement
                candidates.changed(node)
            placed[i] = True
        return placed

    return run


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lists", default=",".join(LISTS))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [
        f"`python bench/online.py FOLDER --lists {arguments.lists} --policies {arguments.policies} "
        f"--seeds {arguments.seeds}`, Python {platform.python_version()}, {known}.",
        "",
        "| list | policy | at 100 % | at 130 % | published | difference | 2 standard errors | us a decision |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print(*lines, sep="\n", flush=True)
    for name in arguments.lists.split(","):
        arrivals = read_arrivals(arguments.folder, name)
        orders = {seed: arrivals.order(seed) for seed in SEEDS[: arguments.seeds]}
        for policy in arguments.policies.split(","):
            lines.append(row(name, policy, arrivals, orders))
            print(lines[-1], flush=True)
    if arguments.out is not None:
        arguments.out.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


def row(name: str, policy: str, arrivals: Arrivals, orders: dict[int, np.ndarray]) -> str:
    """Run a policy on a list with every order and return the table's line."""
    at: list[tuple[float, float]] = []
    seconds, decisions = 0.0, 0
    for seed, order in orders.items():
        started = time.process_time()
        placed = by_score(policy)(arrivals, order, seed)
        seconds += time.process_time() - started
        decisions += len(order)
        allocated = arrivals.allocated(order, placed)
        at.append((allocated[100], allocated[130]))
    means = [statistics.mean(values) for values in zip(*at, strict=True)]
    errors = [2 * statistics.stdev(v) / len(v) ** 0.5 if len(v) > 1 else 0.0 for v in zip(*at, strict=True)]
    cells = [name, policy.replace("_", " ").replace(":", ", in "), *(f"{mean:.2f}" for mean in means)]
    peer = policy.partition(":")[0]
    if peer in PEERS:
        published = PUBLISHED[name][PEERS.index(peer)]
        cells.append(" / ".join(f"{value:.2f}" for value in published))
        cells.append(" / ".join(f"{mean - value:+.2f}" for mean, value in zip(means, published, strict=True)))
    else:
        cells += ["", ""]
    cells += [" / ".join(f"{error:.2f}" for error in errors), f"{1e6 * seconds / decisions:.0f}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
