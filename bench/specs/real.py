"""
Moments of real clusters, and the pod lists of Alibaba's trace gpu-v2023 as rounds in which all wait.

The lists that are not stored here are read from the folder that ``OPENB_LISTS`` names, which holds the files ``csv`` of
https://github.com/alibaba/clusterdata (cluster-trace-gpu-v2023); without it, these rounds are left out.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kubernetes_lists import drawn
from placeopt import Instance
from placeopt.importers import read_kubernetes, read_openb, read_slurm
from rounds import COLUMNS, GREEDY, ROOT, Solve, listed, solve_round, stored
from spec import BenchSpec

STORED = (*(entry for entry in listed("real") if entry.endswith(".json.gz")), "openb/openb-first-500.json.gz")
LISTS = ("openb-default", "openb-gpuspec33", "openb-multigpu20")
READ = Path(os.environ.get("OPENB_LISTS", "/nowhere"))
SAMPLES, SLURM = ROOT / "examples", ROOT / "tests" / "data" / "snapshots" / "slurm-22.05"
NODES = 1000


def kubernetes() -> Instance:
    """Return a cluster as its API server lists it, with 3.3 pods a node."""
    return read_kubernetes({"kind": "List", "items": drawn(random.Random(1), NODES, 33 * NODES // 10)})


def moments() -> dict[str, Callable[[], Instance]]:
    """Return what others wrote, by name."""
    return {
        "slurm, sample": partial(read_slurm, SAMPLES / "slurm_nodes.json", SAMPLES / "slurm_jobs.json"),
        "slurm 22.05, sinfo": partial(read_slurm, SLURM / "sinfo.json.gz", SLURM / "jobs.json.gz"),
        "slurm 22.05, later": partial(read_slurm, SLURM / "nodes_later.json.gz", SLURM / "jobs_later.json.gz"),
        "kubernetes, sample": lambda: read_kubernetes(json.loads((SAMPLES / "kubernetes.json").read_text("utf-8"))),
        f"kubernetes, {NODES:,} nodes drawn": kubernetes,
    }


def rounds() -> dict[str, Solve]:
    """Return all rounds."""
    small = dict(map(stored, STORED)) | moments()
    lists = dict(stored(f"openb/{name}.json.gz") for name in LISTS)
    nodes = READ / "openb_node_list_all_node.csv"
    for pods in sorted(READ.glob("openb_pod_list_*.csv")):
        name = f"openb-{pods.stem.removeprefix('openb_pod_list_')}"
        if name not in lists:
            lists[name] = partial(read_openb, nodes, pods, name=name)
    return {
        **{name: Solve(make, limits_s=(1.0, 10.0), methods=("auto", GREEDY)) for name, make in small.items()},
        **{name: Solve(make, limits_s=(5.0,), methods=("auto", GREEDY)) for name, make in lists.items()},
    }


SPEC = BenchSpec(
    name="real",
    question="How far are plans of moments of real clusters from their bounds?",
    rounds=rounds(),
    run=solve_round,
    columns=COLUMNS,
    minutes=8,
)
