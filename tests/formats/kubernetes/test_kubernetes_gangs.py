"""Gangs: by which label, annotation or field, and how many of them must start together."""

from pathlib import Path
from typing import Any

import pytest

from helpers.kubernetes_objects import HOSTNAME, node, pod, read
from placeopt.model import Option

LWS = "leaderworkerset.sigs.k8s.io/"
BY = {
    "Volcano": {"annotations": {"scheduling.k8s.io/group-name": "g"}},
    "KAI": {"annotations": {"pod-group-name": "g"}},
    "Koordinator": {"annotations": {"gang.scheduling.koordinator.sh/name": "g"}},
    "coscheduling": {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
    "Kueue": {"labels": {"kueue.x-k8s.io/pod-group-name": "g"}},
    "LeaderWorkerSet": {"labels": {f"{LWS}name": "g", f"{LWS}group-index": "0"}},
    "JobSet": {"labels": {"jobset.sigs.k8s.io/jobset-name": "g"}},
    "Kubeflow": {"labels": {"training.kubeflow.org/job-name": "g"}},
    "Ray": {"labels": {"ray.io/cluster": "g"}},
    "Workload of 1.35": {"workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"}},
    "PodGroup of 1.36": {"schedulingGroup": {"podGroupName": "g"}},
}


def options(found: Any) -> dict[str, Option]:
    """Return the first option of each job."""
    return {job.id: job.options[0] for job in found.jobs}


@pytest.mark.parametrize("by", BY)
def test_a_gang_is_one_job(tmp_path: Path, by: str) -> None:
    """Three workers of it start together or not at all, by the word of every controller."""
    more: dict[str, Any] = BY[by]
    found = options(read(tmp_path, node(), *(pod(f"p{i}", **more) for i in range(3)), pod("alone")))
    gang = next(option for name, option in found.items() if name != "default/alone")
    assert (len(found), gang.workers, gang.workers_min, gang.value) == (2, 3, None, 3000)


def test_groups_of_a_leader_worker_set_are_gangs_each(tmp_path: Path) -> None:
    """Two replicas of two pods; of the third only the leader is there, so it is left out."""

    def member(group: int, worker: int) -> dict[str, Any]:
        labels = {f"{LWS}name": "llm", f"{LWS}group-index": str(group), f"{LWS}worker-index": str(worker)}
        return pod(f"llm-{group}-{worker}", labels=labels, annotations={f"{LWS}size": "2"})

    found = read(tmp_path, node(), *(member(g, w) for g in (0, 1) for w in (0, 1)), member(2, 0))
    assert {name: option.workers for name, option in options(found).items()} == {"default/llm-0": 2, "default/llm-1": 2}
    assert "some pods are missing (1 of 2): 1 (default/llm-2)" in found.note


def upstream(policy: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a PodGroup of Kubernetes' own API."""
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": policy, **more},
    }


def test_kubernetes_own_pod_groups(tmp_path: Path) -> None:
    """``minCount`` of a gang; pods of a basic policy are alone; a topology key keeps them in one domain."""
    pods = [pod(f"p{i}", schedulingGroup={"podGroupName": "g"}) for i in range(3)]
    nodes = [node(name, labels={"topology.kubernetes.io/rack": "r"}) for name in "ab"]
    gang = options(read(tmp_path, *nodes, *pods, upstream({"gang": {"minCount": 2}})))["default/g"]
    assert (gang.workers, gang.workers_min) == (3, 2)
    assert len(options(read(tmp_path, *nodes, *pods, upstream({"basic": {}})))) == 3
    rack = {"schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/rack"}]}}
    split = options(read(tmp_path, *nodes, *pods, upstream({"gang": {"minCount": 3}}, **rack)))["default/g"].splits
    assert [(one.level, one.domains) for one in split] == [("rack", 1)]
    left = read(tmp_path, *nodes, *pods, upstream({"gang": {"minCount": 4}}))
    assert "some pods are missing (3 of 4)" in left.note


def test_the_workload_of_1_35(tmp_path: Path) -> None:
    """Its pod groups stand inside it; Kueue's object of the same kind is another."""
    pods = [pod(f"p{i}", workloadRef={"name": "w", "podGroup": "workers"}) for i in range(3)]
    spec = {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 2}}}]}
    own = {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "Workload", "metadata": {"name": "w"}, "spec": spec}
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "w"}, "spec": {}}
    found = options(read(tmp_path, node(), *pods, own, kueue))
    assert [(name, one.workers_min) for name, one in found.items()] == [("default/w/workers", 2)]


def test_a_gang_that_must_stay_on_one_node(tmp_path: Path) -> None:
    """Kueue's required topology at the host: it was read as no rule at all."""
    gang = {
        "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
        "annotations": {"kueue.x-k8s.io/podset-required-topology": HOSTNAME},
    }
    assert options(read(tmp_path, node(), pod("a", **gang), pod("b", **gang)))["default/g"].single_node


def test_workers_that_differ_in_cpu_count_with_the_most(tmp_path: Path) -> None:
    """Master and worker of a PyTorchJob: what is placed so fits, and the note says it."""
    label = {"labels": {"training.kubeflow.org/job-name": "g"}}
    asks = [{"nvidia.com/gpu": "1", "cpu": "2", "memory": "1Mi"}, {"nvidia.com/gpu": "1", "cpu": "1", "memory": "9Mi"}]
    found = read(tmp_path, node(), *(pod(f"p{i}", asks=one, **label) for i, one in enumerate(asks)))
    demand = options(found)["default/g"].demand
    assert (demand.cpu_millicores, demand.memory_mib) == (2000, 9)
    assert "count with the most of any" in found.note


@pytest.mark.parametrize(
    "other",
    [
        {"asks": {"cpu": "1"}},
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"asks": {"nvidia.com/gpu": "1", "rdma/hca": "1"}},
    ],
)
def test_a_gang_of_pods_that_are_not_alike_is_left_out(tmp_path: Path, other: dict[str, Any]) -> None:
    """A launcher beside its workers. As two jobs, one could start without the other."""
    label = {"labels": {"training.kubeflow.org/job-name": "g"}}
    found = read(tmp_path, node(has={"rdma/hca": "4"}), pod("a", **label), pod("b", **label, **other))
    assert not found.jobs
    assert "a gang whose pods that wait are not alike: 1 (default/g)" in found.note


def test_one_odd_pod_takes_its_gang_with_it(tmp_path: Path) -> None:
    """A gated worker, or one with a share of a GPU: the others cannot start without it."""
    label = {"labels": {"ray.io/cluster": "g"}}
    for odd in (
        pod("b", schedulingGates=[{"name": "example.com/later"}], **label),
        pod("b", asks={"nvidia.com/gpu.shared": "1"}, **label),
    ):
        found = read(tmp_path, node(), pod("a", **label), odd)
        assert not found.jobs
        assert "1 (default/g)" in found.note


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"minMember": "2"}, "spec.minMember"),
        ({"minMember": 1, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}, "networkTopology"),
        ({"minMember": 1, "subGroups": [{"name": "a", "minMember": 1}]}, "subGroups"),
        ({"minMember": 1, "minTaskMember": {"a": 1, "b": 1}}, "minTaskMember"),
        ({"schedulingPolicy": {"gang": {"minCount": 1}}, "parentCompositePodGroupName": "x"}, "parent"),
    ],
)
def test_pod_groups_that_are_not_read(tmp_path: Path, spec: dict[str, Any], words: str) -> None:
    """Their pods are left out while they wait; what runs stays."""
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}
    label: dict[str, Any] = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}
    found = read(tmp_path, node(), group, pod("a", **label), pod("b", "n", **label))
    assert [job.id for job in found.jobs] == ["default/g"]
    assert [one.job for one in found.running] == ["default/g"]
    assert words in found.note


@pytest.mark.parametrize(
    "key",
    [
        "kueue.x-k8s.io/podset-slice-required-topology",
        "alpha.jobset.sigs.k8s.io/exclusive-topology",
        f"{LWS}exclusive-topology",
    ],
)
def test_rules_about_parts_of_a_gang_are_left_out(tmp_path: Path, key: str) -> None:
    """They say where slices or whole groups lie, which a split of all workers cannot say."""
    found = read(tmp_path, node(), pod("a", annotations={key: "rack"}))
    assert not found.jobs
    assert f"with {key}: 1 (default/a)" in found.note


def test_a_group_and_a_pod_of_one_name_are_two_jobs(tmp_path: Path) -> None:
    """Ids of jobs are unique."""
    found = read(tmp_path, node(), pod("a", labels={"ray.io/cluster": "g"}), pod("g"))
    assert [job.id for job in found.jobs] == ["default/g", "default/g+1"]


def test_pod_groups_that_are_not_listed_are_reported(tmp_path: Path) -> None:
    """How many must start together stands in them."""
    found = read(tmp_path, node(), pod("a", labels={"scheduling.x-k8s.io/pod-group": "g"}))
    assert "whose PodGroup is not listed start with all" in found.note
