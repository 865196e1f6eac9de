"""Replies that are parsed already, and single pods: the same records as whole files give."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from placeopt import BadInput, Unsupported
from placeopt.importers import KubernetesObjects, read_kubernetes, read_slurm
from placeopt.model import Instance

EXAMPLES = Path(__file__).parents[2] / "examples"
REAL = Path(__file__).parents[1] / "data" / "snapshots" / "slurm-22.05"
SLURM = [
    (EXAMPLES / "slurm_nodes.json", EXAMPLES / "slurm_jobs.json", EXAMPLES / "topology.conf"),
    (REAL / "nodes.json.gz", REAL / "jobs.json.gz", REAL / "topology.conf"),
    (REAL / "nodes_later.json.gz", REAL / "jobs_later.json.gz", REAL / "topology.txt"),
    (REAL / "slurmrestd_nodes.json.gz", REAL / "slurmrestd_jobs.json.gz", None),
]


def parsed(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    value: dict[str, Any] = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return value


KUBERNETES = parsed(EXAMPLES / "kubernetes.json")
ITEMS: list[dict[str, Any]] = KUBERNETES["items"]
LISTS = [  # as the API lists them: the kind stands in the list alone
    {
        "kind": f"{kind}List",
        "items": [{k: v for k, v in item.items() if k != "kind"} for item in ITEMS if item["kind"] == kind],
    }
    for kind in dict.fromkeys(item["kind"] for item in ITEMS)
]


def bare(instance: Instance) -> dict[str, Any]:
    """Return an instance without what states the names of files."""
    document = instance.model_dump()
    document["note"] = document["note"].partition("\n")[2]
    for machine in document["cluster"]["machines"]:
        machine["source"] = None
    return document


@pytest.mark.parametrize(("nodes", "jobs", "topology"), SLURM)
def test_parsed_replies_of_slurm(nodes: Path, jobs: Path, topology: Path | None) -> None:
    assert bare(read_slurm(parsed(nodes), parsed(jobs), topology)) == bare(read_slurm(nodes, jobs, topology))


@pytest.mark.parametrize(
    "given", [KUBERNETES, [KUBERNETES], ITEMS, LISTS, [*LISTS, {"kind": "PodList", "items": None}]]
)
def test_parsed_objects_of_kubernetes(given: Any) -> None:
    assert bare(read_kubernetes(given)) == bare(read_kubernetes([EXAMPLES / "kubernetes.json"]))


def test_single_objects_of_kubernetes() -> None:
    whole = read_kubernetes(KUBERNETES)
    reader = KubernetesObjects(KUBERNETES, cluster=whole.cluster)
    pods = {
        f"{item['metadata'].get('namespace', 'default')}/{item['metadata']['name']}": item
        for item in ITEMS
        if item["kind"] == "Pod"
    }
    for job in whole.jobs:
        assert job.origin is not None
        one = reader.job(*(pods[worker.name] for worker in job.origin.workers))
        assert one == job.model_copy(update={"priority": 0, "labels": one.labels})
        assert one.labels.items() >= job.labels.items()  # relations of jobs that come later may look at any of them


def test_what_a_single_object_cannot_be() -> None:
    reader = KubernetesObjects(KUBERNETES)
    with pytest.raises(Unsupported, match="behind a scheduling gate"):
        reader.job(next(item for item in ITEMS if item["metadata"]["name"] == "gated-0"))
    with pytest.raises(BadInput, match="0 jobs, expected the pods of one"):
        reader.job()
