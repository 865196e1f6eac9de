"""Gangs: by which label, annotation or field, and how many of them must start together."""

import threading
from typing import Any

import pytest

from helpers.imported_rounds import held, left_out, notes_of
from helpers.kubernetes_objects import HOSTNAME, node, pod, read
from helpers.node_conditions import chosen_nodes
from placeopt import Engine, solve, violations
from placeopt.actions import plan_actions
from placeopt.model import Instance, JobOrigin, Option
from placeopt.scheduling import LiveScheduler, named_policy

LWS, KUEUE, RACK = "leaderworkerset.sigs.k8s.io/", "kueue.x-k8s.io/", "topology.kubernetes.io/rack"
JOBSET: dict[str, Any] = {"labels": {"jobset.sigs.k8s.io/jobset-name": "g"}}
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
        JOBSET,
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
    assert "1 of 3" in notes_of(found)


def test_groups_of_a_leader_worker_set_are_gangs_each() -> None:
    """Two replicas of two pods; of the third only the leader is there, so it is left out."""

    def member(group: int, worker: int) -> dict[str, Any]:
        labels = {f"{LWS}name": "llm", f"{LWS}group-index": str(group), f"{LWS}worker-index": str(worker)}
        return pod(f"llm-{group}-{worker}", labels=labels, annotations={f"{LWS}size": "2"})

    found = read(node(), *(member(g, w) for g in (0, 1) for w in (0, 1)), member(2, 0))
    assert {name: option.workers for name, option in options(found).items()} == {"default/llm-0": 2, "default/llm-1": 2}
    assert "Not eligible, a group of which some pods are missing (1 of 2): 1 (default/llm-2)" in notes_of(found)


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
    assert "some pods are missing (3 of 4)" in notes_of(grouped({"gang": {"minCount": 4}}))


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


def test_workers_that_differ_in_cpu_are_groups() -> None:
    """Master and worker of a PyTorchJob: as alike, with the most of both, they could be refused a place they have."""
    asks = [{"nvidia.com/gpu": "1", "cpu": "2", "memory": "1Mi"}, {"nvidia.com/gpu": "1", "cpu": "1", "memory": "9Mi"}]
    found = read(node(), *(pod(f"p{i}", asks=one, **KUBEFLOW) for i, one in enumerate(asks)))
    demands = [one.demand for one in options(found)["default/g"].groups]
    assert [(one.cpu_millicores, one.memory_mib) for one in demands] == [(2000, 1), (1000, 9)]


@pytest.mark.parametrize(
    ("words", "other"),
    [
        # a gated worker, or one with a share of a GPU: the others cannot start without it
        ("a scheduling gate", {"schedulingGates": [{"name": "example.com/later"}]}),
        (
            "a part of a GPU, or devices that are not read: nvidia.com/gpu.shared",
            {"asks": {"nvidia.com/gpu.shared": "1"}},
        ),
    ],
)
def test_one_odd_pod_takes_its_gang_with_it(words: str, other: dict[str, Any]) -> None:
    found = read(node(has={"rdma/hca": "4"}), pod("a", **JOBSET), pod("b", **JOBSET, **other))
    assert not found.jobs
    (line,) = left_out(found)
    assert words in line
    assert line.endswith(": 1 (default/g).")


@pytest.mark.parametrize(
    ("words", "spec"),
    [
        ("spec.minMember", {"minMember": "2"}),
        ("tier-1, which is not a level", {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}),
        ("subGroupPolicy", {"minMember": 1, "subGroupPolicy": [{"name": "a"}]}),
        ("resource claims", {"minMember": 1, "resourceClaims": [{"name": "a"}]}),
        ("parent", {"schedulingPolicy": {"gang": {"minCount": 1}}, "parentCompositePodGroupName": "x"}),
    ],
)
def test_pod_groups_that_are_not_read(words: str, spec: dict[str, Any]) -> None:
    """Their pods are left out while they wait; what runs stays."""
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}
    found = read(node(), group, pod("a", **GROUP), pod("b", "n", **GROUP))
    assert [job.id for job in found.jobs] == list(held(found)) == ["default/g"]
    assert words in notes_of(found)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (f"{KUEUE}podset-slice-required-topology", "podset-slice-size"),
        ("alpha.jobset.sigs.k8s.io/exclusive-topology", "with alpha.jobset.sigs.k8s.io/exclusive-topology: 1"),
        (f"{LWS}exclusive-topology", f"with {LWS}exclusive-topology: 1"),
    ],
)
def test_rules_about_domains_that_are_not_read(key: str, words: str) -> None:
    """A slice without its size, and domains that other jobs may not enter; a pod that runs is not concerned."""
    found = read(node(), pod("a", annotations={key: "rack"}), pod("b", "n", annotations={key: "rack"}))
    assert [job.id for job in found.jobs] == ["default/b"]
    assert words in notes_of(found)


def test_a_group_and_a_pod_of_one_name_are_two_jobs() -> None:
    """Ids of jobs are unique."""
    assert [job.id for job in read(node(), pod("a", **JOBSET), pod("g")).jobs] == ["default/g", "default/g+1"]


def test_pod_groups_that_are_not_listed_are_reported() -> None:
    """How many must start together stands in them."""
    assert "whose PodGroup is not listed start with all" in notes_of(read(node(), pod("a", **GROUP)))


def test_hyper_nodes_are_levels() -> None:
    """Two nodes in each HyperNode of tier 1, all in one of tier 2: by number, by name, and with unlike members."""
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": "^[cd]$"}}}
    exact = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in "ab"]
    inner = [{"type": "HyperNode", "selector": {"exactMatch": {"name": name}}} for name in ("low", "high")]
    hyper = [
        {"kind": "HyperNode", "metadata": {"name": name}, "spec": {"tier": tier, "tierName": word, "members": members}}
        for name, tier, word, members in [
            ("low", 1, "leaf", exact),
            ("high", 1, "leaf", [member]),
            ("top", 2, "", inner),
        ]
    ]
    for rule, level in [({"highestTierAllowed": 1}, "tier-1"), ({"highestTierName": "leaf"}, "tier-leaf")]:
        group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3, "networkTopology": rule}}
        found = read(*map(node, "abcd"), *hyper, group, *(pod(f"p{i}", **GROUP) for i in range(3)))
        assert [(one.level, one.domains) for one in options(found)["default/g"].splits] == [(level, 1)]
        assert [one.domain for one in found.cluster.nodes] == ["low", "low", "high", "high"]


@pytest.mark.parametrize("pattern", ["[", "(a+)+b", "a*a*a*b"])
def test_hyper_nodes_that_cannot_be_read(pattern: str) -> None:
    """None of them is read then; an expression that could take for ever is not tried."""
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}
    hyper = {"kind": "HyperNode", "metadata": {"name": "h"}, "spec": {"tier": 1, "members": [member]}}
    rule = {"minMember": 1, "networkTopology": {"highestTierAllowed": 1}}
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": rule}
    found = read(node("a" * 60), hyper, group, pod("p", **GROUP))
    assert "HyperNodes are not read" in notes_of(found)
    assert "tier-1, which is not a level" in notes_of(found)


def test_levels_of_a_topology_object_are_read() -> None:
    """Kueue's Topology names labels that no list knows; what a pod names is a level, too."""
    levels = [{"nodeLabel": "example.com/hall"}, {"nodeLabel": "example.com/row"}, {"nodeLabel": HOSTNAME}]
    topology = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Topology", "spec": {"levels": levels}}
    labels = [{"example.com/hall": "h", "example.com/row": row, "example.com/pod": row} for row in "rs"]
    nodes = [node(name, labels=own) for name, own in zip("ab", labels, strict=True)]
    found = read(*nodes, {**topology, "metadata": {"name": "t"}})
    assert [domain.level for domain in found.cluster.domains] == ["hall", "row", "row"]
    rule = {"annotations": {f"{KUEUE}podset-required-topology": "example.com/pod"}}
    assert "pod" in {domain.level for domain in read(*nodes, pod("p", **rule)).cluster.domains}


def test_groups_inside_a_part_that_has_a_rule_of_its_own() -> None:
    """A master, and beside it two unlike groups that share a rack (KAI)."""
    spec = {
        "subGroups": [
            {"name": "m", "minMember": 1},
            {"name": "all", "topologyConstraint": {"requiredTopologyLevel": RACK}},
            *({"name": name, "minMember": 1, "parent": "all"} for name in "rs"),
        ]
    }
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}
    sizes = {"m": "1", "r": "2", "s": "3"}
    marks = {"annotations": {"pod-group-name": "g"}}
    pods = [
        pod(name, labels={"kai.scheduler/subgroup-name": name}, asks={"nvidia.com/gpu": size}, **marks)
        for name, size in sizes.items()
    ]
    option = options(read(node(labels={RACK: "r1"}), group, *pods))["default/g"]
    found = {one.id: ([part.id for part in one.groups], [split.level for split in one.splits]) for one in option.groups}
    assert found == {"m": ([], []), "all": (["r", "s"], ["rack"])}


def test_parts_of_a_composite_pod_group_start_together() -> None:
    """Two PodGroups below one CompositePodGroup; with one of them missing, none starts."""
    api = {"apiVersion": "scheduling.k8s.io/v1alpha2"}
    top = {"kind": "CompositePodGroup", "metadata": {"name": "top"}, **api}
    top["spec"] = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    parts = [
        {"kind": "PodGroup", "metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}, **api}
        for name in "ab"
    ]
    for part in parts:
        part["spec"]["parentCompositePodGroupName"] = "top"
    pods = [pod(f"p{name}", schedulingGroup={"podGroupName": name}) for name in "ab"]
    found = options(read(node(), top, *parts, *pods))
    assert [(name, one.workers, one.workers_min) for name, one in found.items()] == [("default/top", 2, None)]
    assert "groups are missing (1 of 2)" in notes_of(read(node(), top, *parts, pods[0]))
    top["spec"] = {"schedulingPolicy": {"basic": {}}}
    assert options(read(node(), top, *parts, *pods)).keys() == {"default/a", "default/b"}


SUBGROUPS = [{"name": "m", "minMember": 1}, {"name": "w", "minMember": 2}]


@pytest.mark.parametrize(
    ("name", "role", "groups"),
    [
        ("scheduling.k8s.io/group-name", "volcano.sh/task-spec", {"minTaskMember": {"m": 1, "w": 2}}),
        ("pod-group-name", "kai.scheduler/subgroup-name", {"subGroups": SUBGROUPS}),
    ],
)
def test_roles_with_numbers_of_their_own(name: str, role: str, groups: dict[str, Any]) -> None:
    """One master and two of three workers; with no master, none of the workers starts."""
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3, **groups}}
    pods = [pod(pod_name, labels={role: pod_name[0]}, annotations={name: "g"}) for pod_name in ("m", "w0", "w1", "w2")]
    (option,) = options(read(node(), group, *pods)).values()
    assert (option.workers, option.workers_min) == (4, 3)
    assert "m: 0 of 1" in notes_of(read(node(), group, *pods[1:]))
    pods[0]["status"]["phase"] = "Succeeded"
    (option,) = options(read(node(), group, *pods)).values()
    assert (option.workers, option.workers_min) == (3, 2)


def test_task_groups_of_yunikorn() -> None:
    """The driver states the task groups of its application; a pod without a task group is alone."""
    groups = '[{"name": "driver", "minMember": 1}, {"name": "executor", "minMember": 2}]'
    app, task = {"applicationId": "app"}, "yunikorn.apache.org/task-group-name"
    driver = pod("d", labels=app, annotations={task: "driver", "yunikorn.apache.org/task-groups": groups})
    executors = [pod(f"e{i}", labels=app, annotations={task: "executor"}) for i in range(3)]
    found = options(read(node(), driver, *executors, pod("other", labels=app)))
    assert {name: (one.workers, one.workers_min) for name, one in found.items()} == {
        "default/app": (4, 3),
        "default/other": (1, None),
    }
    assert "missing (1 of 3)" in notes_of(read(node(), driver))


def in_racks(**racks: str) -> list[dict[str, Any]]:
    """Return nodes with their racks."""
    return [node(name, labels={RACK: rack}) for name, rack in racks.items()]


def test_pods_that_wait_stay_in_the_domain_of_those_that_run() -> None:
    """One of three runs in rack r; with one in each rack the rule is broken, and no node is right for the third."""
    rule = {"annotations": {f"{KUEUE}podset-required-topology": RACK}}
    gang = {"labels": {f"{KUEUE}pod-group-name": "g"}, **rule}
    nodes = in_racks(a="r", b="r", c="s")
    found = read(*nodes, pod("p0", "a", **gang), pod("p1", **gang), pod("p2", **gang))
    assert chosen_nodes(found, found.jobs[1]) == ("a", "b")
    broken = read(*nodes, pod("p0", "a", **gang), pod("p1", "c", **gang), pod("p2", **gang))
    assert chosen_nodes(broken, broken.jobs[1]) == ()
    sizes = {f"{KUEUE}podset-slice-required-topology": RACK, f"{KUEUE}podset-slice-size": "2"}
    sliced = {"labels": gang["labels"], "annotations": sizes}
    assert "some pods run, with a rule about slices" in notes_of(
        read(*nodes, pod("p", "a", **sliced), pod("q", **sliced))
    )


def test_pods_that_are_deleted_or_have_succeeded() -> None:
    """Of a gang of three, one succeeded, one is being deleted, two wait: both must start. A failed one is not there."""
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3}}
    deleted, done, failed = pod("a", "n", **GROUP), pod("b", "n", **GROUP), pod("e", "n", **GROUP)
    deleted["metadata"]["deletionTimestamp"] = "2026-11-27T00:00:00Z"
    done["status"]["phase"], failed["status"]["phase"] = "Succeeded", "Failed"
    waiting = [pod(name, **GROUP) for name in "cd"]
    found = options(read(node(), group, deleted, done, failed, *waiting))
    assert {name: (one.workers, one.workers_min) for name, one in found.items()} == {
        "default/g": (1, None),
        "default/g+1": (2, None),
    }
    assert "missing (2 of 3)" in notes_of(read(node(), group, failed, *waiting))


def test_placeholders_give_their_room_to_pods_of_their_task_group() -> None:
    """Three placeholders, of which two run, and two pods that wait; with one pod, a placeholder keeps its room."""
    marks = {
        "yunikorn.apache.org/task-group-name": "w",
        "yunikorn.apache.org/task-groups": '[{"name": "w", "minMember": 3}]',
    }
    app = {"labels": {"applicationId": "a"}}
    holds = {"annotations": {**marks, "yunikorn.apache.org/placeholder": "true"}, **app}
    holders = [pod("h0", "n", **holds), pod("h1", "n", **holds), pod("h2", **holds)]
    found = read(node(), *holders, *(pod(f"w{i}", annotations=marks, **app) for i in range(2)))
    assert held(found).keys() == set()
    (job,) = found.jobs
    assert [one.name for one in job.origin.workers] == ["default/w0", "default/w1", "default/h2"]
    assert (job.options[0].workers, job.options[0].workers_min) == (3, 1)
    assert [(hold.node, hold.gpus, hold.jobs) for hold in found.holds] == [
        ("n", (0,), ("default/a",)),
        ("n", (1,), ("default/a",)),
    ]
    other = pod("other", asks={"nvidia.com/gpu": "2"}, priority=1000)
    pods = [pod(f"w{i}", annotations=marks, **app) for i in range(2)]
    plan = solve(read(node(gpus="2"), *holders[:2], *pods, other), isolation="thread")
    assert [placed.job for placed in plan.placements] == ["default/a"]
    found = read(node(), *holders[:2], pod("w0", annotations=marks, **app))
    assert held(found).keys() == {"default/a"}


def test_a_workload_of_kueue_is_read_where_there_are_no_pods_of_it() -> None:
    """Admitted, finished and inactive ones are not read, nor one that was made of pods."""
    template = {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}}
    spec = {"podSets": [{"name": "w", "count": 3, "template": template}], "priority": 7, "queueName": "q"}
    api = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload"}

    def workload(name: str, status: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        owners = more.pop("ownerReferences", [{"kind": "Job"}])
        return {
            **api,
            "metadata": {"name": name, "ownerReferences": owners},
            "spec": {**spec, **more},
            "status": status,
        }

    found = read(
        node(),
        workload("waits"),
        workload("admitted", {"admission": {"clusterQueue": "c"}}),
        workload("done", {"conditions": [{"type": "Finished", "status": "True"}]}),
        workload("off", active=False),
        workload("made", ownerReferences=[{"kind": "Pod"}]),
        workload("odd", podSets=[{"count": "3"}]),
        *(workload(f"vast{i}", podSets=[{"count": 100_000}] * 25) for i in range(2)),
    )
    assert [(job.id, job.queue, job.options[0].workers) for job in found.jobs] == [("default/waits", "q", 3)]
    assert found.jobs[0].origin == JobOrigin(name="default/waits")
    assert "a Workload that cannot be read: 3" in notes_of(found)


def test_unlike_members_are_groups_of_one_job() -> None:
    """A launcher without GPUs and workers with network cards: as two jobs, one could start without the other."""
    asks = [{"cpu": "1"}, {"nvidia.com/gpu": "1", "rdma/hca": "1"}, {"nvidia.com/gpu": "1", "rdma/hca": "1"}]
    pods = [pod(f"p{i}", asks=one, **JOBSET) for i, one in enumerate(asks)]
    option = options(read(node(has={"rdma/hca": "4"}), *pods))["default/g"]
    assert [(one.id, one.workers, one.demand.gpus, one.demand.resources) for one in option.groups] == [
        ("default/p0", 1, 0, {}),
        ("default/p1", 2, 1, {"rdma/hca": 1}),
    ]
    assert option.value == 2001


def test_unlike_members_may_name_nodes() -> None:
    """A launcher on the node that it names, workers on any other."""
    key = {"key": "metadata.name", "values": ["n1"]}
    on, off = (
        {"nodeSelectorTerms": [{"matchFields": [{**key, "operator": operator}]}]} for operator in ("In", "NotIn")
    )
    affine = [
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": of}}, **JOBSET}
        for of in (on, off)
    ]
    waits = [pod("l", asks={"cpu": "1"}, **affine[0]), *(pod(f"w{i}", **affine[1]) for i in range(2))]
    found = read(node("n0", "1"), node("n1", "4"), node("n2", "2"), *waits)
    plan = solve(found, isolation="thread")
    assert violations(found, plan) == []
    assert {held.node: len(held.workers) for held in plan.placements[0].assignments} == {"n1": 1, "n2": 2}


def test_unlike_rules_about_nodes_are_conditions_of_groups() -> None:
    """A launcher on a tainted node of one pool, two workers on the other pool; alike workers with a rule of one."""
    taint = [{"key": "cpu", "effect": "NoSchedule"}]
    nodes = [node("c", "0", labels={"pool": "cpu"}, taints=taint), node("n0", "2", labels={"pool": "gpu"})]
    launcher = {"nodeSelector": {"pool": "cpu"}, "tolerations": [{"key": "cpu", "operator": "Exists"}]}
    waits = [pod("l", asks={"cpu": "1"}, **launcher, **JOBSET)]
    waits += [pod(f"w{i}", nodeSelector={"pool": "gpu"}, **JOBSET) for i in range(2)]
    found = read(*nodes, *waits)
    plan = solve(found, time_limit_s=20, isolation="thread")
    assert [(one.group, one.node) for one in plan.placements[0].assignments] == [
        ("default/l", "c"),
        ("default/w0", "n0"),
    ]
    assert found.jobs[0].conditions.node_selector == {}
    odd = read(*nodes, *waits, pod("w2", nodeSelector={"pool": "cpu"}, **JOBSET))
    assert [len(option.groups) for option in odd.jobs[0].options] == [3]
    assert not solve(odd, time_limit_s=20, isolation="thread").placements


GATES = [{"name": f"{KUEUE}topology"}]


def test_each_pod_set_has_its_level() -> None:
    """Of Kueue's PodSets one lies within a rack and one within a zone; PodSets of one group share a rack."""
    zone = "topology.kubernetes.io/zone"

    def member(name: str, role: str, level: str, **more: str) -> dict[str, Any]:
        marks = {f"{KUEUE}workload": "w", f"{KUEUE}podset-required-topology": level, **more}
        return pod(name, labels={f"{KUEUE}podset": role}, annotations=marks, schedulingGates=GATES)

    nodes = [node(name, labels={RACK: name, zone: "z"}) for name in "ab"]
    option = options(read(*nodes, *(member(f"m{i}", "m", RACK) for i in range(2)), member("w", "w", zone)))["default/w"]
    assert [(one.id, one.workers, one.splits[0].level) for one in option.groups] == [("m", 2, "rack"), ("w", 1, "zone")]
    marks = {f"{KUEUE}pod-group-total-count": "2", f"{KUEUE}podset-required-topology": RACK}
    group = {"labels": {f"{KUEUE}pod-group-name": "g"}, "annotations": marks}
    option = options(read(*nodes, pod("a", **group), pod("b", asks={"cpu": "1"}, **group)))["default/g"]
    assert [(one.id, one.splits[0].level) for one in option.groups] == [("default/a", "rack"), ("default/b", "rack")]
    shared = {f"{KUEUE}podset-group-name": "x"}
    option = options(read(*nodes, member("m", "m", RACK, **shared), member("w", "w", RACK, **shared)))["default/w"]
    assert (option.workers, option.splits[0].level) == (2, "rack")


def test_a_group_of_which_all_pods_may_be_missing_is_optional() -> None:
    """Two pods of three kinds must start: the kind with most pods may be missing in part, never the others."""
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 2}}
    pods = [pod("a", asks={"cpu": "1"}, **GROUP), pod("b", asks={"nvidia.com/gpu": "2"}, **GROUP)]
    option = options(read(node(), group, *pods, *(pod(f"c{i}", **GROUP) for i in range(3))))["default/g"]
    assert [(one.id, one.workers, one.fewest, one.optional) for one in option.groups] == [
        ("default/a", 1, 1, False),
        ("default/b", 1, 1, False),
        ("default/c0", 3, 1, True),
    ]
    assert (option.value, option.groups[2].value_per_worker) == (5001, 1000)


def test_pods_that_kueue_has_let_go_are_alone() -> None:
    """Behind a gate the pods of a Workload start together; without it, kube-scheduler binds one after the other."""
    marks = {f"{KUEUE}workload": "w"}
    assert options(
        read(node(), *(pod(f"p{i}", annotations=marks, schedulingGates=GATES) for i in range(2)))
    ).keys() == {"default/w"}
    assert len(options(read(node(), *(pod(f"p{i}", annotations=marks) for i in range(2))))) == 2


def test_some_of_the_groups_must_start() -> None:
    """Two of three replicas of two pods must start, each whole (KAI); one of two PodGroups (CompositePodGroup)."""
    replicas = [{"name": name, "minMember": 2, "parent": "all"} for name in "rst"]
    spec = {"subGroups": [{"name": "all", "minSubGroup": 2}, *replicas]}
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}
    marks = {"annotations": {"pod-group-name": "g"}}
    pods = [pod(f"{name}{i}", labels={"kai.scheduler/subgroup-name": name}, **marks) for name in "rst" for i in (0, 1)]
    option = options(read(node(), group, *pods))["default/g"]
    assert [(one.id, one.workers, one.fewest, one.optional) for one in option.groups] == [
        ("r", 4, 4, False),
        ("t", 2, 2, True),
    ]
    assert (option.value, option.groups[1].value_per_worker) == (6000, 1000)
    assert "groups are missing (1 of 2)" in notes_of(read(node(), group, *pods[:2]))


@pytest.mark.parametrize(
    ("most", "podset"),
    [  # racks of 2 and 0, and of 1 and 3 free GPUs
        (3, {"topologyRequest": {"required": RACK}}),
        (0, {"topologyRequest": {"required": HOSTNAME}, "count": 4}),
        (4, {"topologyRequest": {"podSetSliceRequiredTopology": RACK, "podSetSliceSize": 2}, "count": 4}),
        (0, {"topologyRequest": {"podSetSliceRequiredTopology": HOSTNAME, "podSetSliceSize": 2}, "count": 6}),
        (
            4,
            {
                "topologyRequest": {"podsetSliceRequiredTopologyConstraints": [{"topology": HOSTNAME, "size": 2}]},
                "count": 4,
            },
        ),
        (6, {"minCount": 2, "count": 9}),
        (0, {"minCount": 7, "count": 9}),
        (0, {"count": 9}),
    ],
)
def test_a_workload_states_its_topology_and_its_least_number(most: int, podset: dict[str, Any]) -> None:
    """In fields of its PodSets, not in annotations of their templates."""
    template = {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}}
    sets = [{"name": "w", "count": 3, "template": template, **podset}]
    made = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "w"}}
    nodes = [
        node(f"n{i}", str(free), labels={RACK: f"r{i // 2}", HOSTNAME: f"n{i}"}) for i, free in enumerate((2, 0, 1, 3))
    ]
    plan = solve(read(*nodes, {**made, "spec": {"podSets": sets}}), time_limit_s=20, isolation="thread")
    assert plan.status == "optimal"
    assert sum(len(held.workers) for one in plan.placements for held in one.assignments) == most


def test_a_running_gang_may_lose_the_pods_that_it_can_miss() -> None:
    """Four pods of which two are enough: inference of two GPUs takes two from it, where it may be preempted."""
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}}
    marks = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}, "annotations": {"placeopt.io/preemptible": "true"}}
    pods = [pod(f"p{i}", "n", **marks) for i in range(4)]
    urgent = pod("inf", asks={"nvidia.com/gpu": 2}, annotations={"placeopt.io/kind": "inference"})
    now = read(node("n"), {**group, "spec": {"minMember": 2}}, *pods, urgent)
    (held,) = now.running
    assert (held.preemptible, held.shrinkable) == (True, True)
    with Engine() as engine:
        live = LiveScheduler(engine, named_policy("dynamoml"), overcommits=False)
        live.follow(now)
        plan = live.decide(5.0, threading.Event(), deterministic=True)
        actions = plan_actions(live.snapshot, plan)
    assert [(one.do, one.job, len(one.leaves), one.after) for one in actions] == [
        ("shrink", "default/g", 2, ()),
        ("start", "default/inf", 0, (0,)),
    ]
    assert live.fired["elastic load: shrank"] == 1


def test_a_gang_whose_pods_talk_waits_for_one_node_where_its_owner_asks_for_utility() -> None:
    """Two GPUs are free on each of two nodes: SC'17's utility is 24 of the 600 that its marks ask for."""
    marks = {f"{LWS}size": "2", "placeopt.io/communication_weight": "4", "placeopt.io/utility_min_thousandths": "600"}
    labels = {f"{LWS}name": "g", f"{LWS}group-index": "0"}
    asks = {"nvidia.com/gpu": 2}
    pods = [pod(f"g-{i}", asks=asks, labels=labels, annotations=marks) for i in range(2)]
    busy = [pod(f"b{i}", f"n{i}", asks=asks) for i in range(2)]
    with Engine() as engine:
        live = LiveScheduler(engine, named_policy("topo-aware-p"), overcommits=False)
        live.follow(read(node("n0"), node("n1"), *pods, *busy))
        plan = live.decide(5.0, threading.Event(), deterministic=True)
    assert [(one.job, one.reason) for one in plan.unplaced] == [("default/g-0", "postponed")]
    assert "24/1000" in plan.unplaced[0].detail
    assert live.fired["postpone utility: waits"] == 1
