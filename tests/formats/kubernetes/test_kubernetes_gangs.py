"""Gangs: by which label, annotation or field, and how many of them must start together."""

from typing import Any

import pytest

from helpers.imported_rounds import held, left_out
from helpers.kubernetes_objects import HOSTNAME, node, pod, read
from placeopt.model import Instance, Option

LWS, KUEUE, RACK = "leaderworkerset.sigs.k8s.io/", "kueue.x-k8s.io/", "topology.kubernetes.io/rack"
RAY: dict[str, Any] = {"labels": {"ray.io/cluster": "g"}}
KUBEFLOW: dict[str, Any] = {"labels": {"training.kubeflow.org/job-name": "g"}}
GROUP: dict[str, Any] = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}


def options(found: Instance) -> dict[str, Option]:
    """Return the first option of each job."""
    return {job.id: job.options[0] for job in found.jobs}


@pytest.mark.parametrize(
    "more",
    [
        {"annotations": {"scheduling.k8s.io/group-name": "g"}},  # Volcano
        {"annotations": {"pod-group-name": "g"}},  # KAI
        {"annotations": {"gang.scheduling.koordinator.sh/name": "g"}},
        GROUP,  # coscheduling
        {"labels": {f"{KUEUE}pod-group-name": "g"}},
        {"labels": {f"{LWS}name": "g", f"{LWS}group-index": "0"}},
        {"labels": {"jobset.sigs.k8s.io/jobset-name": "g"}},
        KUBEFLOW,
        RAY,
        {"workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"}},  # Workload of 1.35
        {"schedulingGroup": {"podGroupName": "g"}},  # PodGroup of 1.36
    ],
)
def test_a_gang_is_one_job(more: dict[str, Any]) -> None:
    """Three workers of it start together or not at all, by the word of every controller."""
    found = options(read(node(), *(pod(f"p{i}", **more) for i in range(3)), pod("alone")))
    gang = next(option for name, option in found.items() if name != "default/alone")
    assert (len(found), gang.workers, gang.workers_min, gang.value) == (2, 3, None, 3000)


def test_gangs_of_which_some_pods_run_or_are_missing() -> None:
    """Elastic from minMember; one part where some run; incomplete ones are left out; kinds apart."""
    volcano = {"annotations": {"scheduling.k8s.io/group-name": "g"}}
    half = {"labels": {"scheduling.x-k8s.io/pod-group": "h"}}
    short = {"labels": {f"{KUEUE}pod-group-name": "s"}, "annotations": {f"{KUEUE}pod-group-total-count": "3"}}
    groups = [{"kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": 2}} for name in ("g", "h")]
    pods = [pod(f"g{i}", **volcano) for i in range(3)] + [pod(f"h{i}", **half) for i in (1, 2)]
    found = read(node("a"), node("b"), *pods, pod("h0", "a", **half), pod("s0", **short), *groups)
    assert {
        name: (one.workers, one.workers_min, one.value, one.value_per_worker) for name, one in options(found).items()
    } == {
        "default/g": (3, 2, 3000, 1000),
        "default/h": (1, None, 1000, 0),
        "default/h+1": (2, 1, 2000, 1000),
    }
    assert held(found).keys() == {"default/h"}
    assert "1 of 3" in found.note


def test_groups_of_a_leader_worker_set_are_gangs_each() -> None:
    """Two replicas of two pods; of the third only the leader is there, so it is left out."""

    def member(group: int, worker: int) -> dict[str, Any]:
        labels = {f"{LWS}name": "llm", f"{LWS}group-index": str(group), f"{LWS}worker-index": str(worker)}
        return pod(f"llm-{group}-{worker}", labels=labels, annotations={f"{LWS}size": "2"})

    found = read(node(), *(member(g, w) for g in (0, 1) for w in (0, 1)), member(2, 0))
    assert {name: option.workers for name, option in options(found).items()} == {"default/llm-0": 2, "default/llm-1": 2}
    assert "some pods are missing (1 of 2): 1 (default/llm-2)" in found.note


def test_kubernetes_own_pod_groups() -> None:
    """``minCount`` of a gang; pods of a basic policy are alone; a topology key keeps them in one domain."""

    def grouped(policy: dict[str, Any], **more: Any) -> Instance:
        group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
        group |= {"metadata": {"name": "g", "namespace": "default"}, "spec": {"schedulingPolicy": policy, **more}}
        nodes = [node(name, labels={RACK: "r"}) for name in "ab"]
        return read(*nodes, *(pod(f"p{i}", schedulingGroup={"podGroupName": "g"}) for i in range(3)), group)

    gang = options(grouped({"gang": {"minCount": 2}}))["default/g"]
    assert (gang.workers, gang.workers_min) == (3, 2)
    assert len(options(grouped({"basic": {}}))) == 3
    rack = {"topology": [{"key": RACK}]}
    split = options(grouped({"gang": {"minCount": 3}}, schedulingConstraints=rack))["default/g"].splits
    assert [(one.level, one.domains) for one in split] == [("rack", 1)]
    assert "some pods are missing (3 of 4)" in grouped({"gang": {"minCount": 4}}).note


def test_the_workload_of_1_35() -> None:
    """Its pod groups stand inside it; Kueue's object of the same kind is another."""
    pods = [pod(f"p{i}", workloadRef={"name": "w", "podGroup": "workers"}) for i in range(3)]
    spec = {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 2}}}]}
    own = {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "Workload", "metadata": {"name": "w"}, "spec": spec}
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "w"}, "spec": {}}
    found = options(read(node(), *pods, own, kueue))
    assert [(name, one.workers_min) for name, one in found.items()] == [("default/w/workers", 2)]


def test_a_gang_that_must_stay_on_one_node() -> None:
    """Kueue's required topology at the host: it was read as no rule at all."""
    rule = {"annotations": {f"{KUEUE}podset-required-topology": HOSTNAME}}
    gang = {"labels": {f"{KUEUE}pod-group-name": "g"}, **rule}
    assert options(read(node(), pod("a", **gang), pod("b", **gang)))["default/g"].single_node


def test_workers_that_differ_in_cpu_count_with_the_most() -> None:
    """Master and worker of a PyTorchJob: what is placed so fits, and the note says it."""
    asks = [{"nvidia.com/gpu": "1", "cpu": "2", "memory": "1Mi"}, {"nvidia.com/gpu": "1", "cpu": "1", "memory": "9Mi"}]
    found = read(node(), *(pod(f"p{i}", asks=one, **KUBEFLOW) for i, one in enumerate(asks)))
    demand = options(found)["default/g"].demand
    assert (demand.cpu_millicores, demand.memory_mib) == (2000, 9)
    assert "count with the most of any" in found.note


UNLIKE = "a gang whose pods that wait are not alike"


@pytest.mark.parametrize(
    ("words", "other"),
    [  # a launcher beside its workers: as two jobs, one could start without the other
        (UNLIKE, {"asks": {"cpu": "1"}}),
        (UNLIKE, {"nodeSelector": {"a": "b"}}),
        (UNLIKE, {"tolerations": [{"operator": "Exists"}]}),
        (UNLIKE, {"asks": {"nvidia.com/gpu": "1", "rdma/hca": "1"}}),
        # a gated worker, or one with a share of a GPU: the others cannot start without it
        ("a scheduling gate", {"schedulingGates": [{"name": "example.com/later"}]}),
        (
            "a part of a GPU, or devices that are not read: nvidia.com/gpu.shared",
            {"asks": {"nvidia.com/gpu.shared": "1"}},
        ),
    ],
)
def test_one_odd_pod_takes_its_gang_with_it(words: str, other: dict[str, Any]) -> None:
    found = read(node(has={"rdma/hca": "4"}), pod("a", **RAY), pod("b", **RAY, **other))
    assert not found.jobs
    (line,) = left_out(found)
    assert words in line
    assert line.endswith(": 1 (default/g).")


@pytest.mark.parametrize(
    ("words", "spec"),
    [
        ("spec.minMember", {"minMember": "2"}),
        ("networkTopology", {"minMember": 1, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}),
        ("subGroups", {"minMember": 1, "subGroups": [{"name": "a", "minMember": 1}]}),
        ("minTaskMember", {"minMember": 1, "minTaskMember": {"a": 1, "b": 1}}),
        ("parent", {"schedulingPolicy": {"gang": {"minCount": 1}}, "parentCompositePodGroupName": "x"}),
    ],
)
def test_pod_groups_that_are_not_read(words: str, spec: dict[str, Any]) -> None:
    """Their pods are left out while they wait; what runs stays."""
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}
    found = read(node(), group, pod("a", **GROUP), pod("b", "n", **GROUP))
    assert [job.id for job in found.jobs] == list(held(found)) == ["default/g"]
    assert words in found.note


@pytest.mark.parametrize(
    "key",
    [
        f"{KUEUE}podset-slice-required-topology",
        "alpha.jobset.sigs.k8s.io/exclusive-topology",
        f"{LWS}exclusive-topology",
    ],
)
def test_rules_about_parts_of_a_gang_are_left_out(key: str) -> None:
    """They say where slices or whole groups lie, which a split of all workers cannot say."""
    found = read(node(), pod("a", annotations={key: "rack"}))
    assert not found.jobs
    assert f"with {key}: 1 (default/a)" in found.note


def test_a_group_and_a_pod_of_one_name_are_two_jobs() -> None:
    """Ids of jobs are unique."""
    assert [job.id for job in read(node(), pod("a", **RAY), pod("g")).jobs] == ["default/g", "default/g+1"]


def test_pod_groups_that_are_not_listed_are_reported() -> None:
    """How many must start together stands in them."""
    assert "whose PodGroup is not listed start with all" in read(node(), pod("a", **GROUP)).note
