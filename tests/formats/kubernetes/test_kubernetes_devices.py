"""
What pods ask for and nodes have beside whole GPUs: nothing becomes a CPU job without a word.

Each case says by hand what Kubernetes' scheduler and the device plugins make of it.
"""

from pathlib import Path
from typing import Any

import pytest

from helpers.kubernetes_objects import node, pod, read
from placeopt.model import Instance

DEVICES = [
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "google.com/tpu",
    "huawei.com/Ascend910",
    "nvidia.com/mig-1g.5gb",
]
SHARES = [
    "nvidia.com/gpu.shared",
    "nvidia.com/gpumem",
    "nvidia.com/gpucores",
    "volcano.sh/gpu-memory",
    "volcano.sh/vgpu-number",
    "aliyun.com/gpu-mem",
    "tencent.com/vcuda-core",
    "example.com/gpu",
]
COUNTERS = ["ephemeral-storage", "hugepages-2Mi", "rdma/hca_shared", "vpc.amazonaws.com/efa", "nvidia.com/hostdev"]


def waiting(found: Instance) -> set[str]:
    """Return the jobs that wait."""
    return {job.id for job in found.jobs} - {one.job for one in found.running}


def drained(found: Instance) -> list[str]:
    """Return the nodes that take nothing new."""
    return [one.id for one in found.cluster.nodes if one.drained]


@pytest.mark.parametrize("resource", [*COUNTERS, "devices/input"])
def test_what_is_no_accelerator_is_counted_on_the_node(tmp_path: Path, resource: str) -> None:
    found = read(tmp_path, node(has={resource: "1"}), pod("p", asks={resource: "1"}))
    assert waiting(found) == {"default/p"}


@pytest.mark.parametrize("resource", [*DEVICES, *SHARES])
def test_pods_that_wait_for_other_devices_are_left_out_and_counted(tmp_path: Path, resource: str) -> None:
    """A pod that asks for another device is no CPU job."""
    found = read(tmp_path, node(has={resource: "0"}), pod("p", asks={resource: "1"}), pod("q"))
    assert waiting(found) == {"default/q"}
    assert f"{resource}" in found.note
    assert ": 1 (default/p)." in found.note


@pytest.mark.parametrize("annotation", ["gpu-fraction", "gpu-memory"])
def test_fractions_by_annotation_are_left_out_and_counted(tmp_path: Path, annotation: str) -> None:
    """KAI and run:ai ask for part of a GPU in an annotation alone."""
    found = read(tmp_path, node(), pod("p", asks={"cpu": "1"}, annotations={annotation: "0.5"}))
    assert not found.jobs
    assert f"annotation {annotation}: 1 (default/p)." in found.note


def test_resource_claims_are_left_out_and_counted(tmp_path: Path) -> None:
    """DRA, by a claim and by a container that names it."""
    claims = {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "single-gpu"}],
        "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}],
    }
    found = read(tmp_path, node(), pod("p", **claims))
    assert not found.jobs
    assert "a ResourceClaim: 1 (default/p)." in found.note


def test_devices_of_others_that_run_hold_cpu_and_memory_only(tmp_path: Path) -> None:
    """An AMD GPU in use takes none of NVIDIA's: its node stays open, and the note says what was read."""
    found = read(tmp_path, node(has={"amd.com/gpu": "8"}), pod("p", "n", asks={"amd.com/gpu": "4", "cpu": "2"}))
    demand = found.jobs[0].options[0].demand
    assert (demand.gpus, demand.cpu_millicores, drained(found)) == (0, 2000, [])
    assert "Kept as running, with amd.com/gpu: only CPU and memory are read: 1 (default/p)." in found.note


@pytest.mark.parametrize(
    "more",
    [
        {"asks": {"nvidia.com/gpumem": "3000", "nvidia.com/gpu": "1"}},
        {"asks": {"cpu": "1"}, "annotations": {"gpu-fraction": "0.5"}},
        {"asks": {"cpu": "1"}, "resourceClaims": [{"name": "g", "resourceClaimName": "c"}]},
        {"asks": {"cpu": "1"}, "status": {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}},
    ],
)
def test_what_may_be_a_part_of_a_gpu_holds_the_whole_node(tmp_path: Path, more: dict[str, Any]) -> None:
    """Unknown and running. It holds all GPUs of its node, and the node takes nothing new."""
    found = read(tmp_path, node(), node("m"), pod("p", "n", **more))
    assert [(part.node, list(part.gpus)) for part in found.running[0].assignments] == [("n", ["0", "1", "2", "3"])]
    assert drained(found) == ["n"]
    assert "Kept as running" in found.note
    bare = read(tmp_path, node(gpus="0"), node("m"), pod("p", "n", **more))
    assert drained(bare) == [], "a node without such GPUs has none to doubt"


def test_a_fraction_whose_gpu_is_reserved_whole_leaves_its_node_open(tmp_path: Path) -> None:
    """KAI holds the whole GPU by a pod of its own, with the same label: only that GPU is taken."""
    label = {"labels": {"runai-gpu-group": "1f-2e"}}
    half = {"asks": {"cpu": "1"}, "annotations": {"gpu-fraction": "0.5"}, **label}
    found = read(tmp_path, node(), pod("p", "n", **half), pod("reserve", "n", namespace="runai-reservation", **label))
    held = {one.job: [*one.assignments[0].gpus] for one in found.running}
    assert held == {"default/p": [], "runai-reservation/reserve": ["0"]}
    assert drained(found) == []


def test_claims_for_devices_that_are_no_gpus_leave_their_node_open(tmp_path: Path) -> None:
    """IMEX channels come by DRA where GPUs come by the device plugin; the claim's status says which driver it was."""
    device = {"request": "channel", "driver": "compute-domain.nvidia.com", "pool": "n", "device": "channel-0"}
    claim = {
        "kind": "ResourceClaim",
        "metadata": {"name": "p-channel-x7", "namespace": "default"},
        "status": {"allocation": {"devices": {"results": [device]}}},
    }
    runs = pod(
        "p",
        "n",
        resourceClaims=[{"name": "channel", "resourceClaimTemplateName": "imex"}],
        status={"resourceClaimStatuses": [{"name": "channel", "resourceClaimName": "p-channel-x7"}]},
    )
    found = read(tmp_path, node(), runs, claim)
    assert (drained(found), [*found.running[0].assignments[0].gpus]) == ([], ["0"])
    device["driver"] = "gpu.nvidia.com"
    assert drained(read(tmp_path, node(), runs, claim)) == ["n"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"has": {"nvidia.com/gpu.shared": "16"}}, "which may be the same GPUs"),
        ({"has": {"aliyun.com/gpu-mem": "320"}}, "which may be the same GPUs"),
        ({"annotations": {"hami.io/node-nvidia-register": "GPU-1,10,32768"}}, "HAMi"),
        ({"gpus": "half"}, "'half'"),
        ({"gpus": "500m"}, "'500m'"),
        ({"gpus": "4k"}, "up to 1024"),
        ({"has": {"cpu": "1e9"}}, "no more than a node can have"),
        ({"has": {"memory": "lots"}}, "'lots'"),
        ({"taints": [{"key": "a"}]}, "taints[0].effect: is missing"),
        ({"labels": {"a": 1}}, "labels"),
    ],
)
def test_nodes_that_cannot_be_read_are_drained_and_counted(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    """What runs there stays, and the other nodes are read."""
    found = read(tmp_path, node(**more), node("m"), pod("p", "n"), pod("q"))
    assert drained(found) == ["n"]
    assert {one.job for one in found.running} == {"default/p"}
    assert waiting(found) == {"default/q"}
    assert words in found.note
    assert "Drained, nodes" in found.note


def test_1e1_gpus_is_a_quantity(tmp_path: Path) -> None:
    """Kubernetes writes 10 so too."""
    assert len(read(tmp_path, node(gpus="1e1")).cluster.machines[0].gpus) == 10


@pytest.mark.parametrize(
    "more",
    [
        {"asks": {"cpu": "many"}},
        {"asks": {"nvidia.com/gpu": "500m"}},
        {"asks": {"cpu": "1e12"}},
        {"containers": 7},
        {"priority": "high"},
        {"tolerations": [{"operator": "Perhaps"}]},
        {"affinity": {"nodeAffinity": 3}},
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]}}},
        {"nodeSelector": ["a"]},
        {"labels": {"a": 3}},
    ],
)
def test_an_odd_pod_never_stops_the_import(tmp_path: Path, more: dict[str, Any]) -> None:
    """Waiting, it is left out; running, it holds its node; the others are read."""
    found = read(tmp_path, node(), node("m"), pod("odd", **more), pod("q"))
    assert waiting(found) == {"default/q"}
    assert "Left out, of which" in found.note
    found = read(tmp_path, node(), node("m"), pod("odd", "n", **more), pod("q"))
    assert [one.job for one in found.running] == ["default/odd"]
    assert (drained(found), waiting(found)) == (["n"], {"default/q"})


def test_a_pod_without_a_name_is_counted(tmp_path: Path) -> None:
    """By its place in the file; one that runs holds its node."""
    odd, waits = pod("p", "n"), pod("p")
    del odd["metadata"]["name"], waits["metadata"]["name"]
    found = read(tmp_path, node(), odd, waits)
    assert ([one.job for one in found.running], drained(found)) == (["items[1]"], ["n"])
    assert "Left out, of which metadata.name: is missing, expected text: 1 (items[2])." in found.note


@pytest.mark.parametrize(
    "kind", ["PodGroup", "Workload", "PersistentVolumeClaim", "PersistentVolume", "Namespace", "ResourceClaim"]
)
@pytest.mark.parametrize("odd", [{}, {"metadata": 3}, {"metadata": {"name": "g"}, "spec": 3, "status": []}])
def test_other_odd_objects_never_stop_the_import(tmp_path: Path, kind: str, odd: dict[str, Any]) -> None:
    """What cannot be read counts as not listed."""
    found = read(tmp_path, node(), pod("q"), {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": kind, **odd})
    assert waiting(found) == {"default/q"}


def test_names_longer_than_a_job_may_have(tmp_path: Path) -> None:
    """A namespace of 63 and a name of 253 characters are legal; two such pods stay two."""
    found = read(tmp_path, node(), *(pod("p" * 252 + end, namespace="s" * 63) for end in "ab"))
    assert [len(job.id) for job in found.jobs] == [253, 253]


def test_a_pod_that_stands_twice_counts_once(tmp_path: Path) -> None:
    """Lists of two moments: it waits in the one and runs in the other; on two nodes, the first is drained."""
    found = read(tmp_path, node(), pod("p"), pod("p", "n"), pod("p"))
    assert ([job.id for job in found.jobs], len(found.running)) == (["default/p"], 1)
    assert drained(read(tmp_path, node(), node("m"), pod("p", "n"), pod("p", "m"))) == ["n"]


def test_pod_level_resources_and_resized_containers(tmp_path: Path) -> None:
    """What the pod as a whole states holds; a container that shrinks still holds what its node keeps for it."""
    whole = pod("p", resources={"requests": {"cpu": "3"}}, asks={"cpu": "1"})
    kept = {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "4"}}]}
    found = read(tmp_path, node(), whole, pod("q", "n", asks={"cpu": "2"}, status=kept))
    assert [job.options[0].demand.cpu_millicores for job in found.jobs] == [3000, 4000]


def test_what_runs_is_counted_to_the_byte(tmp_path: Path) -> None:
    """Two pods of 1.5 MiB leave 1,021 of 1,024 MiB: rounded down they would leave 1,022, up 1,020."""
    half = {"asks": {"memory": str(3 * 2**19), "cpu": "100u"}}
    found = read(tmp_path, node(), pod("p", "n", **half), pod("q", "n", **half))
    held = sum(part.memory_mib for one in found.running for part in one.assignments)
    machine = found.cluster.machines[0]
    assert (machine.memory_mib - held, machine.cpu_millicores) == (1021, 7999)


def test_daemons_that_wait_are_counted(tmp_path: Path) -> None:
    """What is dropped is counted in the note."""
    owner = [{"kind": "DaemonSet", "name": "exporter"}]
    found = read(tmp_path, node(), pod("d", asks={"cpu": "1"}, ownerReferences=owner))
    assert not found.jobs
    assert "Left out, a daemon that waits: 1 (default/d)." in found.note


def test_other_schedulers_are_reported(tmp_path: Path) -> None:
    """Their queues and quotas are rules that a plan does not have."""
    found = read(tmp_path, node(), pod("p", schedulerName="volcano"), pod("q"))
    assert waiting(found) == {"default/p", "default/q"}
    assert "other schedulers: volcano (1)" in found.note
