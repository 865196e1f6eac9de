"""Lists of resource managers of which some fields are odd: most are read, since one odd thing stops nothing."""

import copy
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from helpers.imported_rounds import left_out
from helpers.kubernetes_objects import apart, near, node, pod, term
from placeopt import BadInput, PlaceoptError
from placeopt.importers import read_kubernetes, read_slurm

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, REAL = ROOT / "examples", ROOT / "tests" / "data" / "snapshots" / "slurm-22.05"
SLURM_ODD: list[Any] = [
    *(None, True, -1, 0, 1, 10**12, 10**30, 2**64 - 2, 0.5, float("inf"), "", "x", "(null)", "9" * 5000),
    *("gpu:4", "gres:gpu:4", "gres:gpu:99999999", "gpu:a:b:c", "[", "g[1-99999]", "cpu=1,mem=1P,node=9", "a*2"),
    *("IDLE", "DRAIN", "PENDING", "RUNNING", ["RUNNING", "PENDING"], "None", "[a|b]&", "(" * 2500, "\0\u202e=x"),
    *([], ["x"], [None], {}, {"set": True, "number": 10**15}, {"set": "x"}, {"a": {"b": [1]}}, "0-9:0"),
    *(["gpu:8(IDX:0-7)"], ["gpu:2(IDX:5-9999999)"], ["gpu:2(IDX:0,5000)"], "1" * 300, 2**63),
]
KUBERNETES_ODD: list[Any] = [
    *(None, 0, 7, -1, True, "", [], {}, "x", "1e3", "500m", [1], {"a": 1}, [{}], [None], 1e300, 1.5, "\u202e"),
    *("two words", "two\nlines", "1" * 300, [{"name": "a"}]),
]


CEL = 'device.attributes["nic.example.com"].type == "nic" && device.driver == "nic.example.com"'


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every field and element below the first level."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        if path:
            yield (*path, key)
        yield from places(inner, (*path, key))


def changed(document: Any, paths: list[tuple[Any, ...]], odd: list[Any], draw: Random) -> Any:
    """Return a copy with one to five fields replaced or taken away, as far as they are still there."""
    made = copy.deepcopy(document)
    for _ in range(draw.choice((1, 1, 2, 5))):
        *above, last = draw.choice(paths)
        holder = made
        try:
            for key in above:
                holder = holder[key]
            if isinstance(holder, dict) and draw.random() < 0.1:
                del holder[last]
            else:
                holder[last] = copy.deepcopy(draw.choice(odd))
        except (KeyError, IndexError, TypeError):
            continue
    return made


def unpacked(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())


@pytest.mark.parametrize(
    ("nodes", "jobs"),
    [
        (EXAMPLES / "slurm_nodes.json", EXAMPLES / "slurm_jobs.json"),
        (REAL / "nodes.json.gz", REAL / "jobs.json.gz"),
    ],
    ids=["example", "real"],
)
def test_slurm(nodes: Path, jobs: Path) -> None:
    documents = [unpacked(nodes), unpacked(jobs)]
    for job in documents[1]["jobs"]:
        for part in (job.get("job_resources") or {}).get("allocated_nodes") or ():
            for socket in part["sockets"].values():
                socket["cores"] = dict(list(socket["cores"].items())[:2])  # dozens of each, all alike
    paths = [list(places(one)) for one in documents]
    draw, refused = Random(16), []
    for _ in range(60):
        given, which = documents.copy(), int(draw.random() > 0.25)
        given[which] = changed(given[which], paths[which], SLURM_ODD, draw)
        try:
            read_slurm(*given)
        except PlaceoptError as error:
            refused.append(str(error))
    assert len(refused) < 30
    assert all(message.startswith(("nodes", "jobs")) for message in refused)


def kubernetes_objects() -> list[dict[str, Any]]:
    """Return the small cluster, and objects of every kind beside it."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}
    exists = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    rules = {**near(term({"app": "x"}, namespaceSelector=exists)), **apart(term({"app": "y"}))}
    found: list[dict[str, Any]] = unpacked(EXAMPLES / "kubernetes.json")["items"]
    return [
        *found,
        {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {"volumeName": "pv"}},
        {"kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": {"nodeAffinity": {"required": terms}}},
        {"kind": "Namespace", "metadata": {"name": "ml", "labels": {"a": "b"}}},
        {"kind": "PodGroup", "metadata": {"name": "pg"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
        *(pod(f"pg{i}", schedulingGroup={"podGroupName": "pg"}) for i in range(2)),
        pod("volume", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
        {"kind": "StorageClass", "metadata": {"name": "s"}, "volumeBindingMode": "WaitForFirstConsumer"},
        pod("made", volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "s"}}}}]),
        {
            "kind": "ResourceSlice",
            "metadata": {"name": "rs"},
            "spec": {
                "driver": "nic.example.com",
                "nodeName": "gpu-a1",
                "pool": {"name": "gpu-a1", "resourceSliceCount": 1},
                "sharedCounters": [{"name": "c", "counters": {"memory": {"value": "8"}}}],
                "devices": [
                    {
                        "name": f"d{i}",
                        "attributes": {"type": {"string": "nic"}},
                        "capacity": {"memory": {"value": "4Gi"}},
                        "consumesCounters": [{"counterSet": "c", "counters": {"memory": {"value": "4"}}}],
                    }
                    for i in range(2)
                ],
            },
        },
        {"kind": "DeviceClass", "metadata": {"name": "nic"}, "spec": {"selectors": [{"cel": {"expression": CEL}}]}},
        {
            "kind": "ResourceClaim",
            "metadata": {"name": "rc"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "nic", "count": 1}}]}},
            "status": {
                "allocation": {
                    "devices": {"results": [{"driver": "nic.example.com", "pool": "gpu-a1", "device": "d0"}]}
                }
            },
        },
        pod("device", resourceClaims=[{"name": "x", "resourceClaimName": "rc"}]),
        pod("claim", "gpu-a1", resourceClaims=[{"name": "x", "resourceClaimName": "rc"}]),
        pod("near", labels={"app": "x"}, affinity=rules),
        pod("port", "gpu-a2", containers=[{"name": "c", "ports": [{"hostPort": 80, "containerPort": 80}]}]),
    ]


def outcome(items: list[dict[str, Any]]) -> str:
    try:
        return read_kubernetes(items).model_dump_json()
    except BadInput as error:
        return str(error)


def test_kubernetes() -> None:
    whole, draw = kubernetes_objects(), Random(16)
    paths = list(places(whole))
    read = [outcome(changed(whole, paths, KUBERNETES_ODD, draw)) for _ in range(100)]
    assert sum(not text.startswith("{") for text in read) < 30


def test_a_pod_on_a_node_with_a_malformed_name() -> None:
    with pytest.raises(BadInput, match='node: "two words"'):
        read_kubernetes([node("n"), pod("p", "two words")])


LONG = "1" * 300
ODD_PODS = {
    "an id on two lines": pod("p", uid="two\nlines"),
    "affinity in a namespace with a long name": pod("p", namespace=LONG, affinity=apart(term({"app": "x"}))),
}


@pytest.mark.parametrize("odd", ODD_PODS.values(), ids=ODD_PODS)
def test_a_pod_of_which_no_record_can_be_made_is_left_out_alone(odd: dict[str, Any]) -> None:
    found = read_kubernetes([node("n"), odd, pod("q")])
    assert [job.id for job in found.jobs] == ["default/q"]
    assert len(left_out(found)) == 1


def test_a_pod_with_rules_that_are_not_read_on_a_node_with_a_malformed_name() -> None:
    """Its node would be the only one on which it may run."""
    with pytest.raises(BadInput, match="two words"):
        read_kubernetes([node("n"), pod("p", "two words", annotations={"exclusive-topology": "x"})])


@pytest.mark.parametrize(
    "fields",
    [
        {"max_nodes": {"set": True, "number": 2**64 - 3}},
        {"features": LONG},
        {"sockets_per_node": {"set": True, "number": 2**64 - 3}},
        {"exclusive": ["user"], "user_name": LONG},
        {"name": "1" * 2000},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_job_of_which_no_record_can_be_made_is_left_out_alone(fields: dict[str, Any]) -> None:
    jobs: list[dict[str, Any]] = unpacked(EXAMPLES / "slurm_jobs.json")["jobs"]
    plain = next(job for job in jobs if job["job_id"] == 506)
    nodes = unpacked(EXAMPLES / "slurm_nodes.json")
    found = read_slurm(nodes, {"jobs": [{**plain, **fields}, {**plain, "job_id": 7}]})
    assert [job.id for job in found.jobs] == ["7"]
    assert len(left_out(found)) == 1
