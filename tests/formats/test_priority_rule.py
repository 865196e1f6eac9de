"""What priorities and classes of Slurm and Kubernetes decide: values, and what may be done to running jobs."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers import kubernetes_objects as k8s
from helpers import slurm_files as slurm
from placeopt import BadInput, Instance, solve, violations
from placeopt.formats import (
    DEFAULT_RULE,
    KubernetesObjects,
    PriorityRule,
    SlurmObjects,
    read_kubernetes,
    read_slurm,
)
from placeopt.model import MAX_VALUE, Changes

REAL = Path(__file__).parent.parent / "data" / "snapshots" / "slurm-22.05"
LISTS = (REAL / "nodes.json.gz", REAL / "jobs.json.gz", REAL / "topology.conf")


def flags(instance: Instance) -> dict[str, tuple[bool, bool]]:
    """Whether each running job is movable, and preemptible."""
    return {held.job: (held.movable, held.preemptible) for held in instance.running}


def preemptible(instance: Instance) -> list[str]:
    return [job for job, (_, may) in flags(instance).items() if may]


class TestValue:
    """The value of a GPU."""

    def test_by_hand(self) -> None:
        """1000 x 1.25 ^ (binary digits), rounded down."""
        worth = [DEFAULT_RULE.gpu_value(priority, ()) for priority in (-4, -1, 0, 1, 2, 3, 4, 100, 1000)]
        assert worth == [512, 800, 1000, 1250, 1562, 1562, 1953, 4768, 9313]

    def test_it_never_falls_as_priority_grows(self) -> None:
        """Over the whole range of Kubernetes and Slurm; never below 1."""
        priorities = sorted({sign * 2**k + d for sign in (-1, 1) for k in range(33) for d in (-1, 0, 1)})
        worth = [DEFAULT_RULE.gpu_value(priority, ()) for priority in priorities]
        assert worth == sorted(worth)
        assert min(worth) >= 1

    def test_classes_come_first(self) -> None:
        """The first class that the rule names; where it names none, the priority."""
        rule = PriorityRule(value_per_gpu_of={"urgent": 7000, "scav": 10}, percent_per_doubling=0)
        assert [rule.gpu_value(9, names) for names in (["urgent", "scav"], ["", "scav"], [])] == [7000, 10, 1000]

    def test_jobs(self) -> None:
        """By GPUs; one without GPUs in proportion, at least 1; at most what a job can be worth."""
        assert [DEFAULT_RULE.value(gpus, 9313) for gpus in (2, 1, 0)] == [18_626, 9313, 9]
        assert DEFAULT_RULE.value(0, 100) == 1
        assert DEFAULT_RULE.value(5000, 900_000) == MAX_VALUE

    def test_a_job_of_higher_priority_gets_the_gpu(self, tmp_path: Path) -> None:
        """Of two that are alike otherwise, whichever stands first; a flat rule values both alike."""
        for order in ((0, 1000), (1000, 0)):
            pods = [k8s.pod(f"p{priority}", priority=priority) for priority in order]
            found = k8s.read(tmp_path, k8s.node(gpus="1"), *pods)
            assert [placed.job for placed in solve(found, time_limit_s=5).placements] == ["default/p1000"]
        flat = k8s.read(tmp_path, k8s.node(gpus="1"), *pods, rule=PriorityRule(percent_per_doubling=0))
        assert {job.options[0].value for job in flat.jobs} == {1000}

    def test_qos_before_partition(self, tmp_path: Path) -> None:
        """Slurm names both."""
        rule = {"value_per_gpu_of": {"urgent": 5000, "gpu": 300}}
        (tmp_path / "rule.json").write_text(json.dumps(rule))
        slurm.read(tmp_path, slurm.WAITS | {"tres_per_node": "gres:gpu:2", "qos": "urgent"}, slurm.RUNS)
        found = read_slurm(tmp_path / "n.json", tmp_path / "j.json", rule=tmp_path / "rule.json")
        assert {job.id: job.options[0].value for job in found.jobs} == {"2": 10_000, "1": 1}

    def test_gangs_with_a_minimum(self, tmp_path: Path) -> None:
        """The value of the minimum, and that of each worker above."""
        groups = [{"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 2}}]
        labels = {"scheduling.x-k8s.io/pod-group": "g"}
        pods = [k8s.pod(f"g{i}", labels=labels, priority=1, priorityClassName="low") for i in range(3)]
        option = k8s.read(tmp_path, k8s.node(), *pods, *groups).jobs[0].options[0]
        assert (option.value, option.value_per_extra_worker) == (2500, 1250)
        rule = PriorityRule(value_per_gpu_of={"low": 10})
        option = k8s.read(tmp_path, k8s.node(), *pods, *groups, rule=rule).jobs[0].options[0]
        assert (option.value, option.value_per_extra_worker) == (20, 10)

    def test_a_file_that_is_no_rule(self, tmp_path: Path) -> None:
        """Names the field."""
        (tmp_path / "r.json").write_text('{"value_per_gpu": 0}')
        with pytest.raises(BadInput, match=r"r\.json: value_per_gpu: 0, expected at least 1"):
            read_kubernetes([k8s.node()], rule=tmp_path / "r.json")


CONF = """
PreemptType=preempt/partition_prio
PreemptMode={mode}
PartitionName=DEFAULT PriorityTier=5
PartitionName=gpu Nodes=ALL \\
  PriorityTier=10  # PreemptMode=OFF
PartitionName=scav PriorityTier=1{own}
NodeName=x PriorityTier=99
"""
SHOWN = """PartitionName=gpu
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   PriorityJobFactor=1 PriorityTier=10 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=REQUEUE

PartitionName=scav
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=REQUEUE
"""
CONFIG = "Configuration data as of 2026-11-22T02:41:55\nPreemptMode             = OFF\nPreemptType             = {}\n"


class TestSlurm:
    """Preemption by Slurm's settings, and marks in comments."""

    def test_the_real_cluster(self) -> None:
        """Its scavenger partition shares nodes with one of a higher tier; of its jobs one runs."""
        assert preemptible(read_slurm(*LISTS)) == []
        found = read_slurm(*LISTS, preemption=[REAL / "slurm.conf"])
        assert preemptible(found) == ["19"]
        off = PriorityRule(preemptible={"scav": False, "cpu": True})
        assert preemptible(read_slurm(*LISTS, preemption=[REAL / "slurm.conf"], rule=off)) == ["17"]

    @pytest.mark.parametrize(
        ("mode", "own", "job", "may"),
        [
            ("REQUEUE", "", {}, True),
            ("CANCEL", "", {}, True),
            ("GANG,SUSPEND", "", {}, False),
            ("OFF", "", {}, False),
            ("OFF", " PreemptMode=requeue", {}, True),
            ("REQUEUE", " PreemptMode=OFF", {}, False),
            ("REQUEUE", "", {"requeue": False}, False),
            ("REQUEUE", "", {"partition": "gpu"}, False),
            ("REQUEUE", "", {"partition": "other"}, False),
        ],
    )
    def test_by_partition(self, tmp_path: Path, mode: str, own: str, job: dict[str, Any], may: bool) -> None:
        """The partition's mode before the cluster's; a job that may not be requeued keeps its place."""
        (tmp_path / "slurm.conf").write_text(CONF.format(mode=mode, own=own))
        runs = slurm.RUNS | {"partition": "scav"} | job
        slurm.read(tmp_path, runs, partitions=["gpu", "scav"])
        given = (tmp_path / "n.json", tmp_path / "j.json")
        assert preemptible(read_slurm(*given, preemption=[tmp_path / "slurm.conf"])) == ["1"] * may
        single = SlurmObjects(given[0], preemption=[tmp_path / "slurm.conf"])
        assert single.flags(runs) == {"1": {"movable": False, "preemptible": may}}
        slurm.read(tmp_path, runs, partitions=["scav"])  # no partition of a higher tier has the node
        assert preemptible(read_slurm(*given, preemption=[tmp_path / "slurm.conf"])) == []

    def test_as_scontrol_prints_it(self, tmp_path: Path) -> None:
        """Several lines a partition; the cluster's settings in a file of their own, or missing."""
        (tmp_path / "partitions.txt").write_text(SHOWN)
        (tmp_path / "config.txt").write_text(CONFIG.format("preempt/partition_prio"))
        slurm.read(tmp_path, slurm.RUNS | {"partition": "scav"}, partitions=["gpu", "scav"])
        given = (tmp_path / "n.json", tmp_path / "j.json")
        both = [tmp_path / "config.txt", tmp_path / "partitions.txt"]
        assert preemptible(read_slurm(*given, preemption=both)) == ["1"]
        assert preemptible(read_slurm(*given, preemption=both[1:])) == []

    def test_by_qos(self, tmp_path: Path) -> None:
        """Those that another QOS may preempt; the mode of the QOS before the cluster's."""
        (tmp_path / "config.txt").write_text(CONFIG.format("preempt/qos"))
        (tmp_path / "qos.txt").write_text(
            "Name|Preempt|PreemptMode\nnormal|low,idle|cluster\nlow||requeue\nidle||cluster\n"
        )
        jobs = [slurm.RUNS | {"job_id": i, "qos": qos} for i, qos in enumerate(("normal", "low", "idle", ""), start=1)]
        slurm.read(tmp_path, *jobs)
        both = [tmp_path / "qos.txt", tmp_path / "config.txt"]
        assert preemptible(read_slurm(tmp_path / "n.json", tmp_path / "j.json", preemption=both)) == ["2"]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("nothing here", "no KEY=VALUE"),
            ("User|Account\na|b", "expected Name and Preempt"),
            ("PartitionName=a PriorityTier=x", "PriorityTier of partition 'a': 'x', expected a number"),
        ],
    )
    def test_other_files_are_refused(self, tmp_path: Path, text: str, words: str) -> None:
        (tmp_path / "odd.txt").write_text(text)
        with pytest.raises(BadInput, match=words):
            read_slurm(*LISTS, preemption=[tmp_path / "odd.txt"])

    @pytest.mark.parametrize(
        ("fields", "found"),
        [
            ({"comment": "placeopt.movable"}, (True, False)),
            ({"admin_comment": "team=a placeopt.movable=true,placeopt.preemptible"}, (True, True)),
            ({"comment": "placeopt.movable=false"}, (False, False)),
            (
                {"comment": "a=b; placeopt.movable, placeopt.x=1 placeopt.io/preemptible noplaceopt.preemptible"},
                (True, False),
            ),
            ({"comment": "placeopt round=7; placeopt.moveable"}, (False, False)),
            ({"comment": "placeopt.movable=yes placeopt.preemptible"}, (False, False)),
            ({"comment": "placeopt.movable", "tres_alloc_str": "cpu=8,node=1,gres/shard=1"}, (False, False)),
        ],
    )
    def test_by_comment(self, tmp_path: Path, fields: dict[str, Any], found: tuple[bool, bool]) -> None:
        """A word that cannot be read, or a job that holds what cannot be read: it keeps everything."""
        instance = slurm.read(tmp_path, slurm.RUNS | fields)
        assert flags(instance) == {"1": found}
        assert ("Kept as running, mark movable is neither true nor false" in instance.note) == (
            "yes" in fields.get("comment", "")
        )

    def test_parts_of_a_job_stay(self) -> None:
        """A job that holds different amounts on its nodes is several: none can be moved alone."""
        nodes, jobs = (json.loads((slurm.DATA / f"slurm_{kind}.json").read_text()) for kind in ("nodes", "jobs"))
        for job in jobs["jobs"]:
            job["comment"] = "placeopt.movable"
        movable = {name for name, (may, _) in flags(read_slurm(nodes, jobs)).items() if may}
        assert movable == {"501", "502", "503", "504", "505"}
        four = next(job for job in jobs["jobs"] if job["job_id"] == 504)
        four |= {"gres_detail": ["gpu:1(IDX:0)", "gpu:a100:2(IDX:0-1)"]}
        parts = flags(read_slurm(nodes, jobs))
        assert (parts["504"], parts["504+1"]) == ((False, False), (False, False))


class TestKubernetes:
    """Preemption by priority and class, and marks in annotations."""

    def test_below_the_bar(self, tmp_path: Path) -> None:
        """That of the cluster autoscaler, or another; a class whatever the priority."""
        pods = [k8s.pod(f"p{priority}", "n", priority=priority) for priority in (0, -10, -11)]
        pods.append(k8s.pod("c", "n", priorityClassName="batch"))
        items = (k8s.node(), *pods)
        assert preemptible(k8s.read(tmp_path, *items)) == ["default/p-11"]
        bar = PriorityRule(preemptible_below=0, preemptible={"batch": True})
        assert preemptible(k8s.read(tmp_path, *items, rule=bar)) == ["default/p-10", "default/p-11", "default/c"]
        reader = KubernetesObjects(list(items), rule=bar)
        assert reader.flags(pods[3]) == {"default/c": {"movable": False, "preemptible": True}}
        assert reader.flags(k8s.pod("w")) == {}

    def test_annotations(self, tmp_path: Path) -> None:
        """Of all pods of a gang; a word that is neither true nor false takes both away."""
        yes = {"annotations": {"placeopt.io/movable": "true"}}
        gang = {"labels": {"kueue.x-k8s.io/pod-group-name": "g"}}
        mixed = {"labels": {"kueue.x-k8s.io/pod-group-name": "h"}}
        odd = {"annotations": {"placeopt.io/movable": "true", "placeopt.io/preemptible": ""}}
        found = k8s.read(
            tmp_path,
            k8s.node(gpus="8"),
            k8s.pod("a", "n", **yes),
            k8s.pod("g0", "n", **gang, **yes),
            k8s.pod("g1", "n", **gang, **yes),
            k8s.pod("h0", "n", **mixed, **yes),
            k8s.pod("h1", "n", **mixed),
            k8s.pod("odd", "n", priority=-99, **odd),
            k8s.pod("no", "n", priority=-99, annotations={"placeopt.io/preemptible": "false"}),
        )
        assert flags(found) == {
            "default/a": (True, False),
            "default/g": (True, False),
            "default/h": (False, False),
            "default/odd": (False, False),
            "default/no": (False, False),
        }
        assert "mark preemptible is neither true nor false" in found.note

    def test_what_others_depend_on_keeps_its_place(self, tmp_path: Path) -> None:
        """A part of a gang; a pod to which the affinity of another refers; one whose GPUs cannot be read."""
        low: dict[str, Any] = {"priority": -99}
        group = {"labels": {"kueue.x-k8s.io/pod-group-name": "g"}}
        found = k8s.read(
            tmp_path,
            k8s.node(),
            k8s.node("m"),
            k8s.pod("g0", "n", **group, **low),
            k8s.pod("g1", **group, **low),
            k8s.pod("base", "n", labels={"app": "base"}, **low),
            k8s.pod("near", affinity=k8s.near(k8s.term({"app": "base"})), **low),
            k8s.pod("odd", "m", asks={"nvidia.com/gpu.shared": "1"}, **low),
        )
        assert preemptible(found) == []

    def test_pods_that_preempt_nobody_are_named(self, tmp_path: Path) -> None:
        """The round has no such rule: the note says so, where it matters."""
        never = k8s.pod("w", preemptionPolicy="Never")
        low = k8s.pod("low", "n", priority=-99)
        assert "preemptionPolicy Never" in k8s.read(tmp_path, k8s.node(), never, low).note
        assert "preemptionPolicy" not in k8s.read(tmp_path, k8s.node(), never).note
        assert "preemptionPolicy" not in k8s.read(tmp_path, k8s.node(), k8s.pod("w"), low).note


def test_a_round_preempts_what_may_be(tmp_path: Path) -> None:
    """A waiting pod takes the place of an expendable one, where the policy allows it; the referee accepts it."""
    items = (k8s.node(gpus="1"), k8s.pod("low", "n", priority=-99), k8s.pod("high", priority=1000))
    found = k8s.read(tmp_path, *items)
    policy = found.policy.model_copy(update={"changes": Changes(preemptions_max=1)})
    plan = solve(found, policy=policy, time_limit_s=5)
    assert [entry.job for entry in plan.preempted] == ["default/low"]
    assert violations(found, plan) == []
    kept = k8s.read(tmp_path, *items, rule=PriorityRule(preemptible_below=-1000))
    assert not solve(kept, policy=policy, time_limit_s=5).preempted
