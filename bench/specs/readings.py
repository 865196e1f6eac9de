"""Reading what other programs write: the samples of this repository, and a large cluster of Kubernetes."""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from command import placeopt
from kubernetes_lists import drawn
from placeopt import read_instance
from rounds import ROOT, gpus_of
from spec import BenchSpec, Row

SAMPLES, REAL = ROOT / "examples", ROOT / "tests" / "data" / "snapshots" / "slurm-22.05"
NODES = 5000


def read(words: tuple[str, ...]) -> Iterator[Row]:
    """Import files by the command line, and say what the round has that was written."""
    with tempfile.TemporaryDirectory() as folder:
        if words[-1] == "DRAWN":
            made = Path(folder, "cluster.json")
            items = drawn(random.Random(1), NODES, 33 * NODES // 10)
            made.write_text(json.dumps({"kind": "List", "items": items}), encoding="utf-8")
            words = (*words[:-1], str(made))
        out = Path(folder, "round.json.gz")
        wall, cpu = time.perf_counter(), time.process_time()
        placeopt("import", *words, "--out", str(out))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        instance = read_instance(out)
        yield {
            "seconds": round(wall, 3),
            "cpu_s": round(cpu, 3),
            "nodes": len(instance.cluster.nodes),
            "gpus": gpus_of(instance),
            "jobs": len(instance.jobs),
            "running": len(instance.running),
        }


def slurm(folder: Path, nodes: str, jobs: str) -> tuple[str, ...]:
    """Return the words that import a moment of Slurm."""
    return ("slurm", "--nodes", str(folder / nodes), "--jobs", str(folder / jobs))


SPEC = BenchSpec(
    name="readings",
    question="How long does reading a cluster take, from the files of another program to the round's file?",
    rounds={
        "kubernetes, sample": ("kubernetes", str(SAMPLES / "kubernetes.json")),
        "slurm, sample": slurm(SAMPLES, "slurm_nodes.json", "slurm_jobs.json"),
        "slurm 22.05, sinfo": slurm(REAL, "sinfo.json.gz", "jobs.json.gz"),
        "slurm 22.05, later": slurm(REAL, "nodes_later.json.gz", "jobs_later.json.gz"),
        f"kubernetes, {NODES:,} nodes drawn": ("kubernetes", "DRAWN"),
    },
    run=read,
    columns=("round", "seconds", "cpu_s", "nodes", "gpus", "jobs", "running", "load"),
    minutes=1,
)
