"""A small Slurm cluster with the jobs that a test asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from placeopt.importers import read_slurm
from placeopt.model import Instance

DATA = Path(__file__).resolve().parents[2] / "examples"
WAITS = {
    "job_id": 2,
    "job_state": "PENDING",
    "partition": "gpu",
    "state_reason": "Priority",
    "priority": 5,
    "tasks": 1,
    "tres_req_str": "cpu=1,mem=1G,node=1",
    "memory_per_node": 1024,
}
RUNS = {
    "job_id": 1,
    "job_state": "RUNNING",
    "partition": "gpu",
    "nodes": "gpu01",
    "tres_alloc_str": "cpu=8,mem=8G,node=1",
    "start_time": 100,
}


def idle_nodes(count: int) -> dict[str, Any]:
    """Return the reply of ``sinfo`` for idle nodes n0, n1, ... of 4 A100 and 32 CPUs each."""
    node = {"cpus": 32, "real_memory": 64_000, "gres": "gpu:a100:4", "state": "idle", "partitions": ["gpu"]}
    return {"nodes": [{"name": f"n{i}", **node} for i in range(count)]}


def replies(*jobs: dict[str, Any], **node: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the nodes of the small cluster, the first (4 A100, 64 CPUs) changed, and these jobs, as Slurm does."""
    nodes = json.loads((DATA / "slurm_nodes.json").read_text())
    nodes["nodes"][0].update(node)
    return nodes, {"jobs": list(jobs)}


def read(*jobs: dict[str, Any], **node: Any) -> Instance:
    """Read the small cluster of `replies`."""
    return read_slurm(*replies(*jobs, **node))
