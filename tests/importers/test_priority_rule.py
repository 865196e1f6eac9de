"""What priorities and classes of Slurm and Kubernetes decide: values, and what may be done to running jobs."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from helpers import slurm_files as slurm
from helpers.imported_rounds import notes_of
from helpers.kubernetes_objects import near, node, pod, read, term
from placeopt import BadInput, Instance, solve, violations
from placeopt.importers import DEFAULT_RULE, PriorityRule, read_kubernetes, read_slurm
from placeopt.model import MAX_VALUE, Changes, Job

REAL = Path(__file__).parent.parent / "data" / "snapshots" / "slurm-22.05"
LISTS = (REAL / "nodes.json.gz", REAL / "jobs.json.gz", REAL / "topology.conf")
KUEUE = "kueue.x-k8s.io/pod-group-name"


def flags(instance: Instance) -> dict[str, tuple[bool, bool]]:
    """Whether each running job is movable, and preemptible."""
    return {held.job: (held.movable, held.preemptible) for held in instance.running}


def preemptible(instance: Instance) -> list[str]:
    return [job for job, (_, may) in flags(instance).items() if may]


def write(folder: Path, **texts: str) -> list[Path]:
    """Write files, named without their ending."""
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [folder / name for name in texts]


class TestStated:
    """What owners state of their jobs."""

    STATED: ClassVar = {
        "kind": "inference",
        "profile": "resnet50",
        "gpu_utilisation_percent": "43",
        "gpu_memory_mib": "3000",
        "run_time_ms": "60000",
        "utility_min_thousandths": "300",
        "communication_weight": "4",
    }  # fmt: skip

    LABELS: ClassVar = {"nvidia.com/gpu.memory": "16384", "nvidia.com/gpu.count": "4", "nvidia.com/gpu.product": "T4"}

    @staticmethod
    def said(job: Job) -> dict[str, str]:
        """The same marks as a job has them."""
        (option,) = job.options
        fields = {**dict(option.demand), **dict(option), **dict(job), "communication_weight": job.communication.weight}
        return {name: str(fields[name]) for name in TestStated.STATED}

    def test_annotations_of_a_pod_and_of_a_gang(self) -> None:
        """Waiting or running; a gang states it on any of its pods."""
        marks = {f"placeopt.io/{name}": value for name, value in self.STATED.items()}
        total, group = {"kueue.x-k8s.io/pod-group-total-count": "2"}, {KUEUE: "g"}
        found = read(
            node(labels=self.LABELS),
            pod("waits", annotations=marks),
            pod("runs", "n", annotations=marks),
            pod("a", annotations=total | marks, labels=group),
            pod("b", annotations=total, labels=group),
        )
        assert len(found.jobs) == 3
        for job in found.jobs:
            assert self.said(job) == self.STATED

    def test_words_of_a_comment(self) -> None:
        words = " ".join(f"placeopt.{name}={value}" for name, value in self.STATED.items())
        found = slurm.read(slurm.WAITS | {"comment": words})
        assert self.said(found.jobs[0]) == {**self.STATED, "gpu_memory_mib": "0"}  # no list of Slurm states a GPU's

    @pytest.mark.parametrize(
        "mark", [("kind", "odd"), ("gpu_memory_mib", "much"), ("run_time_ms", "-1"), ("kind", "cpu")]
    )
    def test_what_cannot_be_read(self, mark: tuple[str, str]) -> None:
        """It leaves a waiting job out; a running one is as its host lists it."""
        annotations = {f"placeopt.io/{mark[0]}": mark[1]}
        found = read(node(), pod("waits", annotations=annotations), pod("runs", "n", annotations=annotations))
        assert [(job.id, job.kind) for job in found.jobs] == [("default/runs", "training")]
        assert {(note.kind, note.names) for note in found.reading if note.names} == {
            ("left out", ("default/waits",)),
            ("kept as running", ("default/runs",)),
        }

    def test_a_word_that_cannot_be_read(self) -> None:
        words = {"comment": "placeopt.kind=odd"}
        listed = slurm.read(slurm.WAITS | words, slurm.RUNS | words)
        assert [held.job for held in listed.running] == [job.id for job in listed.jobs]
        assert {note.kind for note in listed.reading if note.names} >= {"left out", "kept as running"}

    def test_memory_counts_where_all_gpus_state_theirs(self) -> None:
        """Nodes label it where GPU feature discovery runs; without it no GPU would take a job that asks for some."""
        asks = pod("waits", annotations={"placeopt.io/gpu_memory_mib": "3000"})
        for stated, mib in (({}, 0), (self.LABELS, 3000)):
            found = read(node(labels=stated), asks)
            assert found.jobs[0].options[0].demand.gpu_memory_mib == mib
            assert len(solve(found, time_limit_s=2).placements) == 1

    def test_pods_of_a_gang_agree(self) -> None:
        total = {"kueue.x-k8s.io/pod-group-total-count": "2"}
        pods = [
            pod(name, annotations=total | {"placeopt.io/profile": name}, labels={KUEUE: "g"}) for name in ("a", "b")
        ]
        (note,) = [note for note in read(node(), *pods).reading if note.names]
        assert "different values of its mark profile" in note.reason


class TestValue:
    """The value of a GPU."""

    def test_by_hand(self) -> None:
        """1000 x 1.25 ^ (binary digits), rounded down; of a job by GPUs, without any in proportion and at least 1."""
        worth = [DEFAULT_RULE.gpu_value(priority, ()) for priority in (-4, -1, 0, 1, 2, 3, 4, 100, 1000)]
        assert worth == [512, 800, 1000, 1250, 1562, 1562, 1953, 4768, 9313]
        assert [DEFAULT_RULE.value(gpus, 9313) for gpus in (2, 1, 0)] == [18_626, 9313, 9]
        assert DEFAULT_RULE.value(0, 100) == 1
        assert DEFAULT_RULE.value(5000, 900_000) == MAX_VALUE

    def test_it_never_falls_as_priority_grows(self) -> None:
        """Over the whole range of Kubernetes and Slurm; never below 1."""
        priorities = sorted({sign * 2**k + d for sign in (-1, 1) for k in range(33) for d in (-1, 0, 1)})
        worth = [DEFAULT_RULE.gpu_value(priority, ()) for priority in priorities]
        assert worth == sorted(worth)
        assert min(worth) >= 1

    def test_classes_come_first(self, tmp_path: Path) -> None:
        """The first class that the rule names, of Slurm's QOS before partition; where it names none, the priority."""
        rule = PriorityRule(value_per_gpu_of={"urgent": 7000, "scav": 10}, percent_per_doubling=0)
        assert [rule.gpu_value(9, names) for names in (["urgent", "scav"], ["", "scav"], [])] == [7000, 10, 1000]
        (file,) = write(tmp_path, rule=json.dumps({"value_per_gpu_of": {"urgent": 5000, "gpu": 300}}))
        waits = slurm.WAITS | {"tres_per_node": "gres:gpu:2", "qos": "urgent"}
        found = read_slurm(*slurm.replies(waits, slurm.RUNS), rule=file)
        assert {job.id: job.options[0].value for job in found.jobs} == {"2": 10_000, "1": 1}

    @pytest.mark.parametrize("order", [(0, 1000), (1000, 0)])
    def test_a_job_of_higher_priority_gets_the_gpu(self, order: tuple[int, int]) -> None:
        """Of two that are alike otherwise, whichever stands first; a flat rule values both alike."""
        items = (node(gpus="1"), *(pod(f"p{priority}", priority=priority) for priority in order))
        assert [one.job for one in solve(read(*items), time_limit_s=5).placements] == ["default/p1000"]
        flat = read(*items, rule=PriorityRule(percent_per_doubling=0))
        assert {job.options[0].value for job in flat.jobs} == {1000}

    @pytest.mark.parametrize(
        ("rule", "value", "each"), [(None, 3750, 1250), (PriorityRule(value_per_gpu_of={"low": 10}), 30, 10)]
    )
    def test_gangs_with_a_minimum(self, rule: PriorityRule | None, value: int, each: int) -> None:
        """The value of all workers, and that which each missing one takes away."""
        group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 2}}
        more: dict[str, Any] = {"priority": 1, "priorityClassName": "low"}
        pods = [pod(f"g{i}", labels={"scheduling.x-k8s.io/pod-group": "g"}, **more) for i in range(3)]
        (option,) = read(node(), *pods, group, rule=rule).jobs[0].options
        assert (option.value, option.value_per_worker) == (value, each)

    def test_a_file_that_is_no_rule(self, tmp_path: Path) -> None:
        """Names the field."""
        (tmp_path / "r.json").write_text('{"value_per_gpu": 0}')
        with pytest.raises(BadInput, match=r"r\.json: value_per_gpu: 0, expected at least 1"):
            read_kubernetes([node()], rule=tmp_path / "r.json")


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
QOS = "Name|Preempt|PreemptMode\nnormal|low,idle|cluster\nlow||requeue\nidle||cluster\n"


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
        conf = write(tmp_path, conf=CONF.format(mode=mode, own=own))
        runs = slurm.RUNS | {"partition": "scav"} | job
        nodes, jobs = slurm.replies(runs, partitions=["gpu", "scav"])
        assert preemptible(read_slurm(nodes, jobs, preemption=conf)) == ["1"] * may
        nodes, jobs = slurm.replies(runs, partitions=["scav"])  # no partition of a higher tier has the node
        assert preemptible(read_slurm(nodes, jobs, preemption=conf)) == []

    def test_as_scontrol_prints_it(self, tmp_path: Path) -> None:
        """Several lines a partition; the cluster's settings in a file of their own, or missing."""
        both = write(tmp_path, config=CONFIG.format("preempt/partition_prio"), partitions=SHOWN)
        given = slurm.replies(slurm.RUNS | {"partition": "scav"}, partitions=["gpu", "scav"])
        assert preemptible(read_slurm(*given, preemption=both)) == ["1"]
        assert preemptible(read_slurm(*given, preemption=both[1:])) == []

    def test_by_qos(self, tmp_path: Path) -> None:
        """Those that another QOS may preempt; the mode of the QOS before the cluster's."""
        both = write(tmp_path, qos=QOS, config=CONFIG.format("preempt/qos"))
        jobs = [slurm.RUNS | {"job_id": i, "qos": qos} for i, qos in enumerate(("normal", "low", "idle", ""), start=1)]
        assert preemptible(read_slurm(*slurm.replies(*jobs), preemption=both)) == ["2"]

    @pytest.mark.parametrize(
        ("cluster", "of_qos", "job", "may"),
        [  # the job started at 100 s; the list is of 3,700 s
            ("", "", {}, True),
            ("01:00:00", "", {}, True),
            ("01:00:01", "", {}, False),
            ("60", "", {}, True),
            ("61", "", {}, False),
            ("60:01", "", {}, False),
            ("0-01", "", {}, True),
            ("0-01:01", "", {}, False),
            ("-1", "", {}, True),
            ("", "01:00:01", {}, False),
            ("02:00:00", "00:10:00", {}, True),
            ("00:10:00", "02:00:00", {}, False),
            ("", "", {"preemptable_time": {"set": True, "infinite": False, "number": 3700}}, True),
            ("", "", {"preemptable_time": {"set": True, "infinite": False, "number": 3701}}, False),
            ("02:00:00", "", {"preemptable_time": {"set": True, "infinite": False, "number": 3000}}, True),
        ],
    )
    def test_not_before_its_time(
        self, tmp_path: Path, cluster: str, of_qos: str, job: dict[str, Any], may: bool
    ) -> None:
        """The time that Slurm lists for the job; else that of its QOS, else of the cluster, from its start."""
        table = f"Name|Preempt|PreemptExemptTime\nlow||{of_qos}\nhigh|low|\n"
        config = f"PreemptType = preempt/qos\nPreemptMode = REQUEUE\nPreemptExemptTime = {cluster}\n"
        nodes, jobs = slurm.replies(slurm.RUNS | {"qos": "low"} | job)
        jobs["last_update"] = {"set": True, "infinite": False, "number": 3700}
        both = write(tmp_path, qos=table, config=config)
        assert preemptible(read_slurm(nodes, jobs, preemption=both)) == ["1"] * may

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("PreemptExemptTime=soon", "PreemptExemptTime of the cluster: 'soon', expected a time such as 01:00:00"),
            ("nothing here", "no KEY=VALUE"),
            ("User|Account\na|b", "expected Name and Preempt"),
            ("PartitionName=a PriorityTier=x", "PriorityTier of partition 'a': 'x', expected a number"),
        ],
    )
    def test_other_files_are_refused(self, tmp_path: Path, text: str, words: str) -> None:
        with pytest.raises(BadInput, match=words):
            read_slurm(*LISTS, preemption=write(tmp_path, odd=text))

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
    def test_by_comment(self, fields: dict[str, Any], found: tuple[bool, bool]) -> None:
        """A word that cannot be read, or a job that holds what cannot be read: it keeps everything."""
        instance = slurm.read(slurm.RUNS | fields)
        assert flags(instance) == {"1": found}
        odd = "yes" in fields.get("comment", "")
        assert ("Kept as running, mark movable is neither true nor false" in notes_of(instance)) == odd

    def test_parts_of_a_job_stay(self) -> None:
        """A job that holds different amounts on its nodes is several: none can be moved alone."""
        nodes, jobs = (json.loads((slurm.DATA / f"slurm_{kind}.json").read_text()) for kind in ("nodes", "jobs"))
        for job in jobs["jobs"]:
            job["comment"] = "placeopt.movable"
        assert flags(read_slurm(nodes, jobs)) == dict.fromkeys(("501", "502", "503", "504", "505"), (True, False))
        four = next(job for job in jobs["jobs"] if job["job_id"] == 504)
        four |= {"gres_detail": ["gpu:1(IDX:0)", "gpu:a100:2(IDX:0-1)"]}
        parts = flags(read_slurm(nodes, jobs))
        assert (parts["504"], parts["504+1"]) == ((False, False), (False, False))


LOW: dict[str, Any] = {"priority": -99}
YES = {"annotations": {"placeopt.io/movable": "true"}}


class TestKubernetes:
    """Preemption by priority and class, and marks in annotations."""

    def test_below_the_bar(self) -> None:
        """That of the cluster autoscaler, or another; a class whatever the priority."""
        pods = [pod(f"p{priority}", "n", priority=priority) for priority in (0, -10, -11)]
        items = [node(), *pods, pod("c", "n", priorityClassName="batch")]
        assert preemptible(read(*items)) == ["default/p-11"]
        bar = PriorityRule(preemptible_below=0, preemptible={"batch": True})
        assert preemptible(read(*items, rule=bar)) == ["default/p-10", "default/p-11", "default/c"]

    def test_annotations(self) -> None:
        """Of all pods of a gang; a word that is neither true nor false takes both away."""
        odd = {"annotations": {"placeopt.io/movable": "true", "placeopt.io/preemptible": ""}}
        found = read(
            node(gpus="8"),
            pod("a", "n", **YES),
            *(pod(f"g{i}", "n", labels={KUEUE: "g"}, **YES) for i in range(2)),
            pod("h0", "n", labels={KUEUE: "h"}, **YES),
            pod("h1", "n", labels={KUEUE: "h"}),
            pod("odd", "n", **LOW, **odd),
            pod("no", "n", **LOW, annotations={"placeopt.io/preemptible": "false"}),
        )
        kept = dict.fromkeys(("default/h", "default/odd", "default/no"), (False, False))
        assert flags(found) == {"default/a": (True, False), "default/g": (True, False), **kept}
        assert "mark preemptible is neither true nor false" in notes_of(found)

    def test_what_others_depend_on_keeps_its_place(self) -> None:
        """A part of a gang, and a pod whose GPUs cannot be read; relations of others are judged in the plan."""
        gang = [pod("g0", "n", labels={KUEUE: "g"}, **LOW), pod("g1", labels={KUEUE: "g"}, **LOW)]
        base = [pod("base", "n", labels={"app": "b"}, **LOW), pod("near", affinity=near(term({"app": "b"})), **LOW)]
        odd = pod("odd", "m", asks={"nvidia.com/gpu.shared": "1"}, **LOW)
        found = read(node(), node("m"), *gang, *base, odd)
        assert len(found.running) == 3
        assert preemptible(found) == ["default/base"]

    def test_pods_that_preempt_nobody_are_named(self) -> None:
        """The round has no such rule: the note says so, where it matters."""
        never, low = pod("w", preemptionPolicy="Never"), pod("low", "n", **LOW)
        assert "preemptionPolicy Never" in notes_of(read(node(), never, low))
        assert "preemptionPolicy" not in notes_of(read(node(), never))
        assert "preemptionPolicy" not in notes_of(read(node(), pod("w"), low))


def test_a_round_preempts_what_may_be() -> None:
    """A waiting pod takes the place of an expendable one, where the policy allows it; the referee accepts it."""
    items = (node(gpus="1"), pod("low", "n", **LOW), pod("high", priority=1000))
    found = read(*items)
    policy = found.policy.model_copy(update={"changes": Changes(preemptions_max=1)})
    plan = solve(found, policy=policy, time_limit_s=5)
    assert [entry.job for entry in plan.preempted] == ["default/low"]
    assert violations(found, plan) == []
    kept = read(*items, rule=PriorityRule(preemptible_below=-1000))
    assert not solve(kept, policy=policy, time_limit_s=5).preempted
