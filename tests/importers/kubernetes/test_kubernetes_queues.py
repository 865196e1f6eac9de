"""Queues of Kueue, KAI, Volcano and YuniKorn: what their jobs may hold."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from helpers.imported_rounds import notes_of
from helpers.kubernetes_objects import node, pod, read
from helpers.night import seeds
from helpers.solved import planned
from placeopt.model import Instance

GPU, QUEUE = "nvidia.com/gpu", "kueue.x-k8s.io/queue-name"


def flavor(name: str, gpus: Any, **limits: Any) -> dict[str, Any]:
    stated = {f"{key}Limit": str(amount) for key, amount in limits.items() if amount is not None}
    return {"name": name, "resources": [{"name": GPU, "nominalQuota": str(gpus), **stated}]}


def cluster_queue(name: str, *flavors: dict[str, Any], cohort: str | None = None, **spec: Any) -> dict[str, Any]:
    groups = [{"coveredResources": [GPU], "flavors": list(flavors)}] if flavors else []
    spec = {"resourceGroups": groups, "cohortName": cohort, **spec}
    return {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def cohort(name: str, *flavors: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
    groups = [{"coveredResources": [GPU], "flavors": list(flavors)}] if flavors else []
    return {"kind": "Cohort", "metadata": {"name": name}, "spec": {"resourceGroups": groups, "parentName": parent}}


def local(name: str, queue: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "LocalQueue", "metadata": {"name": name}, "spec": {"clusterQueue": queue, **spec}}


def resource_flavor(name: str, **labels: str) -> dict[str, Any]:
    return {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {"nodeLabels": labels}}


def job(name: str, queue: str, at: str | None = None, gpus: int = 1) -> dict[str, Any]:
    """A pod without CPU and memory, so that GPUs alone count."""
    return pod(name, at, labels={QUEUE: queue}, asks={GPU: str(gpus)})


def started(found: Instance) -> list[str]:
    plan = planned(found)
    assert plan.status == "optimal"
    return sorted(placement.job.removeprefix("default/") for placement in plan.placements)


def test_a_queue_holds_its_quota() -> None:
    """In no cohort, it borrows nothing; what no group of it covers, its jobs may not ask for."""
    listed = [node(gpus="8"), cluster_queue("q", flavor("f", 2)), local("a", "q"), resource_flavor("f")]
    jobs = [job(f"p{i}", "a") for i in range(4)]
    assert len(started(read(*listed, *jobs))) == 2
    assert started(read(*listed, *jobs, job("r", "a", "n", gpus=2))) == ["r"]
    hungry = pod("c", labels={QUEUE: "a"}, asks={GPU: "1", "cpu": "1"})
    assert started(read(*listed, hungry)) == []


@pytest.mark.parametrize(
    ("b", "most"), [({}, 8), ({"lending": 1}, 5), ({"lending": 0}, 4), ({"borrowing": 1}, 8)], ids=str
)
def test_what_a_cohort_lends(b: dict[str, Any], most: int) -> None:
    queues = [cluster_queue("a", flavor("f", 4), cohort="c"), cluster_queue("b", flavor("f", 4, **b), cohort="c")]
    listed = [node(gpus="16"), *queues, local("a", "a"), resource_flavor("f")]
    assert len(started(read(*listed, *[job(f"p{i}", "a") for i in range(10)]))) == most


def test_cohort_of_four() -> None:
    """Kueue #5289: two queues of 2 that may borrow 2 hold 4 together, not 8."""
    queues = [cluster_queue(name, flavor("f", 2, borrowing=2), cohort="c") for name in "ab"]
    listed = [node(gpus="16"), *queues, local("a", "a"), local("b", "b"), resource_flavor("f")]
    jobs = [job(f"{queue}{i}", queue) for queue in "ab" for i in range(4)]
    assert len(started(read(*listed, *jobs))) == 4


def test_quotas_by_flavor() -> None:
    """Nodes of no flavor of a queue are closed to it; a group without the flavor's label is none of its nodes."""
    queue = cluster_queue("q", flavor("h", 1), flavor("a", 2))
    nodes = [node("h", "8", labels={"gpu": "h100"}), node("a", "8", labels={"gpu": "a100"}), node("x", "8")]
    kinds = [resource_flavor("h", gpu="h100"), resource_flavor("a", gpu="a100")]
    found = read(*nodes, queue, *kinds, local("a", "q"), *[job(f"p{i}", "a") for i in range(6)])
    plan = planned(found)
    held = sorted(assignment.node for placement in plan.placements for assignment in placement.assignments)
    assert held == ["a", "a", "h"]


def test_flavors_that_share_nodes_are_summed() -> None:
    queue = cluster_queue("q", flavor("spot", 1), flavor("all", 2))
    kinds = [resource_flavor("spot", pool="spot"), resource_flavor("all")]
    nodes = [node("s", "8", labels={"pool": "spot"}), node("x", "8")]
    found = read(*nodes, queue, *kinds, local("a", "q"), *[job(f"p{i}", "a") for i in range(6)])
    assert len(started(found)) == 3
    assert "sums over flavors" in notes_of(found)


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        ([cluster_queue("q", flavor("f", 8)), local("b", "q")], "of a queue that is not listed"),
        ([cluster_queue("q", flavor("f", "many")), local("a", "q")], "of a queue that is not listed"),
        ([cluster_queue("q", flavor("f", 8), stopPolicy="Hold"), local("a", "q")], "of a queue that is stopped"),
        (
            [cluster_queue("q", flavor("f", 8)), local("a", "q", stopPolicy="HoldAndDrain")],
            "of a queue that is stopped",
        ),
    ],
    ids=["local", "unreadable", "held", "drained"],
)
def test_jobs_of_queues_that_start_nothing(listed: list[Any], reason: str) -> None:
    other = [cluster_queue("other", flavor("f", 1)), local("o", "other")]
    found = read(node(gpus="8"), *other, *listed, job("p", "a"), job("r", "a", "n"), job("o", "o"))
    assert {one.id for one in found.jobs} == {"default/r", "default/o"}
    assert reason in notes_of(found)


def test_cohorts_in_a_circle() -> None:
    queues = [cluster_queue("q", flavor("f", 2), cohort="a"), cohort("a", parent="b"), cohort("b", parent="a")]
    found = read(node(gpus="8"), *queues, local("a", "q"), job("p", "a"))
    assert started(found) == ["p"]
    assert "form a circle" in notes_of(found)


class Kueue:
    """Its rule: what a queue or cohort has available, by its lending and borrowing limits."""

    def __init__(self, nominal: dict[str, int], parent: dict[str, str | None], lend: Any, borrow: Any) -> None:
        self.nominal, self.parent, self.lend, self.borrow = nominal, parent, lend, borrow

    def below(self, name: str) -> list[str]:
        return [one for one, above in self.parent.items() if above == name]

    def quota(self, name: str) -> int:
        return self.nominal[name] + sum(self.quota(one) - self.kept(one) for one in self.below(name))

    def kept(self, name: str) -> int:
        return 0 if self.lend[name] is None else max(0, self.quota(name) - self.lend[name])

    def used(self, name: str, held: dict[str, int]) -> int:
        return held.get(name, 0) + sum(max(0, self.used(one, held) - self.kept(one)) for one in self.below(name))

    def available(self, name: str, held: dict[str, int]) -> int:
        above, used = self.parent[name], self.used(name, held)
        if above is None:
            return self.quota(name) - used
        there = self.available(above, held)
        if self.borrow[name] is not None:
            lent = self.quota(name) - self.kept(name) - max(0, used - self.kept(name))
            there = min(there, lent + self.borrow[name])
        return max(0, self.kept(name) - used) + there


@pytest.mark.parametrize("seed", seeds(40))
def test_trees_of_cohorts_as_kueue_counts(seed: int) -> None:
    """A job starts exactly where Kueue's own rule has as many GPUs available for its queue, whatever runs."""
    draw = Random(seed)
    cohorts = ["x", "y", "z"]
    parent: dict[str, str | None] = {"x": None, "y": draw.choice(["x", None]), "z": draw.choice(["x", "y"])}
    parent |= {name: draw.choice(cohorts) for name in "abcd"}
    nominal = {name: draw.randint(0, 3) for name in parent}
    lend, borrow = ({name: draw.choice([None, 0, 1, 2]) for name in parent} for _ in range(2))
    for root in (name for name in parent if parent[name] is None):
        lend[root] = borrow[root] = None
    kueue = Kueue(nominal, parent, lend, borrow)
    quotas = {name: flavor("f", nominal[name], lending=lend[name], borrowing=borrow[name]) for name in parent}
    listed = [cluster_queue(name, quotas[name], cohort=parent[name]) for name in "abcd"]
    listed += [cohort(name, quotas[name], parent=parent[name]) for name in cohorts]
    listed += [resource_flavor("f"), node("n", "64"), *(local(name, name) for name in "abcd")]
    held: dict[str, int] = {}
    for _ in range(6):  # what runs got there by the rule
        name = draw.choice("abcd")
        if kueue.available(name, held) > 0:
            held[name] = held.get(name, 0) + 1
    running = [job(f"r{name}{i}", name, "n") for name, count in held.items() for i in range(count)]
    for name in "abcd":
        most = kueue.available(name, held)
        for gpus in {max(1, most), most + 1}:
            found = read(*listed, *running, job("w", name, gpus=gpus))
            assert ("w" in started(found)) == (gpus <= most), (name, gpus, most)


def kai(name: str, parent: str | None = None, **gpu: float) -> dict[str, Any]:
    unlimited = {"quota": -1, "limit": -1}
    resources = {"gpu": gpu, "cpu": unlimited, "memory": unlimited}
    spec = {"parentQueue": parent, "resources": resources}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def volcano(name: str, parent: str | None = None, **spec: Any) -> dict[str, Any]:
    spec = {"parent": parent, **spec}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def test_queues_of_kai() -> None:
    """The limit holds, the quota is what a queue is due of it; -1: no limit; and the parent bounds both together."""
    queues = [
        kai("top", quota=4, limit=5),
        kai("a", "top", quota=2, limit=3, overQuotaWeight=2),
        kai("b", "top", limit=-1),
    ]
    pods = [pod(f"{name}{i}", labels={"kai.scheduler/queue": name}) for name in "ab" for i in range(5)]
    found = read(node(gpus="16"), *queues, *pods)
    names = started(found)
    assert (len(names), sum(name[0] == "a" for name in names) <= 3) == (5, True)
    assert [(queue.id, queue.parent, queue.weight, queue.quota.gpu_milli) for queue in found.policy.queues] == [
        ("top", None, 1, 4000),
        ("a", "top", 2, 2000),
        ("b", "top", 1, None),
    ]


def test_queues_of_volcano() -> None:
    """A pod's queue is that of its PodGroup; a closed queue starts nothing."""
    queues = [
        volcano("root"),
        volcano("top", "root", capability={GPU: "3"}),
        volcano("a", "top", weight=3, capability={GPU: "2", "cpu": "8"}, deserved={GPU: "1"}),
        volcano("b", "top"),
        {**volcano("c"), "status": {"state": "Closed"}},
    ]
    items: list[Any] = [node(gpus="16"), *queues]
    for name in "abc":
        for i in range(4):
            group = {"kind": "PodGroup", "metadata": {"name": f"{name}{i}"}, "spec": {"minMember": 1, "queue": name}}
            items += [group, pod(f"{name}{i}", annotations={"scheduling.k8s.io/group-name": f"{name}{i}"})]
    found = read(*items)
    names = started(found)
    assert (len(names), sum(name[0] == "a" for name in names) <= 2) == (3, True)
    assert "Not eligible, of a queue that is stopped: 4" in notes_of(found)


def yunikorn(partition: str, name: str = "yunikorn-configs") -> dict[str, Any]:
    """The configuration of YuniKorn, with the queues of its one partition."""
    lines = "".join(f"    {line}\n" for line in partition.strip("\n").split("\n"))
    text = f"partitions:\n  - name: default\n{lines}"
    return {"kind": "ConfigMap", "metadata": {"name": name}, "data": {"queues.yaml": text}}


def test_a_queue_at_the_top_has_none_above_it() -> None:
    """Of Volcano and KAI: nothing is amiss then."""
    found = read(node(), volcano("v", capability={GPU: 1}), kai("k", limit=1))
    assert [queue.parent for queue in found.policy.queues] == [None, None]
    assert "Queues above others" not in notes_of(found)


ML = """
queues:
  - name: root
    submitacl: '*'
    queues:
      - name: ml
        resources:
          guaranteed: {nvidia.com/gpu: 2}
          max: {nvidia.com/gpu: 5, vcore: 8, memory: 64Gi, pods: 10}
        queues:
          - name: train
            resources:
              max: {nvidia.com/gpu: 4}
          - name: serve
      - name: dev
        resources:
          max: {vcore: 1500m}
"""


def of_yunikorn(name: str, queue: str | None, gpus: int = 1, **more: Any) -> dict[str, Any]:
    marks = {} if queue is None else {"labels": {"yunikorn.apache.org/queue": queue}}
    return pod(name, **{"asks": {GPU: str(gpus)}, "schedulerName": "yunikorn", **marks, **more})


def test_queues_of_yunikorn_are_a_tree() -> None:
    """Its limits hold for all queues below; what is guaranteed is the quota, the rest is borrowed."""
    found = read(node(gpus="16"), yunikorn(ML), *(of_yunikorn(f"p{i}", "root.ml.train") for i in range(6)))
    by_id = {queue.id: queue for queue in found.policy.queues}
    assert {name: queue.parent for name, queue in by_id.items()} == {
        "root": None,
        "root.ml": "root",
        "root.ml.train": "root.ml",
        "root.ml.serve": "root.ml",
        "root.dev": "root",
    }
    ml = by_id["root.ml"]
    assert (ml.quota.gpu_milli, ml.borrow.gpu_milli) == (2000, 3000)
    assert (ml.most("cpu_millicores"), ml.most("memory_mib")) == (8000, 65536)
    assert by_id["root.dev"].most("cpu_millicores") == 1500
    assert "Quotas of other resources are not read: pods." in notes_of(found)
    assert len(started(found)) == 4


@pytest.mark.parametrize(
    ("most", "names"),
    [
        (5, ["root.ml.train", "root.ml.serve"]),  # 4 of the one, 5 together
        (5, ["ml.train", "ml.serve"]),  # below the root, where nothing else is said
        (8, [None]),  # a pod without a queue: that of its namespace, which rules make, has no limit
        (8, ["root.ml.late"]),  # the rule of the provided queue may make none, that of the namespace may
    ],
)
def test_rules_name_the_queues_of_pods(most: int, names: list[str | None]) -> None:
    rules = "placementrules: [{name: provided}, {name: tag, value: namespace, create: true}]"
    jobs = [of_yunikorn(f"p{i}-{k}", name) for i in range(8 // len(names)) for k, name in enumerate(names)]
    assert len(started(read(node(gpus="8"), yunikorn(rules + ML), *jobs))) == most


@pytest.mark.parametrize(
    ("most", "rules", "more"),
    [
        (5, "[{name: provided, create: true}]", {"queue": "root.ml.made"}),  # those above bound what is made
        (5, "[{name: fixed, value: root.ml.serve}]", {"queue": "root.dev"}),  # whatever the pod states
        (3, "[{name: tag, value: namespace, create: true}]", {"queue": "root.ml"}),  # the annotation of its namespace
        (0, "[{name: provided}]", {"queue": "root.nobody"}),  # refused, as YuniKorn does
        (5, "[]", {"queue": None, "labels": {"queue": "root.ml.serve"}}),  # the former label
        (5, "[]", {"queue": None, "annotations": {"yunikorn.apache.org/queue": "root.ml.serve"}}),
        (8, "[{name: fixed, value: root.ml}]", {"queue": None, "schedulerName": "default-scheduler"}),
        (8, "[{name: user}]", {"queue": None}),  # not read: the note says so
    ],
)
def test_other_rules(most: int, rules: str, more: dict[str, Any]) -> None:
    quota = {"yunikorn.apache.org/namespace.quota": '{"nvidia.com/gpu": "3", "cpu": "64"}'}
    space = {"kind": "Namespace", "metadata": {"name": "default", "annotations": quota}}
    jobs = [of_yunikorn(f"p{i}", **more) for i in range(8)]
    found = read(node(gpus="8"), space, yunikorn(f"placementrules: {rules}{ML}"), *jobs)
    assert len(started(found)) == most
    assert ("Queues of YuniKorn cannot be read" in notes_of(found)) == ("user" in rules)


def test_a_configuration_of_yunikorn_that_cannot_be_read() -> None:
    """Nothing is guessed; the default map counts where the other states no queues."""
    jobs = [of_yunikorn(f"p{i}", "root.ml.train") for i in range(6)]
    for broken in ("queues: [", "queues: 5", "queues: [{name: a, resources: {max: {vcore: x}}}]", "queues: [{}]"):
        found = read(node(gpus="8"), yunikorn(broken), *jobs)
        assert "Queues of YuniKorn cannot be read" in notes_of(found)
        assert found.policy.queues == ()
    bare = {"kind": "ConfigMap", "metadata": {"name": "yunikorn-configs"}, "data": {"log.level": "INFO"}}
    assert len(started(read(node(gpus="8"), bare, yunikorn(ML, "yunikorn-defaults"), *jobs))) == 4
