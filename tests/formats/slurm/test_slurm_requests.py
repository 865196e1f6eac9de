"""Slurm: what waits is read exactly as it asked, or left out and counted by reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helpers.slurm_files import RUNS, WAITS, left_out, read
from placeopt import solve, violations

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
    """Limits of accounts, qualities of service and partitions; held; dependent; before its time."""
    found = read(tmp_path, WAITS | {"state_reason": reason})
    assert (found.jobs, left_out(found)) == ((), [f"waiting for {reason}: 1 (2)."])


def test_reasons_that_room_ends_and_ones_that_are_not_known(tmp_path: Path) -> None:
    """Priority, Resources, None start; an unknown word, a hold in any form does not."""
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
        ({"tres_per_node": "gres:nic:cx7:1"}, "asks for gres/nic:cx7"),
        ({"tres_per_task": "gres:nic:1"}, "asks for gres/nic, and not by node"),
        ({"tres_req_str": "cpu=1,mem=1G,node=1,license/matlab=1"}, "asks for license/matlab"),
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
        ({"resv_name": "course"}, "waits in a reservation whose nodes are not listed"),
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
    """What is not read exactly, or not at all, is counted by reason; the import goes on."""
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
    """--gpus with --cpus-per-gpu, fixed numbers and ranges of nodes, tasks a node, --exclusive."""
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
    """Brackets and counts of one are about the one node; with more nodes the job is left out."""
    for text, nodes in {"[a100|l40s]": 5, "a100*1": 4, "a100&ib": 3, "a100|l40s": 5}.items():
        found = read(tmp_path, WAITS | {"features": text, "partition": "gpu,vis"})
        assert len(found.jobs[0].nodes_allowed or ()) == nodes, text


def test_arrays_and_their_limits(tmp_path: Path) -> None:
    """Of tasks 3-9, two at once, one runs: one more may start; a list that Slurm cut is counted."""
    array = {"array_job_id": 2, "array_task_id": None}
    runs = RUNS | {"job_id": 3, "array_job_id": 2, "array_task_id": 1}
    found = read(tmp_path, WAITS | array | {"array_task_string": "3-9%2", "array_max_tasks": 2}, runs)
    assert [job.id for job in found.jobs] == ["2_3", "2_1"]
    assert left_out(found) == ["tasks of an array over its limit of tasks at once: 6 (2_4, 2_5, 2_6, ...)."]
    found = read(tmp_path, WAITS | array | {"array_task_string": "3-4,..."})
    assert [job.id for job in found.jobs] == ["2_3", "2_4"]
    assert "cut off its list" in left_out(found)[0]


def test_other_generic_resources_are_named_ones(tmp_path: Path) -> None:
    """By node, of all types together; a job of several nodes takes them on each; held ones as listed."""
    jobs = [
        RUNS | {"tres_per_node": "gres:nic:1"},
        RUNS | {"job_id": 5, "gres_detail": ["gpu:a100:0(IDX:N/A),nic:cx7:2(IDX:0,1)"]},
        WAITS | {"tres_per_node": "gres:nic:2", "tres_req_str": "cpu=1,mem=1G,node=1,gres/nic=2"},
        WAITS
        | {"job_id": 3, "tasks": 2, "tres_req_str": "cpu=2,node=2", "tres_per_node": "gres:gpu:1,gres:nic:1"}
        | {"node_count": 2, "max_nodes": 2},
    ]
    found = read(tmp_path, *jobs, gres="gpu:a100:4,nic:cx7:2,nic:mlx5:3,shard:16,bus:no_consume:1")
    kind = next(one for one in found.cluster.machines if one.id == found.cluster.nodes[0].machine)
    assert kind.resources == {"gres/nic": 5, "gres/bus": 1_000_000_000}
    takes = {job.id: (job.options[0].workers, job.options[0].demand.resources["gres/nic"]) for job in found.jobs}
    assert takes == {"1": (1, 1), "5": (1, 2), "2": (1, 2), "3": (2, 1)}
    plan = solve(found)
    assert [unplaced.job for unplaced in plan.unplaced] == ["3"]
    assert violations(found, plan) == []
    more = found.model_copy(update={"jobs": tuple(job for job in found.jobs if job.id != "3")})
    assert not solve(more).unplaced
