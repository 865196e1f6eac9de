"""Replies that are parsed already, single pods, jobs and nodes: the same records as whole files give."""

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from placeopt import BadInput, Unsupported
from placeopt.formats import KubernetesObjects, SlurmObjects, read_kubernetes, read_slurm
from placeopt.model import Instance, Job

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


def test_parsed_objects_of_kubernetes() -> None:
    whole = bare(read_kubernetes([EXAMPLES / "kubernetes.json"]))
    items = KUBERNETES["items"]
    lists = [  # as the API lists them: the kind stands in the list alone
        {
            "kind": f"{kind}List",
            "items": [{k: v for k, v in item.items() if k != "kind"} for item in items if item["kind"] == kind],
        }
        for kind in dict.fromkeys(item["kind"] for item in items)
    ]
    assert bare(read_kubernetes(KUBERNETES)) == whole
    assert bare(read_kubernetes([KUBERNETES])) == whole
    assert bare(read_kubernetes(items)) == whole
    assert bare(read_kubernetes(lists)) == whole
    assert bare(read_kubernetes([*lists, {"kind": "PodList", "items": None}])) == whole


def test_messages_name_the_argument() -> None:
    nodes, jobs = parsed(SLURM[0][0]), parsed(SLURM[0][1])
    with pytest.raises(BadInput, match=r"^nodes: no list 'nodes'"):
        read_slurm({}, jobs)
    with pytest.raises(BadInput, match=r"^jobs: no list 'jobs'"):
        read_slurm(nodes, {})
    broken = copy.deepcopy(jobs)
    broken["jobs"][1]["job_id"] = "x"
    with pytest.raises(BadInput, match=r"^jobs\.jobs\[1\]\.job_id: 'x'"):
        read_slurm(nodes, broken)
    with pytest.raises(Unsupported, match=r"^nodes: the list 'sinfo' of Slurm 23.02"):
        read_slurm({"sinfo": []}, jobs)
    with pytest.raises(BadInput, match=r"^objects: no 'items'"):
        read_kubernetes({})
    with pytest.raises(BadInput, match=r"^objects\[1\]\.metadata\.name: 7, expected text"):
        read_kubernetes([KUBERNETES["items"][0], {"kind": "Node", "metadata": {"name": 7}}])


@pytest.mark.parametrize(("nodes", "jobs", "topology"), SLURM)
def test_single_objects_of_slurm(nodes: Path, jobs: Path, topology: Path | None) -> None:
    whole = read_slurm(nodes, jobs, topology)
    reader = SlurmObjects(nodes, topology, cluster=whole.cluster)
    read: dict[str, Job] = {}
    refused = set()
    for entry in parsed(jobs)["jobs"]:
        try:
            read |= {job.id: job for job in reader.jobs(entry)}
        except (Unsupported, BadInput):
            refused.add(str(entry["job_id"]))
    expected = {job.id: job.model_copy(update={"priority": 0}) for job in whole.jobs}
    unknown = expected.keys() - read.keys()  # runs, and holds what cannot be read
    assert unknown <= refused
    assert len(unknown) == whole.note.count("holds all GPUs left on its nodes: 1 ")
    assert {name: job for name, job in read.items() if name in expected} == {
        name: job for name, job in expected.items() if name not in unknown
    }
    assert {name for name in read if name not in expected} <= {"507_2"}  # its array runs as many tasks as it may
    machines = {machine.id: machine for machine in whole.cluster.machines}
    for entry, node in zip(parsed(nodes)["nodes"], whole.cluster.nodes, strict=True):
        record, machine = reader.node(entry)
        assert machine == machines[node.machine]
        assert record.model_copy(update={"drained": node.drained}) == node
        assert node.drained >= record.drained


def test_single_objects_of_kubernetes() -> None:
    whole = read_kubernetes(KUBERNETES)
    reader = KubernetesObjects(KUBERNETES, cluster=whole.cluster)
    pods = {
        f"{item['metadata'].get('namespace', 'default')}/{item['metadata']['name']}": item
        for item in KUBERNETES["items"]
        if item["kind"] == "Pod"
    }
    for job in whole.jobs:
        assert job.origin is not None
        one = reader.job(*(pods[worker.name] for worker in job.origin.workers))
        assert one == job.model_copy(update={"priority": 0})
    nodes = {item["metadata"]["name"]: item for item in KUBERNETES["items"] if item["kind"] == "Node"}
    machines = {machine.id: machine for machine in whole.cluster.machines}
    for node in whole.cluster.nodes:
        there = [pod for pod in pods.values() if pod["spec"].get("nodeName") == node.id]
        assert reader.node(nodes[node.id], there) == (node, machines[node.machine])


def test_what_a_single_object_cannot_be() -> None:
    reader = KubernetesObjects(KUBERNETES)
    gated = next(item for item in KUBERNETES["items"] if item["metadata"]["name"] == "gated-0")
    with pytest.raises(Unsupported, match="behind a scheduling gate"):
        reader.job(gated)
    with pytest.raises(BadInput, match="0 jobs, expected the pods of one"):
        reader.job()
    slurm = SlurmObjects(SLURM[0][0])
    with pytest.raises(Unsupported, match="waiting for Dependency"):
        slurm.jobs(next(job for job in parsed(SLURM[0][1])["jobs"] if job["job_id"] == 508))


def test_a_node_of_another_shape_has_a_new_machine_type() -> None:
    whole = read_kubernetes(KUBERNETES)
    node = copy.deepcopy(next(item for item in KUBERNETES["items"] if item["kind"] == "Node"))
    node["status"]["allocatable"]["cpu"] = "13"
    record, machine = KubernetesObjects(KUBERNETES, cluster=whole.cluster).node(node)
    assert machine.cpu_millicores == 13_000
    assert machine.id not in {other.id for other in whole.cluster.machines}
    assert record.machine == machine.id
