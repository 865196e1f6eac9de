"""Snapshots of KAI: a ZIP of what its scheduler lists, read as Kubernetes' own lists are."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from placeopt.errors import BadInput
from placeopt.importers import read_kubernetes
from placeopt.model import Instance

GROUP = "pod-group-name"


def node(name: str) -> dict[str, Any]:
    """Return a node of 8 GPUs, as Go writes it: without its kind."""
    amounts = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}
    return {
        "metadata": {"name": name, "creationTimestamp": None, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, gpus: int, *, on: str = "", group: str = "", **spec: Any) -> dict[str, Any]:
    """Return a pod."""
    asks = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "labels": {"kai.scheduler/queue": "team"},
            "annotations": {GROUP: group} if group else None,
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "main", "resources": {"requests": asks, "limits": asks}}],
            **({"nodeName": on} if on else {}),
            **spec,
        },
        "status": {"phase": "Running" if on else "Pending"},
    }


def pod_group(name: str, members: int = 1, **spec: Any) -> dict[str, Any]:
    """Return a PodGroup."""
    metadata = {"name": name, "namespace": "team"}
    return {"metadata": metadata, "spec": {"minMember": members, "queue": "team", **spec}}


RAW: dict[str, Any] = {
    "nodes": [node("a"), node("b")],
    "pods": [
        pod("train", 4, on="a", group="train"),
        pod("build", 4, on="b", group="build"),
        pod("kept", 1, on="b", group="kept"),
        pod("bound", 2, group="bound"),
        pod("failed", 1, group="failed"),
        *(pod(f"gang-{rank}", 8, group="gang") for rank in range(2)),
    ],
    "podGroups": [
        pod_group("train", priorityClassName="train"),
        pod_group("build", priorityClassName="build"),
        pod_group("kept", priorityClassName="train", preemptibility="non-preemptible"),
        pod_group("bound", priorityClassName="train"),
        pod_group("failed", priorityClassName="train"),
        pod_group("gang", 2, priorityClassName="build"),
    ],
    "bindRequests": [
        {"metadata": {"namespace": "team", "name": "1"}, "spec": {"podName": "bound", "selectedNode": "a"}},
        {
            "metadata": {"namespace": "team", "name": "2"},
            "spec": {"podName": "failed", "selectedNode": "a"},
            "status": {"phase": "Failed"},
        },
    ],
    "priorityClasses": [
        {"metadata": {"name": "train"}, "value": 50},
        {"metadata": {"name": "build"}, "value": 100},
    ],
    "queues": [
        {
            "metadata": {"name": "team"},
            "spec": {
                "resources": {
                    "gpu": {"quota": 12, "limit": 12, "overQuotaWeight": 1},
                    "cpu": {"quota": -1, "limit": -1, "overQuotaWeight": 1},
                    "memory": {"quota": -1, "limit": -1, "overQuotaWeight": 1},
                }
            },
        }
    ],
    "topologies": None,
    "configMaps": [{"metadata": {"name": "other"}}],
}


def write(
    path: Path, raw: dict[str, Any] = RAW, actions: str = "allocate, consolidation, reclaim, preempt"
) -> list[str | Path]:
    """Write a snapshot."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        document = {"config": {"actions": actions}, "schedulerParams": {}, "rawObjects": raw, "discovery": {}}
        packed.writestr("snapshot.json", json.dumps(document))
    return [path]


def named(round_: Instance) -> dict[str, str]:
    """Return the name of each job there -> its id."""
    return {name: job.id for job in round_.jobs if job.origin is not None for name in job.origin.names}


def test_pods_are_where_kai_has_them(tmp_path: Path) -> None:
    """What is bound to a node runs there, unless that failed; the gang and the failed pod wait."""
    round_ = read_kubernetes(write(tmp_path / "snapshot.zip"))
    ids = named(round_)
    where = {held.job: {part.node for part in held.assignments} for held in round_.running}
    assert where == {
        ids["team/train"]: {"a"},
        ids["team/build"]: {"b"},
        ids["team/kept"]: {"b"},
        ids["team/bound"]: {"a"},
    }
    gang = next(job for job in round_.jobs if job.id == ids["team/gang-0"])
    assert (gang.options[0].workers, gang.options[0].demand.gpus) == (2, 8)
    assert "snapshot.zip" in round_.note


def test_what_may_be_stopped_is_what_kai_stops(tmp_path: Path) -> None:
    """Below priority 100, unless the group says otherwise; it moves what it may stop where it consolidates."""
    round_ = read_kubernetes(write(tmp_path / "snapshot.zip"))
    ids = {job: name for name, job in named(round_).items()}
    stops = {ids[held.job] for held in round_.running if held.preemptible}
    moves = {ids[held.job] for held in round_.running if held.movable}
    assert len(stops) == 2
    assert stops == moves == {ids[named(round_)[f"team/{name}"]] for name in ("train", "bound")}
    without = read_kubernetes(write(tmp_path / "other.zip", actions="allocate,preempt"))
    assert not any(held.movable for held in without.running)


def test_priorities_are_those_of_groups(tmp_path: Path) -> None:
    """A pod has the priority of its group's class."""
    round_ = read_kubernetes(write(tmp_path / "snapshot.zip"))
    priority = {job.id: job.priority for job in round_.jobs}
    ids = named(round_)
    assert priority[ids["team/build"]] == priority[ids["team/gang-0"]] > priority[ids["team/train"]]
    assert round_.policy.queues[0].quota.gpu_milli == 12_000


def _bytes(path: Path, name: str, text: str) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(name, text)
    return path


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("other.json", "{}", "a ZIP without snapshot.json"),
        ("snapshot.json", "{", "snapshot.json"),
        ("snapshot.json", "{}", "rawObjects"),
        ("snapshot.json", '{"rawObjects": {"nodes": 1}}', "rawObjects.nodes: 1, expected a list"),
        ("snapshot.json", '{"rawObjects": {}}', "0 nodes"),
    ],
)
def test_what_is_no_snapshot_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    """Each fault by its file and field."""
    with pytest.raises(BadInput, match=said) as raised:
        read_kubernetes([_bytes(tmp_path / "s.zip", name, text)])
    assert "s.zip" in str(raised.value)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """One that is cut, and one of which a byte is other than its checksum says."""
    write(tmp_path / "snapshot.zip")
    whole = (tmp_path / "snapshot.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[:200])
    with pytest.raises(BadInput, match=r"cut\.zip: cannot be unpacked"):
        read_kubernetes([tmp_path / "cut.zip"])
    flipped = bytearray(whole)
    flipped[100] ^= 0xFF
    (tmp_path / "flipped.zip").write_bytes(bytes(flipped))
    with pytest.raises(BadInput, match=r"flipped\.zip"):
        read_kubernetes([tmp_path / "flipped.zip"])


def test_an_odd_pod_is_left_out_alone(tmp_path: Path) -> None:
    """One pod whose fields cannot be read does not end the reading."""
    odd = pod("odd", 1)
    odd["spec"]["containers"] = "none"
    raw = {**RAW, "pods": [*RAW["pods"], odd, {"metadata": {"name": "bare"}, "spec": {"nodeName": 7}}]}
    round_ = read_kubernetes(write(tmp_path / "snapshot.zip", raw))
    assert {"team/odd", "default/bare"} & {name for note in round_.reading for name in note.names}
