"""Slurm: what is known is read exactly, what is not known is left out, kept or drained, and counted (issue 16, B)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from placeopt.errors import BadInput, Unsupported
from placeopt.formats.snapshots import read_slurm
from placeopt.formats.topo.slurm_gres import Gres, parse_gres
from placeopt.formats.topo.slurm_states import why_drained
from placeopt.model import Instance

DATA = Path(__file__).resolve().parents[2] / "data" / "snapshots"
WAITS = {
    "job_id": 2,
    "job_state": "PENDING",
    "partition": "gpu",
    "state_reason": "Priority",
    "priority": 5,
    "tasks": 1,
    "tres_req_str": "cpu=1,mem=1G,node=1",
    "memory_per_node": 1024,
}
RUNS = {
    "job_id": 1,
    "job_state": "RUNNING",
    "partition": "gpu",
    "nodes": "gpu01",
    "tres_alloc_str": "cpu=8,mem=8G,node=1",
    "start_time": 100,
}


def read(tmp_path: Path, *jobs: dict[str, Any], **node: Any) -> Instance:
    """Read the small cluster, its first node (4 A100, 64 CPUs) changed, with these jobs."""
    nodes = json.loads((DATA / "slurm_nodes.json").read_text())
    nodes["nodes"][0].update(node)
    (tmp_path / "n.json").write_text(json.dumps(nodes))
    (tmp_path / "j.json").write_text(json.dumps({"jobs": jobs}))
    return read_slurm(tmp_path / "n.json", tmp_path / "j.json")


def left_out(found: Instance) -> list[str]:
    """Lines of the note about jobs left out."""
    return [line.removeprefix("Left out, ") for line in found.note.splitlines() if line.startswith("Left out")]


@pytest.mark.parametrize(
    ("state", "flags", "reasons"),
    [
        ("idle", [], []),
        ("idle", ["DRAIN"], ["state DRAIN"]),
        ("mixed", ["DRAIN"], ["state DRAIN"]),
        (["IDLE", "DRAIN"], None, ["state DRAIN"]),
        ("idle", ["MAINTENANCE", "RESERVED"], ["state MAINTENANCE"]),
        (["MAINT"], [], ["state MAINT"]),
        (["IDLE", "INVALID_REG"], [], ["state INVALID_REG"]),
        (["IDLE", "BLOCKED"], [], ["state BLOCKED"]),
        ("down", ["NOT_RESPONDING"], ["state DOWN", "state NOT_RESPONDING"]),
        ("idle", ["FAIL"], ["state FAIL"]),
        ("unknown", [], ["state UNKNOWN"]),
        ("future", [], ["state FUTURE"]),
        (["IDLE", "CLOUD", "POWERED_DOWN"], [], []),
        (["IDLE", "CLOUD", "POWERING_UP"], [], []),
        (["IDLE", "POWERING_DOWN"], [], ["state POWERING_DOWN"]),
        (["IDLE", "REBOOT_ISSUED"], [], ["state REBOOT_ISSUED"]),
        (["IDLE", "REBOOT_REQUESTED"], [], ["state REBOOT_REQUESTED"]),
        (["IDLE", "PLANNED", "DYNAMIC_NORM", "COMPLETING"], [], []),
        ("IDLE+DRAIN", [], ["state DRAIN"]),
        ("idle*", [], ["state NOT_RESPONDING"]),
        ("mixed$~", [], ["state MAINTENANCE"]),
        (["IDLE", "SPLINES"], [], ["state SPLINES, which is not known"]),
        ([], [], ["no state"]),
    ],
)
def test_flags_of_nodes_in_all_spellings(tmp_path: Path, state: object, flags: object, reasons: list[str]) -> None:
    """Issue 16, B1: 22.05 has a word and a list of flags, 23.02 one list; an unknown flag drains, and is counted."""
    found = read(tmp_path, state=state, state_flags=flags)
    assert found.cluster.nodes[0].drained == bool(reasons)
    lines = [line for line in found.note.splitlines() if "gpu01" in line]
    assert [line.split(":")[0] for line in lines] == [f"Drained, {reason}" for reason in reasons]
    words = [*([state] if isinstance(state, str) else list(state)), *(flags or [])]  # type: ignore[call-overload]
    assert why_drained(words) == reasons


def test_generic_resources_in_all_spellings() -> None:
    """Issue 16, B2: gpu:4 is four of any type; sockets, indices, counts of shards; what is none is refused."""
    for text, items in {
        "gpu:4": [("gpu", None, 4)],
        "gres:gpu:4": [("gpu", None, 4)],
        "gres/gpu=4": [("gpu", None, 4)],
        "gres/gpu:a100=4": [("gpu", "a100", 4)],
        "gpu:a100": [("gpu", "a100", 1)],
        "gpu": [("gpu", None, 1)],
        "gpu:4090:2": [("gpu", "4090", 2)],
        "gpu:h100:2(S:0-1),gpu:4(S:0,1)": [("gpu", "h100", 2), ("gpu", None, 4)],
        "shard:t4:8,mps:400,gpu:a100_1g.5gb:7": [("shard", "t4", 8), ("mps", None, 400), ("gpu", "a100_1g.5gb", 7)],
        "shard:a100:1(1/8,-/8),gpu:2(CNT:2)": [("shard", "a100", 1), ("gpu", None, 2)],
        "gpu:a100:0(IDX:N/A)": [("gpu", "a100", 0)],
        "gpumem:80G": [("gpumem", None, 80 * 2**30)],
        "(null)": [],
        "": [],
    }.items():
        assert [(one.name, one.type, one.count) for one in parse_gres(text)] == items, text
    assert parse_gres("gpu:a100:2(IDX:0,3)") == [Gres("gpu", "a100", 2, "(IDX:0,3)")]
    assert [one.indices for one in parse_gres("gpu:2(S:0)(IDX:1-2),gpu:1(IDX:N/A)")] == ["1-2", None]
    assert [one.socket for one in parse_gres("gpu:1(S:1),gpu:1(S:0-1),gpu:1(S:0,1),gpu:1")] == [1, None, None, None]
    for broken in ("gpu:a:b:c", "gpu:", ":4", "gpu:4)", "gpu:2(IDX:0", "gpu:a100:lots:2"):
        with pytest.raises(ValueError, match="expected such as"):
            parse_gres(broken)


@pytest.mark.parametrize(
    ("gres", "models"),
    [
        ("gpu:4", ["gpu"] * 4),
        ("gpu:h100:1(S:0-1),gpu:2(S:0,1),shard:8", ["h100", "gpu", "gpu"]),
        ("gpu:0", []),
        ("(null)", []),
    ],
)
def test_gpus_of_nodes(tmp_path: Path, gres: str, models: list[str]) -> None:
    """Issue 16, B2: ``gres=gpu:4`` was one GPU of a model called 4."""
    found = read(tmp_path, gres=gres)
    machine = next(one for one in found.cluster.machines if one.id == found.cluster.nodes[0].machine)
    assert [gpu.model for gpu in machine.gpus] == models


def test_a_node_whose_hardware_cannot_be_read_is_drained(tmp_path: Path) -> None:
    """Issue 16, B7: its jobs stay, the others' import goes on."""
    found = read(tmp_path, RUNS | {"gres_detail": ["gpu:a100:2(IDX:0-1)"]}, gres="gpu:many:too:few")
    assert found.cluster.nodes[0].drained
    assert "Drained, its hardware cannot be read: 1 (gpu01)." in found.note
    assert list(found.running[0].assignments[0].gpus) == ["0", "1"]
    assert "more GPUs than its node has or has left: 1 (1)." in found.note


REASONS = (
    *("QOSMaxGRESPerUser", "AssocGrpGRES", "PartitionTimeLimit", "PartitionNodeLimit", "JobHoldMaxRequeue"),
    *("JobHeldUser", "JobHeldAdmin", "Dependency", "DependencyNeverSatisfied", "BeginTime", "Licenses"),
    *("Reservation", "ReservationDeleted", "ReqNodeNotAvail", "NodeDown", "BadConstraints", "PartitionDown"),
    *("PartitionInactive", "AccountNotAllowed", "InvalidAccount", "InvalidQOS", "QOSNotAllowed"),
    *("QOSGrpCpuLimit", "AssocMaxJobsLimit", "AssociationJobLimit", "QOSJobLimit", "JobArrayTaskLimit"),
    *("BurstBufferResources", "BurstBufferStageIn", "Cleaning", "FedJobLock", "MaxMemPerLimit", "DeadLine"),
    *("Prolog", "SystemFailure", "JobLaunchFailure", "QOSUsageThreshold", "AssocGrpCPURunMinutesLimit"),
    *("SchedDefer",),
)


@pytest.mark.parametrize("reason", REASONS)
def test_reasons_that_room_does_not_end(tmp_path: Path, reason: str) -> None:
    """Issue 16, B3: limits of accounts, qualities of service and partitions; held; dependent; before its time."""
    found = read(tmp_path, WAITS | {"state_reason": reason})
    assert (found.jobs, left_out(found)) == ((), [f"waiting for {reason}: 1 (2)."])


def test_reasons_that_room_ends_and_ones_that_are_not_known(tmp_path: Path) -> None:
    """Issue 16, B3, B7: Priority, Resources, None start; an unknown word, a hold in any form does not."""
    jobs = [
        WAITS | {"job_id": 1, "state_reason": "Priority"},
        WAITS | {"job_id": 2, "state_reason": "Resources"},
        WAITS | {"job_id": 3, "state_reason": "None"},
        WAITS | {"job_id": 4, "state_reason": "MoonPhase"},
        WAITS | {"job_id": 5, "priority": 0},
        WAITS | {"job_id": 6, "state_reason": "None", "state_description": "launch failed requeued held"},
        WAITS | {"job_id": 7, "job_state": ["PENDING", "REQUEUE_HOLD"]},
        WAITS | {"job_id": 8, "hold": True},
        WAITS | {"job_id": 9, "job_state": ["PENDING", "WOBBLING"]},
        WAITS | {"job_id": 10, "job_state": ["WOBBLING"]},
        WAITS | {"job_id": 11, "job_state": "COMPLETED"},
    ]
    found = read(tmp_path, *jobs)
    assert [job.id for job in found.jobs] == ["1", "2", "3"]
    assert left_out(found) == [
        "waiting for MoonPhase, a reason that is not known: 1 (4).",
        "waiting, held (priority 0): 2 (5, 8).",
        "waiting, launch failed requeued held: 1 (6).",
        "state REQUEUE_HOLD: 1 (7).",
        "state WOBBLING, which is not known: 2 (9, 10).",
    ]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"contiguous": True}, "asks for --contiguous"),
        ({"het_job_id": 2}, "is a part of a heterogeneous job"),
        ({"tres_per_socket": "gres:gpu:2"}, "asks for --gpus-per-socket"),
        ({"required_switches": 1}, "asks for --switches"),
        ({"licenses": "matlab:1"}, "asks for --licenses"),
        ({"minimum_tmp_disk_per_node": 10}, "asks for --tmp"),
        ({"threads_per_core": {"set": True, "infinite": False, "number": 1}}, "asks for --threads-per-core"),
        ({"sockets_per_node": 2}, "asks for --sockets-per-node"),
        ({"tres_per_node": "gres:shard:2"}, "asks for gres/shard"),
        ({"tres_per_node": "gres/nic:1,gres/gpu:1"}, "asks for gres/nic"),
        ({"tres_per_task": "license/x:1"}, "asks for license/x"),
        ({"tres_per_node": "gres:gpu:a100:1,gres:gpu:l40s:1"}, "asks for several types of GPUs"),
        ({"tres_per_node": "gres:gpu:1", "tres_per_task": "gres:gpu:1"}, "asks for GPUs in several ways"),
        ({"tres_per_job": "gres:gpu:6"}, "asks for --gpus without --cpus-per-gpu, and not for one node"),
        (
            {"tres_per_job": "gres:gpu:12", "tasks": 2, "tres_req_str": "cpu=2,node=2", "max_nodes": 2},
            "asks for --gpus without --cpus-per-gpu, and not for one node",
        ),
        ({"tasks": 4, "tres_per_node": "gres:gpu:4"}, "asks for GPUs or memory by node, and any number of nodes"),
        (
            {"tasks": 6, "tres_per_node": "gres:gpu:4", "tres_req_str": "cpu=6,node=2", "max_nodes": 2},
            "may have more tasks on one of its nodes than on another",
        ),
        ({"tasks": 4}, "asks for memory by node, and any number of nodes or of tasks a node"),
        ({"shared": "user"}, "asks for --exclusive=user"),
        ({"exclusive": ["mcs"]}, "asks for --exclusive=mcs"),
        ({"shared": "none"}, "--exclusive where nodes are of several shapes, or none"),
        ({"required_nodes": "gpu01", "max_nodes": 2, "tasks": 2, "tres_req_str": "cpu=2,node=2"}, "(--nodelist)"),
        ({"features": "a100*2"}, "a constraint about several nodes together, or one that cannot be read"),
        ({"resv_name": "course"}, "waits in a reservation whose nodes are not told"),
        ({"tres_req_str": "cpu=x"}, "cannot be read: tres_req_str"),
        ({"tres_per_node": "gres:gpu:a:b:c"}, "cannot be read: tres_per_node"),
        ({"tasks": "some"}, "cannot be read: tasks"),
        ({"submit_time": {"set": True, "number": "soon"}}, "cannot be read: submit_time.number"),
        ({"user_name": "two\nlines"}, "cannot be read: user"),
        ({"excluded_nodes": "gpu[01"}, "cannot be read: excluded_nodes"),
        ({"array_task_string": "x"}, "cannot be read: array_task_string"),
        ({"tres_per_node": "gres:gpu:5000"}, "cannot be read: gpus"),
    ],
)
def test_waiting_jobs_that_are_left_out(tmp_path: Path, fields: dict[str, Any], reason: str) -> None:
    """Issue 16, B3, B7, A6: what is not read exactly, or not at all, is counted by reason; the import goes on."""
    found = read(tmp_path, WAITS | fields, WAITS | {"job_id": 9})
    assert [job.id for job in found.jobs] == ["9"]
    assert len(left_out(found)) == 1
    assert reason in left_out(found)[0]


ONE_NODE = {"max_nodes": 1}
EXCLUSIVE = {"shared": "none", "tres_per_node": "gres:gpu:1", "features": "ib"}
TASKS = {"tasks": 4, "tres_per_task": "gres:gpu:1", "tres_req_str": "cpu=8,node=1"}
TWO = {"max_nodes": 2, "tres_req_str": "cpu=4,mem=2G,node=2"}


@pytest.mark.parametrize(
    ("fields", "shapes"),
    [  # workers, GPUs, CPUs and MiB of each, most a node, nodes
        ({"tres_per_job": "gres:gpu:6", "cpus_per_tres": "gres:gpu:4"}, None),
        (
            {"tres_per_job": "gres:gpu:6", "cpus_per_tres": "gres:gpu:4", "memory_per_tres": "gres:gpu:20480"},
            [(6, 1, 4, 20_480, None, None)],
        ),
        (
            TWO | {"tres_per_job": "gres:gpu:12", "cpus_per_tres": "gres:gpu:3", "memory_per_tres": "gres:gpu:10"},
            [(12, 1, 3, 10, None, 2)],
        ),
        ({"tres_per_job": "gres:gpu:3"} | ONE_NODE, [(1, 3, 1, 1024, None, None)]),
        (
            {"tasks": 4, "tres_per_task": "gres:gpu:1", "tres_req_str": "cpu=8,node=1"} | ONE_NODE,
            [(1, 4, 8, 1024, None, None)],
        ),
        (TASKS | {"memory_per_cpu": 100}, [(4, 1, 2, 200, None, None)]),
        ({"tasks": 2, "tres_per_node": "gres:gpu:2"} | TWO, [(2, 2, 2, 1024, 1, None)]),
        ({"tasks": 4, "tasks_per_node": 2, "tres_per_task": "gres:gpu:1"} | TWO, [(2, 2, 2, 1024, 1, None)]),
        (
            {"tasks": 2, "tres_per_node": "gres:gpu:4", "tres_req_str": "cpu=1,node=2", "max_nodes": 4},
            [(2, 4, 1, 1024, 1, None), (3, 4, 1, 1024, 1, None), (4, 4, 1, 1024, 1, None)],
        ),
        (
            {
                "tasks": 6,
                "tasks_per_node": 3,
                "tres_per_task": "gres:gpu:1",
                "memory_per_cpu": 10,
                "tres_req_str": "cpu=6",
            },
            [(6, 1, 1, 10, 3, None)],
        ),
        ({"tasks": 4, "memory_per_cpu": 10} | TWO, [(4, 0, 1, 10, None, 2)]),
        ({"minimum_cpus_per_node": 10} | ONE_NODE, [(1, 0, 10, 1024, None, None)]),
        (EXCLUSIVE, [(1, 4, 64, 1024, None, None)]),
        (
            EXCLUSIVE | {"shared": ["none"], "tasks": 2} | TWO,
            [(2, 4, 64, 1024, 1, None)],
        ),
        ({"exclusive": ["true"], "tasks": 4, "memory_per_cpu": 10, "features": "ib"} | TWO, [(2, 4, 64, 20, 1, None)]),
    ],
)
def test_waiting_jobs_that_are_read(
    tmp_path: Path, fields: dict[str, Any], shapes: list[tuple[int | None, ...]] | None
) -> None:
    """Issue 16, B3: --gpus with --cpus-per-gpu, fixed numbers and ranges of nodes, tasks a node, --exclusive."""
    job = {
        key: value
        for key, value in (WAITS | fields).items()
        if key != "memory_per_node" or not ("memory_per_cpu" in fields or "memory_per_tres" in fields)
    }
    found = read(tmp_path, job)
    if shapes is None:  # memory by node, on any number of nodes
        assert left_out(found) == ["asks for memory by node, and any number of nodes or of tasks a node: 1 (2)."]
        return
    assert [
        (
            one.workers,
            one.demand.gpus,
            one.demand.cpu_millicores // 1000,
            one.demand.memory_mib,
            one.workers_per_node_max,
            one.splits[0].domains if one.splits else None,
        )
        for one in found.jobs[0].options
    ] == shapes


def test_constraints_of_one_node(tmp_path: Path) -> None:
    """Issue 16, B3: brackets and counts of one are about the one node; with more nodes the job is left out."""
    for text, nodes in {"[a100|l40s]": 5, "a100*1": 4, "a100&ib": 3, "a100|l40s": 5}.items():
        found = read(tmp_path, WAITS | {"features": text, "partition": "gpu,vis"})
        assert len(found.jobs[0].nodes_allowed or ()) == nodes, text


def test_arrays_and_their_limits(tmp_path: Path) -> None:
    """Issue 16, B3: of tasks 3-9, two at once, one runs: one more may start; a list that Slurm cut is counted."""
    array = {"array_job_id": 2, "array_task_id": None}
    runs = RUNS | {"job_id": 3, "array_job_id": 2, "array_task_id": 1}
    found = read(tmp_path, WAITS | array | {"array_task_string": "3-9%2", "array_max_tasks": 2}, runs)
    assert [job.id for job in found.jobs] == ["2_3", "2_1"]
    assert left_out(found) == ["tasks of an array over its limit of tasks at once: 6 (2_4, 2_5, 2_6, ...)."]
    found = read(tmp_path, WAITS | array | {"array_task_string": "3-4,..."})
    assert [job.id for job in found.jobs] == ["2_3", "2_4"]
    assert "cut off its list" in left_out(found)[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"gres_detail": ["gpu:a100:2(IDX:0)"]},
        {"gres_detail": ["gpu:a100:some"]},
        {"gres_detail": ["gpu:a100:1(IDX:0)", "gpu:a100:1(IDX:0)"]},
        {"gres_detail": ["shard:2(IDX:0)"]},
        {"tres_per_node": "gres:shard:2"},
        {"tres_alloc_str": "cpu=x"},
        {"tres_alloc_str": ""},
        {"user_name": "two\nlines"},
        {"submit_time": {"set": True, "number": "soon"}},
        {"gres_detail": ["gpu:1(IDX:N/A)"], "also": "gpu:h100:2,gpu:a100:2"},
    ],
)
def test_a_running_job_that_cannot_be_read_holds_the_whole_node(tmp_path: Path, fields: dict[str, Any]) -> None:
    """Issue 16, B7, A6: all GPUs that no other job has, the node drained, counted; the import goes on."""
    node = {"gres": fields.pop("also")} if "also" in fields else {}
    other = RUNS | {"job_id": 7, "gres_detail": ["gpu:a100:1(IDX:3)"]}
    found = read(tmp_path, RUNS | fields, other, **node)
    held = {one.job: [int(gpu) for part in one.assignments for gpu in part.gpus] for one in found.running}
    assert held == {"1": [0, 1, 2], "7": [3]}
    assert found.cluster.nodes[0].drained
    assert "Drained, a job there holds what cannot be read: 1 (gpu01)." in found.note
    assert ": holds all GPUs left on its nodes: 1 (1)." in found.note


def test_gpus_whose_node_is_not_told_hold_all_nodes(tmp_path: Path) -> None:
    """Issue 16, B7: twelve GPUs, or six, on two nodes may lie 4 and 2; of --gpus-per-node it is known."""
    job = RUNS | {"nodes": "gpu[01-02]", "tres_alloc_str": "cpu=4,mem=4G,node=2,gres/gpu=6"}
    found = read(tmp_path, job)
    assert [node.drained for node in found.cluster.nodes[:3]] == [True, True, False]
    assert sum(len(part.gpus) for part in found.running[0].assignments) == 8
    found = read(tmp_path, job | {"tres_per_node": "gres:gpu:3"})
    assert [node.drained for node in found.cluster.nodes[:3]] == [False] * 3
    assert [len(part.gpus) for part in found.running[0].assignments] == [3, 3]


@pytest.mark.parametrize("state", ["SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", ["CANCELLED", "COMPLETING"]])
def test_jobs_that_still_have_their_nodes(tmp_path: Path, state: object) -> None:
    """Issue 16, B6: a real Slurm's suspended job keeps its GPUs."""
    found = read(tmp_path, RUNS | {"job_state": state, "gres_detail": ["gpu:a100:2(IDX:1-2)"]})
    assert list(found.running[0].assignments[0].gpus) == ["1", "2"]


def test_a_job_in_an_unknown_state_with_nodes_runs(tmp_path: Path) -> None:
    """Issue 16, B7: it may hold them; one that has ended does not; one that runs on no node is counted."""
    jobs = [
        RUNS | {"job_state": ["WOBBLING"], "gres_detail": ["gpu:a100:1(IDX:0)"]},
        RUNS | {"job_id": 2, "job_state": "COMPLETED"},
        RUNS | {"job_id": 3, "nodes": ""},
    ]
    found = read(tmp_path, *jobs)
    assert [one.job for one in found.running] == ["1"]
    assert "Kept as running, state WOBBLING, which is not known: 1 (1)." in found.note
    assert left_out(found) == ["runs on no node: 1 (3)."]


def test_exclusive_jobs_that_run_hold_whole_nodes(tmp_path: Path) -> None:
    """Issue 16, B6: Slurm gives them all; where the JSON says less, the node is drained."""
    whole = {"gres_detail": ["gpu:a100:4(IDX:0-3)"], "tres_alloc_str": "cpu=64,mem=8G,node=1", "shared": "none"}
    found = read(tmp_path, RUNS | whole)
    assert not found.cluster.nodes[0].drained
    assert (found.jobs[0].options[0].demand.gpus, found.jobs[0].options[0].demand.cpu_millicores) == (4, 64_000)
    for less in (
        {"gres_detail": ["gpu:a100:2(IDX:0-1)"]},
        {"tres_alloc_str": "cpu=2,mem=8G"},
        {"shared": "user", "gres_detail": []},
    ):
        found = read(tmp_path, RUNS | whole | less)
        assert found.cluster.nodes[0].drained
        assert "Drained, held by an exclusive job that has not all of it: 1 (gpu01)." in found.note


def test_more_in_use_than_the_listed_jobs_hold_drains(tmp_path: Path) -> None:
    """Issue 16, B7: with PrivateData=jobs a user's list lacks the others' jobs; the nodes tell that they are there."""
    runs = RUNS | {"gres_detail": ["gpu:a100:1(IDX:0)"]}
    for used, drained in (
        ({"alloc_cpus": 8, "gres_used": "gpu:a100:1(IDX:0)"}, False),
        ({"alloc_cpus": 9}, True),
        ({"gres_used": "gpu:a100:2(IDX:0-1)"}, True),
    ):
        found = read(tmp_path, runs, **used)
        assert found.cluster.nodes[0].drained == drained, used
        assert ("more is in use there than the listed jobs hold: 1 (gpu01)" in found.note) == drained


@pytest.mark.parametrize("field", ["submit_time", "start_time", "end_time", "time_limit"])
def test_times_of_ten_to_the_twelve_are_left_out(tmp_path: Path, field: str) -> None:
    """Issue 16, A6: such times raised pydantic's ValidationError; the job stays, its time is not known."""
    for value in (10**12, {"set": True, "infinite": False, "number": 10**15}, 2**64 - 2, 0xFFFFFFFE):
        found = read(tmp_path, RUNS | {field: value}, WAITS | {field: value})
        assert {job.id for job in found.jobs} == {"1", "2"}
        assert not any(node.drained for node in found.cluster.nodes[:3])
    (tmp_path / "j.json").write_text(json.dumps({"jobs": [RUNS], "last_update": 10**12}))
    assert read_slurm(tmp_path / "n.json", tmp_path / "j.json").now_ms == 100_000


def test_the_list_of_a_newer_sinfo_says_what_to_give(tmp_path: Path) -> None:
    """Issue 16, B4: from 23.02 on sinfo --json groups nodes; scontrol has the list."""
    (tmp_path / "s.json").write_text(json.dumps({"sinfo": [{"node": {"state": ["IDLE"]}, "nodes": {"total": 2}}]}))
    with pytest.raises(Unsupported, match=r"'sinfo'.*give the output of 'scontrol show nodes --json'"):
        read_slurm(tmp_path / "s.json", DATA / "slurm_jobs.json")


def test_too_many_jobs_are_refused_while_they_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays by the thousand stop at the bound, not after the last."""
    monkeypatch.setattr("placeopt.formats.snapshots.slurm.MAX_JOBS", 10)
    arrays = [WAITS | {"job_id": i, "array_job_id": i, "array_task_string": "0-8"} for i in (1, 2)]
    with pytest.raises(BadInput, match="more than 10 jobs"):
        read(tmp_path, *arrays)
