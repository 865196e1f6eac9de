"""Kubernetes' nodes and pods as a round; what is expected is worked out by hand from the small file."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from helpers.imported_rounds import drained, held, notes_of, waiting
from helpers.kubernetes_objects import node, pod, read
from helpers.node_conditions import chosen_nodes
from placeopt import BadInput, Unsupported
from placeopt.importers import read_kubernetes
from placeopt.importers.kubernetes import parse_quantity
from placeopt.model import Taint

DATA = Path(__file__).resolve().parents[3] / "examples" / "kubernetes.json"
MIG = "nvidia.com/mig-1g.5gb"


def test_the_small_cluster() -> None:
    """Daemons are taken from their nodes; gangs wait as one; what is gated by others or done is left out."""
    found = read_kubernetes([DATA])
    jobs = {job.id: job for job in found.jobs}
    assert held(found) == {
        "research/notebook-0": {"gpu-a1": [0]},
        "serving/serve-0": {"gpu-a2": [0, 1]},
        "serving/serve-1": {"gpu-b1": [0, 1]},
        "research/old-0": {"gpu-b2": [0]},
        "serving/web-0": {"cpu-1": []},
    }
    assert waiting(found) == {"ml/llm", "ml/sweep", "research/probe-0", "research/zoned-0"}
    gang = jobs["ml/llm"].options[0]
    assert (gang.workers, gang.workers_min, gang.demand.gpus, gang.value) == (2, None, 8, 16_000)
    assert (jobs["ml/sweep"].options[0].workers, jobs["ml/sweep"].queue) == (3, "team-a")
    assert chosen_nodes(found, jobs["research/zoned-0"]) == ("gpu-b1", "gpu-b2", "cpu-1")
    assert jobs["research/probe-0"].conditions.node_selector == {"nvidia.com/gpu.product": "NVIDIA-L40S"}
    assert (jobs["serving/web-0"].conditions.tolerations, jobs["serving/serve-0"].priority) == ((), 1)
    assert drained(found) == ["gpu-b2"]
    assert found.cluster.nodes[0].taints == (Taint(key="nvidia.com/gpu", value="present"),)
    machine = found.cluster.machines[0]
    assert (machine.cpu_millicores, machine.memory_mib) == (63_900, 515_000 - 128)
    domains = [(one.id, one.level) for one in found.cluster.domains]
    assert domains == [("zone-a", "zone"), ("zone-a/r1", "rack"), ("zone-a/r2", "rack")]
    assert "gated-0" in notes_of(found)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("500m", "1/2"), ("1.5Gi", 3 * 2**29), ("129e6", 129 * 10**6), ("2k", 2000), (".5", "1/2"), ("1E", 10**18)),
        *((odd, None) for odd in ("", "1 Gi", "-1", "1Zi", "Gi", "1e999", "0x1", "\u0661")),
    ],
)
def test_quantities(text: str, value: int | str | None) -> None:
    """Exact, in every form that Kubernetes writes; no other is taken."""
    if value is not None:
        assert parse_quantity(text) == Fraction(value)
    else:
        with pytest.raises(ValueError, match="not a quantity"):
            parse_quantity(text)


def test_what_a_pod_holds() -> None:
    """Containers and sidecars together, or one init container beside the sidecars before it; and the overhead."""
    containers = [{"resources": {"requests": {"cpu": "1", "memory": "100Mi"}}}] * 2
    sidecar = {"restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}}
    init = [sidecar, {"resources": {"requests": {"cpu": "3", "memory": "150Mi"}}}]
    found = read(node(), pod("p", containers=containers, initContainers=init, overhead={"memory": "1"}))
    demand = found.jobs[0].options[0].demand
    assert (demand.cpu_millicores, demand.memory_mib, demand.gpus) == (3500, 201, 0)
    without = read(node(), *(pod(name, overhead={"memory": size}) for name, size in (("p", "1Mi"), ("q", "3Mi"))))
    assert [job.options[0].demand.memory_mib for job in without.jobs] == [1, 3]


@pytest.mark.parametrize(("gpus", "holds"), [("1024", True), ("1025", False), ("500m", False)])
def test_whole_gpus_up_to_1024(gpus: str, holds: bool) -> None:
    """More, or a part of one: the pod is left out, the node drained, both with the number."""
    found = read(node(gpus=gpus), pod("p", asks={"nvidia.com/gpu": gpus}))
    assert ([job.options[0].demand.gpus for job in found.jobs], drained(found)) == (
        ([1024], []) if holds else ([], ["n"])
    )
    assert notes_of(found).count("up to 1024") == (0 if holds else 2)


def test_uids_are_kept() -> None:
    """Of nodes and pods that have one, so that a later object of the same name is told apart."""
    bare, named = node("bare"), node("named")
    named["metadata"]["uid"] = "u-1"
    found = read(bare, named, pod("p", "named", uid="u-2"))
    assert [one.origin and one.origin.id for one in found.cluster.nodes] == [None, "u-1"]
    origin = found.jobs[0].origin
    assert origin is not None
    assert [worker.id for worker in origin.workers] == ["u-2"]


def test_required_topology_is_a_split() -> None:
    """A gang that must stay in a rack, by the label that tells racks; labels may be named."""
    rack = "cloud.provider.com/topology-rack"
    rule = {"annotations": {"kueue.x-k8s.io/podset-required-topology": rack}}
    gang = {"labels": {"kueue.x-k8s.io/pod-group-name": "g"}, **rule}
    items = (node(labels={"example.com/row": "1", rack: "r"}), pod("a", **gang), pod("b", **gang))
    (split,) = read(*items).jobs[0].options[0].splits
    assert (split.level, split.domains) == ("rack", 1)
    named = read(*items, levels=["example.com/row"])
    assert ([domain.level for domain in named.cluster.domains], named.jobs) == (["row"], ())
    assert "which is not a level (--levels names them): 1 (default/g)" in notes_of(named)
    with pytest.raises(BadInput, match="no node carries"):
        read(*items, levels=["nothing"])


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("0 nodes", {"items": []}),
        (r"^objects\.items\[0\]\.metadata\.name: is missing", {"items": [{"kind": "Node"}]}),
        (r"items\[1\]\.metadata\.name.*unique", {"items": [node(), node()]}),
        (r"items\[1\]: 7", {"items": [node(), 7]}),
        (r"^objects: no 'items'", {}),
        (r"^objects\[1\]\.metadata\.name: 7, expected text", [node(), {"kind": "Node", "metadata": {"name": 7}}]),
    ],
)
def test_what_is_broken_is_named(words: str, given: Any) -> None:
    """Field and value."""
    with pytest.raises(BadInput, match=words):
        read_kubernetes(given)


@pytest.mark.parametrize(("text", "words"), [('{"jobs": []}', "items"), ("NAME READY", "not JSON")])
def test_another_document_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(BadInput, match=rf"x\.json.*{words}"):
        read_kubernetes([tmp_path / "x.json"])


def test_pods_on_deleted_nodes_and_beyond_their_nodes_gpus_stand() -> None:
    """Both run where they are, and are counted; five pods of a GPU on a node of four."""
    found = read(node(), pod("p", "m"), *(pod(f"p{i}", "n") for i in range(5)))
    assert (held(found)["default/p"], held(found)["default/p4"]) == ({"m": [0]}, {"n": [4]})
    assert "Kept as running, on a node that is not listed: 1 (default/p)." in notes_of(found)
    assert "Kept as running, on more GPUs than its node has or has left: 1 (default/p4)." in notes_of(found)


def test_mig_instances_are_read_one_profile_at_a_time() -> None:
    """
    Two profiles on a node beside a whole GPU.

    By ``nvidia.com/gpu`` instances are an amount of their node; by its profile each is a GPU, and the whole GPU none.
    """
    part = [{"resources": {"limits": {MIG: 1}, "requests": {"cpu": "2"}}}]
    cut = node("n", "1", has={MIG: "4", "nvidia.com/mig-3g.20gb": "1"})
    items = (cut, pod("runs", "n", containers=part), pod("waits", containers=part))
    whole = read(*items, pod("whole"))
    demands = {job.id: job.options[0].demand for job in whole.jobs}
    amounts = {name: (one.gpus, one.cpu_millicores, one.resources) for name, one in demands.items()}
    instance = (0, 2000, {MIG: 1})
    assert amounts == {"default/runs": instance, "default/waits": instance, "default/whole": (1, 0, {})}
    assert whole.cluster.machines[0].resources == {MIG: 4}
    profile = read(*items, resource=MIG)
    assert len(profile.cluster.machines[0].gpus) == 4
    assert {job.id: job.options[0].demand.gpus for job in profile.jobs} == {"default/runs": 1, "default/waits": 1}
    assert "mig" not in notes_of(profile)
    with pytest.raises(Unsupported, match=r"no node has nvidia.com/gpu.*--resource nvidia.com/mig-1g.5gb"):
        read(node("n", "0", has={MIG: "7"}), items[2])  # it would be a cluster without GPUs


def test_a_resource_that_no_node_has_is_named() -> None:
    """It would be a cluster without GPUs; one that has none of any vendor is read as such."""
    amd, bare = node("n", has={"amd.com/gpu": "4"}), node()
    for one in (amd, bare):
        del one["status"]["allocatable"]["nvidia.com/gpu"]
    with pytest.raises(BadInput, match=r"no node has nvidia.com/gpu; there are: amd.com/gpu; --resource"):
        read(amd)
    assert read(amd, resource="amd.com/gpu").cluster.machines[0].gpus
    with pytest.raises(BadInput, match=r"no node has foo/bar; there are: nvidia.com/gpu; --resource"):
        read(node(), resource="foo/bar")
    assert not read(bare).cluster.machines[0].gpus
