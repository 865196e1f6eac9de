"""Kubernetes' nodes and pods as a round; what is expected is worked out by hand from the small file."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from helpers.kubernetes_objects import node, pod, read
from placeopt import BadInput, Unsupported
from placeopt.formats import read_kubernetes
from placeopt.formats.kubernetes import parse_quantity

DATA = Path(__file__).resolve().parents[3] / "examples" / "kubernetes.json"


def test_the_small_cluster() -> None:
    """Daemons are taken from their nodes; gangs wait as one; what is gated by others or done is left out."""
    found = read_kubernetes([DATA])
    jobs = {job.id: job for job in found.jobs}
    running = {one.job: {part.node: tuple(part.gpus) for part in one.assignments} for one in found.running}
    assert running == {
        "research/notebook-0": {"gpu-a1": ("0",)},
        "serving/serve-0": {"gpu-a2": ("0", "1")},
        "serving/serve-1": {"gpu-b1": ("0", "1")},
        "research/old-0": {"gpu-b2": ("0",)},
        "serving/web-0": {"cpu-1": ()},
    }
    assert jobs.keys() - running.keys() == {"ml/llm", "ml/sweep", "research/probe-0", "research/zoned-0"}
    gang = jobs["ml/llm"].options[0]
    assert (gang.workers, gang.workers_min, gang.demand.gpus, gang.value) == (2, None, 8, 16_000)
    assert (jobs["ml/sweep"].options[0].workers, jobs["ml/sweep"].queue) == (3, "team-a")
    assert jobs["research/zoned-0"].nodes_allowed == ("gpu-b1", "gpu-b2", "cpu-1")
    assert jobs["research/probe-0"].node_selector == {"nvidia.com/gpu.product": "NVIDIA-L40S"}
    assert jobs["serving/web-0"].tolerations == ()
    assert jobs["serving/serve-0"].priority == 1
    assert [(one.id, one.drained) for one in found.cluster.nodes if one.drained] == [("gpu-b2", True)]
    assert found.cluster.nodes[0].taints == ("nvidia.com/gpu=present:NoSchedule",)
    machine = found.cluster.machines[0]
    assert (machine.cpu_millicores, machine.memory_mib) == (63_900, 515_000 - 128)
    assert [(one.id, one.level) for one in found.cluster.domains] == [
        ("zone-a", "zone"),
        ("zone-a/r1", "rack"),
        ("zone-a/r2", "rack"),
    ]
    assert "gated-0" in found.note


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", "1/2"), ("1.5Gi", 3 * 2**29), ("129e6", 129 * 10**6), ("2k", 2000), (".5", "1/2"), ("1E", 10**18)],
)
def test_quantities(text: str, value: int | str) -> None:
    """Exact, in every form that Kubernetes writes."""
    assert parse_quantity(text) == Fraction(value)


@pytest.mark.parametrize("text", ["", "1 Gi", "-1", "1Zi", "Gi", "1e999", "0x1", "\u0661"])
def test_no_quantities(text: str) -> None:
    """Refused."""
    with pytest.raises(ValueError, match="not a quantity"):
        parse_quantity(text)


def test_what_a_pod_holds(tmp_path: Path) -> None:
    """Containers and sidecars together, or one init container beside the sidecars before it; and the overhead."""
    containers = [{"resources": {"requests": {"cpu": "1", "memory": "100Mi"}}}] * 2
    init = [
        {"restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
        {"resources": {"requests": {"cpu": "3", "memory": "150Mi"}}},
    ]
    overhead = {"memory": "1"}
    found = read(tmp_path, node(), pod("p", containers=containers, initContainers=init, overhead=overhead))
    demand = found.jobs[0].options[0].demand
    assert (demand.cpu_millicores, demand.memory_mib, demand.gpus) == (3500, 201, 0)


def test_gangs(tmp_path: Path) -> None:
    """Elastic from minMember; one part where some run; incomplete ones are left out; kinds apart."""
    volcano = {"annotations": {"scheduling.k8s.io/group-name": "g"}}
    half = {"labels": {"scheduling.x-k8s.io/pod-group": "h"}}
    short = {
        "labels": {"kueue.x-k8s.io/pod-group-name": "s"},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "3"},
    }
    groups = [{"kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": 2}} for name in ("g", "h")]
    found = read(
        tmp_path,
        *(node(name, "4") for name in "ab"),
        *(pod(f"g{i}", **volcano) for i in range(3)),
        pod("h0", "a", **half),
        *(pod(f"h{i}", **half) for i in (1, 2)),
        pod("s0", **short),
        *groups,
    )
    options = {job.id: job.options[0] for job in found.jobs}
    assert options.keys() == {"default/g", "default/h", "default/h+1"}
    assert [(one.workers, one.workers_min, one.value, one.value_per_extra_worker) for one in options.values()] == [
        (3, 2, 2000, 1000),
        (1, None, 1000, 0),
        (2, 1, 1000, 1000),
    ]
    assert [one.job for one in found.running] == ["default/h"]
    assert "1 of 3" in found.note


def test_required_topology_is_a_split(tmp_path: Path) -> None:
    """A gang that must stay in a rack, by the label that tells racks; labels may be named."""
    labels = {"example.com/row": "1", "cloud.provider.com/topology-rack": "r"}
    gang = {
        "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
        "annotations": {"kueue.x-k8s.io/podset-required-topology": "cloud.provider.com/topology-rack"},
    }
    items = (node(labels=labels), pod("a", **gang), pod("b", **gang))
    split = read(tmp_path, *items).jobs[0].options[0].splits[0]
    assert (split.level, split.domains) == ("rack", 1)
    named = read(tmp_path, *items, levels=["example.com/row"])
    assert [domain.level for domain in named.cluster.domains] == ["row"]
    assert not named.jobs
    assert "which is no level (--levels names them): 1 (default/g)" in named.note
    with pytest.raises(BadInput, match="no node carries"):
        read(tmp_path, *items, levels=["nothing"])


def test_taints_tolerations_and_affinity(tmp_path: Path) -> None:
    """As Kubernetes matches them."""
    taints = [
        {"key": "a", "value": "1", "effect": "NoSchedule"},
        {"key": "b", "effect": "NoExecute"},
        {"key": "c", "effect": "PreferNoSchedule"},
    ]
    tolerations: list[list[dict[str, str]]] = [
        [{"operator": "Exists"}],
        [{"key": "a", "value": "1"}, {"key": "b", "operator": "Exists", "effect": "NoSchedule"}],
        [{"key": "a", "value": "2"}],
    ]
    expressions: list[dict[str, Any]] = [
        {"key": "n", "operator": "Gt", "values": ["5"]},
        {"key": "n", "operator": "In", "values": ["5", ""]},
        {"key": "n", "operator": "DoesNotExist"},
    ]
    terms = [
        {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [e]}]}
            }
        }
        for e in expressions
    ]
    nodes = [node("x", taints=taints, labels={"n": "7"}), node("y", labels={"n": ""}), node("z")]
    pods = [pod(f"t{i}", tolerations=t, affinity=terms[i]) for i, t in enumerate(tolerations)]
    found = read(tmp_path, *nodes, *pods)
    assert [job.tolerations for job in found.jobs] == [("a=1:NoSchedule", "b=:NoExecute"), ("a=1:NoSchedule",), ()]
    assert [job.nodes_allowed for job in found.jobs] == [("x",), ("y",), ("z",)]


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], ["0 nodes"]),
        ([{"kind": "Node"}], ["items[0].metadata.name", "is missing"]),
        ([node(), node()], ["items[1].metadata.name", "unique"]),
        ([node(), 7], ["items[1]", "7"]),
    ],
)
def test_what_is_broken_is_named(tmp_path: Path, items: list[dict[str, Any]], words: list[str]) -> None:
    """Field and value."""
    with pytest.raises(BadInput) as error:
        read(tmp_path, *items)
    for word in words:
        assert word in str(error.value)


def test_pods_on_deleted_nodes_and_beyond_their_nodes_gpus_stand(tmp_path: Path) -> None:
    """Both run where they are, and are counted; five pods of a GPU on a node of four."""
    found = read(tmp_path, node(), pod("p", "m"), *(pod(f"p{i}", "n") for i in range(5)))
    held = {(one.job, part.node): list(part.gpus) for one in found.running for part in one.assignments}
    assert (held["default/p", "m"], held["default/p4", "n"]) == (["0"], ["4"])
    assert "Kept as running, on a node that is not listed: 1 (default/p)." in found.note
    assert "Kept as running, on more GPUs than its node has or has left: 1 (default/p4)." in found.note


def test_another_document_is_refused(tmp_path: Path) -> None:
    """Of another kind, or no JSON."""
    (tmp_path / "x.json").write_text('{"jobs": []}')
    (tmp_path / "y.json").write_text("NAME READY")
    for name, word in (("x.json", "items"), ("y.json", "not JSON")):
        with pytest.raises(BadInput, match=word):
            read_kubernetes([tmp_path / name])


def mig(name: str, node: str | None = None, profile: str = "1g.5gb") -> dict[str, Any]:
    """Return a pod with one MIG instance."""
    asked = {"resources": {"limits": {f"nvidia.com/mig-{profile}": 1}, "requests": {"cpu": "2"}}}
    return pod(name, node, containers=[asked])


def test_mig_instances_are_read_one_profile_at_a_time(tmp_path: Path) -> None:
    """
    Two profiles on a node beside a whole GPU.

    By ``nvidia.com/gpu`` the pod that runs with an instance holds its two cores and no GPU, and the one that waits
    is no job of this round; by its profile both are.
    """
    cut = node("n", "1")
    cut["status"]["allocatable"] |= {"nvidia.com/mig-1g.5gb": "4", "nvidia.com/mig-3g.20gb": "1"}
    items = (cut, mig("runs", "n"), mig("waits"), pod("whole"))
    whole = read(tmp_path, *items)
    demands = {job.id: job.options[0].demand for job in whole.jobs}
    assert {name: (one.gpus, one.cpu_millicores) for name, one in demands.items()} == {
        "default/runs": (0, 2000),
        "default/whole": (1, 0),
    }
    assert "waiting for nvidia.com/mig-1g.5gb" in whole.note
    assert "only CPU and memory" in whole.note
    profile = read(tmp_path, *items[:3], resource="nvidia.com/mig-1g.5gb")
    assert len(profile.cluster.machines[0].gpus) == 4
    assert {job.id: job.options[0].demand.gpus for job in profile.jobs} == {"default/runs": 1, "default/waits": 1}
    assert "mig" not in profile.note


def test_a_resource_that_no_node_has_is_named(tmp_path: Path) -> None:
    """It would be a cluster without GPUs; one that has none of any vendor is read as such."""
    amd = node("n", "0")
    amd["status"]["allocatable"] = {"cpu": "8", "memory": "1Gi", "amd.com/gpu": "4"}
    with pytest.raises(BadInput, match=r"no node has nvidia.com/gpu; there are: amd.com/gpu; --resource"):
        read(tmp_path, amd)
    assert read(tmp_path, amd, resource="amd.com/gpu").cluster.machines[0].gpus
    with pytest.raises(BadInput, match=r"no node has foo/bar; there are: nvidia.com/gpu; --resource"):
        read(tmp_path, node(), resource="foo/bar")
    bare = node()
    del bare["status"]["allocatable"]["nvidia.com/gpu"]
    assert not read(tmp_path, bare).cluster.machines[0].gpus


def test_a_cluster_of_mig_instances_alone_is_refused_with_the_option(tmp_path: Path) -> None:
    """Read by the usual resource it would be a cluster without GPUs."""
    cut = node("n", "0")
    cut["status"]["allocatable"] |= {"nvidia.com/mig-1g.5gb": "7"}
    with pytest.raises(Unsupported, match=r"no node has nvidia.com/gpu.*--resource nvidia.com/mig-1g.5gb"):
        read(tmp_path, cut, mig("waits"))
