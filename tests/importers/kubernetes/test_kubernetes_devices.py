"""
What pods ask for and nodes have beside whole GPUs: nothing becomes a CPU job without a word.

Each case says by hand what Kubernetes' scheduler and the device plugins make of it.
"""

from typing import Any

import pytest

from helpers.imported_rounds import drained, held, left_out, notes_of, waiting
from helpers.kubernetes_objects import node, pod, read

COUNTERS = (
    *("rdma/hca_shared", "vpc.amazonaws.com/efa", "nvidia.com/hostdev", "devices/input"),
    *("amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi", "aws.amazon.com/neuron"),
    *("aws.amazon.com/neuroncore", "google.com/tpu", "huawei.com/Ascend910", "nvidia.com/mig-1g.5gb"),
)
SHARES = (
    *("nvidia.com/gpu.shared", "nvidia.com/gpumem", "nvidia.com/gpucores", "volcano.sh/gpu-memory"),
    *("volcano.sh/vgpu-number", "aliyun.com/gpu-mem", "tencent.com/vcuda-core", "example.com/gpu"),
)
CPU: dict[str, Any] = {"asks": {"cpu": "1"}}
CLAIMS = {  # DRA: a claim, and a container that names it
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "single-gpu"}],
    "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}],
}


@pytest.mark.parametrize("resource", COUNTERS)
def test_what_is_none_of_the_counted_gpus_is_an_amount_of_the_node(resource: str) -> None:
    """Accelerators of another maker and MIG instances, too: they take none of the counted GPUs."""
    found = read(node(has={resource: "3"}), pod("r", "n", asks={resource: "2"}), pod("p", asks={resource: "1"}))
    assert waiting(found) == {"default/p"}
    assert found.cluster.machines[0].resources == {resource: 3}
    assert [job.options[0].demand.resources for job in found.jobs] == [{resource: 2}, {resource: 1}]
    assert [job.options[0].demand.gpus for job in found.jobs] == [0, 0]
    assert drained(found) == []


@pytest.mark.parametrize(
    ("words", "more"),
    [
        *((resource, {"asks": {resource: "1"}}) for resource in SHARES),
        ("asking for rdma/hca, which no node states", {"asks": {"rdma/hca": "1"}}),
        ("annotation gpu-fraction", {**CPU, "annotations": {"gpu-fraction": "0.5"}}),  # KAI and run:ai
        ("annotation gpu-memory", {**CPU, "annotations": {"gpu-memory": "0.5"}}),
        ("a ResourceClaim", CLAIMS),
        ("a daemon that waits", {**CPU, "ownerReferences": [{"kind": "DaemonSet", "name": "exporter"}]}),
    ],
)
def test_pods_that_wait_for_other_devices_are_left_out_and_counted(words: str, more: dict[str, Any]) -> None:
    """A pod that asks for another device is no CPU job."""
    has = {name: "0" for name in more.get("asks", ()) if name in SHARES}
    found = read(node(has=has), pod("p", **more), pod("q"))
    assert waiting(found) == {"default/q"}
    (line,) = left_out(found)
    assert words in line
    assert line.endswith(": 1 (default/p).")


@pytest.mark.parametrize(
    "more",
    [
        {"asks": {"nvidia.com/gpumem": "3000", "nvidia.com/gpu": "1"}},
        {**CPU, "annotations": {"gpu-fraction": "0.5"}},
        {**CPU, "resourceClaims": [{"name": "g", "resourceClaimName": "c"}]},
        {**CPU, "status": {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}},
    ],
)
def test_what_may_be_a_part_of_a_gpu_holds_the_whole_node(more: dict[str, Any]) -> None:
    """Unknown and running. It holds all GPUs of its node, and the node takes nothing new."""
    found = read(node(), node("m"), pod("p", "n", **more))
    assert held(found) == {"default/p": {"n": [0, 1, 2, 3]}}
    assert drained(found) == ["n"]
    assert "Kept as running" in notes_of(found)
    bare = read(node(gpus="0"), node("m"), pod("p", "n", **more))
    assert drained(bare) == [], "a node without such GPUs has none to doubt"


def test_a_fraction_whose_gpu_is_reserved_whole_leaves_its_node_open() -> None:
    """KAI holds the whole GPU by a pod of its own, with the same label: only that GPU is taken."""
    label = {"labels": {"runai-gpu-group": "1f-2e"}}
    half = pod("p", "n", **CPU, annotations={"gpu-fraction": "0.5"}, **label)
    found = read(node(), half, pod("reserve", "n", namespace="runai-reservation", **label))
    assert held(found) == {"default/p": {"n": []}, "runai-reservation/reserve": {"n": [0]}}
    assert drained(found) == []


@pytest.mark.parametrize(("driver", "closed"), [("compute-domain.nvidia.com", []), ("gpu.nvidia.com", ["n"])])
def test_claims_for_devices_that_are_no_gpus_leave_their_node_open(driver: str, closed: list[str]) -> None:
    """IMEX channels come by DRA where GPUs come by the device plugin; the claim's status says which driver it was."""
    device = {"request": "channel", "driver": driver, "pool": "n", "device": "channel-0"}
    metadata = {"name": "p-channel-x7", "namespace": "default"}
    claim = {"metadata": metadata, "status": {"allocation": {"devices": {"results": [device]}}}}
    asked = [{"name": "channel", "resourceClaimTemplateName": "imex"}]
    status = {"resourceClaimStatuses": [{"name": "channel", "resourceClaimName": "p-channel-x7"}]}
    found = read(node(), pod("p", "n", resourceClaims=asked, status=status), {"kind": "ResourceClaim", **claim})
    assert drained(found) == closed
    assert closed or held(found) == {"default/p": {"n": [0]}}


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("which may be the same GPUs", {"has": {"nvidia.com/gpu.shared": "16"}}),
        ("which may be the same GPUs", {"has": {"aliyun.com/gpu-mem": "320"}}),
        ("HAMi", {"annotations": {"hami.io/node-nvidia-register": "GPU-1,10,32768"}}),
        ("'half'", {"gpus": "half"}),
        ("'500m'", {"gpus": "500m"}),
        ("up to 1024", {"gpus": "4k"}),
        ("no more than a node can have", {"has": {"cpu": "1e9"}}),
        ("'lots'", {"has": {"memory": "lots"}}),
        ("taints[0].effect: is missing", {"taints": [{"key": "a"}]}),
        ("labels", {"labels": {"a": 1}}),
    ],
)
def test_nodes_that_cannot_be_read_are_drained_and_counted(words: str, more: dict[str, Any]) -> None:
    """What runs there stays, and the other nodes are read."""
    found = read(node(**more), node("m"), pod("p", "n"), pod("q"))
    assert (drained(found), held(found).keys(), waiting(found)) == (["n"], {"default/p"}, {"default/q"})
    assert words in notes_of(found)
    assert "Drained, nodes" in notes_of(found)


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
def test_an_odd_pod_never_stops_the_import(more: dict[str, Any]) -> None:
    """Waiting, it is left out; running, it holds its node; the others are read."""
    found = read(node(), node("m"), pod("odd", **more), pod("q"))
    assert waiting(found) == {"default/q"}
    assert "Left out, of which" in notes_of(found)
    found = read(node(), node("m"), pod("odd", "n", **more), pod("q"))
    assert (drained(found), held(found).keys(), waiting(found)) == (["n"], {"default/odd"}, {"default/q"})


def test_a_pod_without_a_name_is_counted() -> None:
    """By its place in the file; one that runs holds its node."""
    odd, waits = pod("p", "n"), pod("p")
    del odd["metadata"]["name"], waits["metadata"]["name"]
    found = read(node(), odd, waits)
    assert (held(found).keys(), drained(found)) == ({"items[1]"}, ["n"])
    assert "Left out, of which metadata.name: is missing, expected text: 1 (items[2])." in notes_of(found)


@pytest.mark.parametrize(
    "kind",
    [
        *("PodGroup", "Workload", "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "Namespace"),
        *("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass"),
    ],
)
@pytest.mark.parametrize("odd", [{}, {"metadata": 3}, {"metadata": {"name": "g"}, "spec": 3, "status": []}])
def test_other_odd_objects_never_stop_the_import(kind: str, odd: dict[str, Any]) -> None:
    """What cannot be read counts as not listed."""
    found = read(node(), pod("q"), {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": kind, **odd})
    assert waiting(found) == {"default/q"}


def test_names_longer_than_a_job_may_have() -> None:
    """A namespace of 63 and a name of 253 characters are legal; two such pods stay two."""
    found = read(node(), *(pod("p" * 252 + end, namespace="s" * 63) for end in "ab"))
    assert [len(job.id) for job in found.jobs] == [253, 253]


def test_a_pod_that_stands_twice_counts_once() -> None:
    """Lists of two moments: it waits in the one and runs in the other; on two nodes, the first is drained."""
    found = read(node(), pod("p"), pod("p", "n"), pod("p"))
    assert ([job.id for job in found.jobs], len(found.running)) == (["default/p"], 1)
    assert drained(read(node(), node("m"), pod("p", "n"), pod("p", "m"))) == ["n"]


def test_amounts_are_exact_and_none_counts_less_than_its_node_keeps_for_it() -> None:
    """Ten GPUs written 1e1; what the pod as a whole states; a container that shrinks still holds what is allocated."""
    assert len(read(node(gpus="1e1")).cluster.machines[0].gpus) == 10
    kept = {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "4"}}]}
    whole = pod("p", resources={"requests": {"cpu": "3"}}, **CPU)
    found = read(node(), whole, pod("q", "n", asks={"cpu": "2"}, status=kept))
    assert [job.options[0].demand.cpu_millicores for job in found.jobs] == [3000, 4000]


def test_what_runs_is_counted_to_the_byte() -> None:
    """Two pods of 1.5 MiB leave 1,021 of 1,024 MiB: rounded down they would leave 1,022, up 1,020."""
    half = {"asks": {"memory": str(3 * 2**19), "cpu": "100u"}}
    found = read(node(), pod("p", "n", **half), pod("q", "n", **half))
    memory = sum(part.memory_mib for one in found.running for part in one.assignments)
    machine = found.cluster.machines[0]
    assert (machine.memory_mib - memory, machine.cpu_millicores) == (1021, 7999)


def test_other_schedulers_are_reported() -> None:
    """Their queues and quotas are rules that a plan does not have."""
    found = read(node(), pod("p", schedulerName="volcano"), pod("q"))
    assert waiting(found) == {"default/p", "default/q"}
    assert "other schedulers: volcano (1)" in notes_of(found)
