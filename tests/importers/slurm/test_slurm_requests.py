"""Slurm: what waits is read exactly as it asked, or left out and counted by reason."""

from typing import Any

import pytest

from helpers.imported_rounds import held, left_out, notes_of
from helpers.node_conditions import chosen_nodes
from helpers.slurm_files import RUNS, WAITS, read
from placeopt import solve, violations
from placeopt.model import Node, Taint, Toleration

REASONS = (  # limits of accounts, qualities of service and partitions; held; dependent; before its time
    *("QOSMaxGRESPerUser", "AssocGrpGRES", "PartitionTimeLimit", "PartitionNodeLimit", "JobHoldMaxRequeue"),
    *("JobHeldUser", "JobHeldAdmin", "Dependency", "DependencyNeverSatisfied", "BeginTime", "Licenses"),
    *("Reservation", "ReservationDeleted", "ReqNodeNotAvail", "NodeDown", "BadConstraints", "PartitionDown"),
    *("PartitionInactive", "AccountNotAllowed", "InvalidAccount", "InvalidQOS", "QOSNotAllowed"),
    *("QOSGrpCpuLimit", "AssocMaxJobsLimit", "AssociationJobLimit", "QOSJobLimit", "JobArrayTaskLimit"),
    *("BurstBufferResources", "BurstBufferStageIn", "Cleaning", "FedJobLock", "MaxMemPerLimit", "DeadLine"),
    *("Prolog", "SystemFailure", "JobLaunchFailure", "QOSUsageThreshold", "AssocGrpCPURunMinutesLimit"),
    *("SchedDefer",),
)
WOBBLES = "state WOBBLING, which is not known"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        *(({"state_reason": reason}, f"waiting for {reason}") for reason in REASONS),
        *(({"state_reason": reason}, None) for reason in ("Priority", "Resources", "None")),
        ({"state_reason": "MoonPhase"}, "waiting for MoonPhase"),
        ({"priority": 0}, "waiting, held (priority 0)"),
        ({"hold": True}, "waiting, held (priority 0)"),
        (
            {"state_reason": "None", "state_description": "launch failed requeued held"},
            "waiting, launch failed requeued held",
        ),
        ({"job_state": ["PENDING", "REQUEUE_HOLD"]}, "state REQUEUE_HOLD"),
        ({"job_state": ["PENDING", "WOBBLING"]}, WOBBLES),
        ({"job_state": ["WOBBLING"]}, WOBBLES),
    ],
)
def test_only_reasons_that_room_ends_let_a_job_start(fields: dict[str, Any], reason: str | None) -> None:
    found = read(WAITS | fields, RUNS | {"job_id": 11, "job_state": "COMPLETED"})
    assert [job.id for job in found.jobs] == ["2"] * (reason is None)
    assert left_out(found) == [f"{reason}: 1 (2)."] * (reason is not None)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        *(({"state_reason": word}, "not eligible") for word in ("JobHeldUser", "Dependency", "BeginTime")),
        ({"state_reason": "BeginTime", "contiguous": True}, "not eligible"),  # whatever it asks for
        ({"priority": 0}, "not eligible"),
        ({"job_state": ["PENDING", "REQUEUE_HOLD"]}, "not eligible"),
        ({"state_reason": "QOSGrpCpuLimit"}, "left out"),  # it starts as others end
        ({"state_reason": "MoonPhase"}, "left out"),
        ({"contiguous": True}, "left out"),
        ({"job_state": ["PENDING", "WOBBLING"]}, "left out"),
    ],
)
def test_what_no_room_starts_is_told_from_what_is_not_read(fields: dict[str, Any], kind: str) -> None:
    """An answer about a round without the former is one of the cluster."""
    found = read(WAITS | fields, RUNS)
    assert [note.kind for note in found.reading if "2" in note.names] == [kind]
    assert solve(found, isolation="thread").of == ("cluster" if kind == "not eligible" else "reading")


TWO = {"max_nodes": 2, "tres_req_str": "cpu=4,mem=2G,node=2"}
BY_CPU = {"memory_per_node": None, "memory_per_cpu": 10}
PAIR = TWO | {"tasks": 2, "tres_req_str": "cpu=2,node=2"}
MORE = "asks for more nodes by name, or with a feature, than it has"
BY_NODE = "asks for memory by node, and any number of nodes or of tasks a node"
NO_CPUS = "asks for --gpus without --cpus-per-gpu, and not for one node or one CPU a task"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"contiguous": True}, "states contiguous, which is not read"),
        ({"het_job_id": 2, "het_job_id_set": "2-3"}, "a component of the heterogeneous job does not wait"),
        ({"tres_per_socket": "gres:gpu:2"}, "states tres_per_socket, which is not read"),
        (TWO | {"tasks": 2, "required_switches": 1}, "asks for --switches, and no topology is given"),
        ({"licenses": "matlab:1"}, "asks for license/matlab, which is not listed"),
        ({"minimum_tmp_disk_per_node": 10}, "states minimum_tmp_disk_per_node, and nodes do not"),
        ({"core_spec": 1}, "states core_spec, which is not read"),
        ({"tres_per_node": "gres:shard:2"}, "asks for gres/shard, and not for an equal part of a GPU"),
        ({"tres_per_task": "gres:shard:2"}, "asks for gres/shard, and not by node"),
        ({"tres_per_node": "gres:nic:cx7:1"}, "asks for gres/nic:cx7"),
        ({"tres_per_job": "gres:nic:1"}, "asks for gres/nic, and not by node"),
        (
            {"tres_per_job": "gres:gpu:4", "tres_per_task": "gres:nic:1"},
            "--gpus, and for other resources by node or task",
        ),
        (
            {"tasks": 4, "tres_per_job": "gres:gpu:4", "tasks_per_tres": 2},
            "--ntasks-per-gpu, and not for as many tasks",
        ),
        ({"tres_req_str": "cpu=1,mem=1G,node=1,license/matlab=1"}, "asks for license/matlab"),
        ({"tres_per_task": "license/x:1"}, "asks for license/x"),
        ({"tres_per_node": "gres:gpu:a100:1,gres:gpu:l40s:1"}, "asks for several types of GPUs"),
        ({"tres_per_node": "gres:gpu:1", "tres_per_task": "gres:gpu:1"}, "asks for GPUs in several ways"),
        ({"tres_per_job": "gres:gpu:6"}, BY_NODE),
        ({"tres_per_job": "gres:gpu:6", "tres_req_str": "cpu=2,node=1"}, NO_CPUS),
        ({"tres_per_job": "gres:gpu:6", "tasks": 7, "tres_req_str": "cpu=7,node=1"}, NO_CPUS),
        ({"tasks": 4, "tres_per_node": "gres:gpu:4"}, "asks for GPUs or memory by node, and any number of nodes"),
        (
            TWO | {"tasks": 6, "tres_per_node": "gres:gpu:4", "tres_req_str": "cpu=6,node=2"},
            "may have more tasks on one of its nodes than on another",
        ),
        ({"tasks": 4}, BY_NODE),
        (BY_CPU | {"tasks": 2, "max_nodes": 3, "tres_req_str": "cpu=2,node=3"}, "more nodes than it has tasks or GPUs"),
        ({"tres_per_job": "gres:gpu:6", "cpus_per_tres": "gres:gpu:4"}, BY_NODE),
        ({"shared": "user"}, "asks for --exclusive=user, and states none"),
        ({"exclusive": ["mcs"]}, "asks for --exclusive=mcs, and states none"),
        ({"exclusive": ["topo"]}, "asks for --exclusive=topo"),
        ({"shared": "none", "tres_per_node": "gres:gpu:9"}, "--exclusive with more than its nodes have"),
        ({"shared": "none", "features": "none-has-it"}, "--exclusive with more than its nodes have"),
        (BY_CPU | {"shared": "none", "tasks": 4}, "--exclusive on any number of nodes"),
        (PAIR | {"required_nodes": "gpu[01-03]"}, MORE),
        ({"features": "a100*2"}, MORE),
        (PAIR | {"features": "[a100*2&l40s*1]"}, MORE),
        (PAIR | {"features": "[a100*1&l40s]"}, "a constraint about several nodes together, or one that cannot be read"),
        (PAIR | {"features": "a100*1&l40s*1"}, "a constraint about several nodes together, or one that cannot be read"),
        (PAIR | {"features": "a100*1", "prefer": "ib"}, "--prefer, and for so many nodes with a feature"),
        (
            TWO | BY_CPU | {"features": "[a100*1&l40s*1]", "tasks": 4},
            "asks for several kinds of nodes, and not for one worker on each",
        ),
        ({"resv_name": "course"}, "waits in a reservation whose nodes are not listed"),
        ({"tres_req_str": "cpu=x"}, "cannot be read: tres_req_str"),
        ({"tres_req_str": "cpu"}, "cannot be read: tres_req_str"),
        ({"tres_per_node": "gres:gpu:a:b:c"}, "cannot be read: tres_per_node"),
        ({"tasks": "some"}, "cannot be read: tasks"),
        ({"shared": 5}, "cannot be read: shared"),
        ({"prefer": 5}, "cannot be read: prefer"),
        ({"features": "[]"}, "a constraint about several nodes together, or one that cannot be read"),
        ({"submit_time": {"set": True, "number": "soon"}}, "cannot be read: submit_time.number"),
        ({"user_name": "two\nlines"}, "cannot be read: user"),
        ({"excluded_nodes": "gpu[01"}, "cannot be read: excluded_nodes"),
        ({"array_task_string": "x"}, "cannot be read: array_task_string"),
        ({"tres_per_node": "gres:gpu:5000"}, "cannot be read: gpus"),
    ],
)
def test_waiting_jobs_that_are_left_out(fields: dict[str, Any], reason: str) -> None:
    """What is not read exactly, or not at all, is counted by reason; the import goes on."""
    found = read(WAITS | fields, WAITS | {"job_id": 9})
    assert [job.id for job in found.jobs] == ["9"]
    (line,) = left_out(found)
    assert reason in line


@pytest.mark.parametrize("field", ["shared", "user_name", "prefer"])
def test_a_running_job_with_a_field_that_cannot_be_read_stays(field: str) -> None:
    found = read(RUNS | {field: {"odd": 1}}, WAITS)
    assert f"Kept as running, cannot be read: {field}" in notes_of(found)
    assert len(found.jobs) == 2


ODD = {"flavour": "mint"}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (ODD, "states flavour, which is not read"),
        ({"flavour": ["mint"]}, "states flavour, which is not read"),
        ({"flavour": {"set": True, "infinite": False, "number": 3}}, "states flavour, which is not read"),
        ({"flavour": {"mint": {"leaves": 4}}}, "states flavour, which is not read"),
        ({"flavour": True}, "states flavour, which is not read"),
        ({"mcs_label": "physics"}, "states mcs_label, which is not read"),
        ({"flags": ["CRON_JOB", "GRES_BINDING_ENFORCED"]}, "states GRES_BINDING_ENFORCED, which is not read"),
        ({"dependency": "afterok:7(unfulfilled)"}, "states dependency, which is not read"),
        *(({"flavour": unset}, None) for unset in ("", "(null)", "N/A", [], {}, 0, 0xFFFE, 2**64 - 2, False, None)),
        ({"flavour": {"set": False, "infinite": False, "number": 3}}, None),
        ({"flavour": {"set": True, "infinite": True, "number": 0}}, None),
        ({"flavour": {"mint": {"leaves": 0}}}, None),
        ({"flags": ["CRON_JOB"], "wckey": "a", "nice": 7}, None),
        ({"extra": "rank=3"}, None),
    ],
)
def test_a_field_that_is_not_known_leaves_its_job_out(fields: dict[str, Any], reason: str | None) -> None:
    """Where it states something; the other job does not have it."""
    found = read(WAITS | fields, WAITS | {"job_id": 9})
    assert left_out(found) == [f"{reason}: 1 (2)."] * (reason is not None)
    assert len(read(WAITS | fields).jobs) == (reason is None), "one job alone is no evidence of a setting"


def test_a_field_that_all_jobs_state_alike_is_the_setting_of_the_cluster() -> None:
    """It is named once; a request that is known remains one, and so does an unlike value."""
    alike = read(WAITS | ODD, WAITS | ODD | {"job_id": 9}, RUNS | ODD)
    assert ([job.id for job in alike.jobs], left_out(alike)) == (["2", "9", "1"], [])
    assert "All jobs state the same flavour, which is not read." in notes_of(alike)
    unlike = read(WAITS | ODD, WAITS | ODD | {"job_id": 9}, RUNS | {"flavour": "basil"})
    assert left_out(unlike) == ["states flavour, which is not read: 2 (2, 9)."]
    known = read(WAITS | {"contiguous": True}, WAITS | {"contiguous": True, "job_id": 9})
    assert left_out(known) == ["states contiguous, which is not read: 2 (2, 9)."]


@pytest.mark.parametrize(
    ("fields", "unread"),
    [
        ({}, False),
        (ODD, True),
        ({"contiguous": True}, True),
        ({"segment_size": 2}, True),
        ({"flags": ["GRES_BINDING_ENFORCED"]}, True),
        ({"features": "[a100|l40s]*2"}, True),
        ({"features": "a100*1", "sockets_per_node": 1}, False),
        ({"het_job_id": 1, "het_job_id_set": "1-2"}, True),
    ],
)
def test_where_else_a_running_job_may_be(fields: dict[str, Any], unread: bool) -> None:
    """A request that is not read leaves open whether it may run elsewhere; where it runs is known to do."""
    (job,) = read(RUNS | fields | {"comment": "placeopt.movable"}).jobs
    assert (job.conditions_unread, job.conditions.nodes_allowed) == (unread, ("gpu01",) if unread else None)


def test_a_filter_by_values_of_nodes() -> None:
    """--extra filters where nodes state values to filter by."""
    found = read(WAITS | {"extra": "rank=3"}, WAITS | {"job_id": 9}, extra='{"rank": 3}')
    assert left_out(found) == ["states extra, which is not read: 1 (2)."]


@pytest.mark.parametrize(
    ("fields", "drained"),
    [
        ({"flavour": "mint"}, ["gpu01"]),
        ({"owner": "", "flavour": "", "comment": "rack 3", "weight": 7}, []),
    ],
)
def test_a_field_that_is_not_known_drains_its_node(fields: dict[str, Any], drained: list[str]) -> None:
    found = read(WAITS, **fields)
    assert [node.id for node in found.cluster.nodes if node.drained and node.id != "gpu04"] == drained
    assert [f"{name} is set, which is not read: 1 (gpu01)" in notes_of(found) for name in list(fields)[:1]] == [
        bool(drained)
    ]


@pytest.mark.parametrize(
    ("running", "asked", "starts"),
    [  # gpu01 has 64 CPUs and 4 GPUs that keep 8 CPUs each: 32 are for all jobs
        ({}, [32], True),
        ({}, [33], False),
        ({}, [20, 12], True),
        ({}, [20, 13], False),
        ({"tres_alloc_str": "cpu=20,mem=1G,node=1"}, [13], False),
        ({"tres_alloc_str": "cpu=28,mem=1G,node=1,gres/gpu=1", "tres_per_node": "gres:gpu:1"}, [12], True),
        ({"tres_alloc_str": "cpu=28,mem=1G,node=1,gres/gpu=1", "tres_per_node": "gres:gpu:1"}, [13], False),
        ({"tres_alloc_str": "cpu=20,mem=1G,node=1"}, [(20, 1)], True),
        ({"tres_alloc_str": "cpu=20,mem=1G,node=1"}, [(21, 1)], False),
    ],
)
def test_cpus_that_are_kept_for_gpu_jobs(running: dict[str, Any], asked: list[Any], starts: bool) -> None:
    jobs = [RUNS | running] if running else []
    for n, one in enumerate(asked, 2):
        cpus, gpus = one if isinstance(one, tuple) else (one, 0)
        fields = {"job_id": n, "tres_req_str": f"cpu={cpus},mem=1M,node=1", "memory_per_node": 1, "max_nodes": 1}
        jobs.append(WAITS | fields | {"required_nodes": "gpu01", "tres_per_node": f"gres:gpu:{gpus}"})
    found = read(*jobs, res_cores_per_gpu=8, gpu_spec="0-31", threads=1)
    plan = solve(found, time_limit_s=5)
    assert (len(plan.unplaced) == 0, violations(found, plan)) == (starts, [])


def test_what_a_node_keeps_for_the_system_is_not_given() -> None:
    """Cores in threads, where the list does not state the CPUs without them."""
    kept = {"specialized_memory": 24_000, "specialized_cores": 3, "threads": 2, "effective_cpus": None, "cpus": 64}
    machine = read(WAITS, **kept).cluster.machines[0]
    whole = read(WAITS, cpus=64, effective_cpus=None).cluster.machines[0]
    assert (machine.cpu_millicores, machine.memory_mib) == (58_000, whole.memory_mib - 24_000)
    assert read(WAITS, effective_cpus=60, specialized_cores=3).cluster.machines[0].cpu_millicores == 60_000


SIX = {"tres_per_job": "gres:gpu:6", "cpus_per_tres": "gres:gpu:4"}
TASKS = {"tasks": 4, "tres_per_task": "gres:gpu:1", "tres_req_str": "cpu=8,node=1"}
EXCLUSIVE = {"shared": "none", "tres_per_node": "gres:gpu:1", "features": "ib"}
BY_GPU = {"memory_per_node": None, "memory_per_tres": "gres:gpu:10"}
FIVE = {"tres_per_job": "gres/gpu:5", "memory_per_node": None}
THREE = {"tasks": {"set": True, "infinite": False, "number": 3}}
A100 = ("a100",)


@pytest.mark.parametrize(
    ("fields", "shapes"),
    [  # workers, GPUs, CPUs and MiB of each, most workers a node, nodes, models
        (SIX | BY_GPU, [(6, 1, 4, 10, None, None, ())]),
        (TWO | SIX | {"tres_per_job": "gres:gpu:12"} | BY_GPU, [(12, 1, 4, 10, None, 2, ())]),
        ({"tres_per_job": "gres:gpu:3", "max_nodes": 1}, [(1, 3, 1, 1024, None, None, ())]),
        (TASKS | {"max_nodes": 1}, [(1, 4, 8, 1024, None, None, ())]),
        (TASKS | BY_CPU, [(4, 1, 2, 20, None, None, ())]),
        (TWO | {"tasks": 2, "tres_per_node": "gres:gpu:2"}, [(2, 2, 2, 1024, 1, None, ())]),
        (TWO | {"tasks": 2, "tres_per_node": "gres/gpu:a100:4"}, [(2, 4, 2, 1024, 1, None, A100)]),
        (
            {"tasks": 4, "tasks_per_node": 2, "tres_per_node": "gres:gpu:2", "tres_req_str": "cpu=8,node=2"},
            [(2, 2, 4, 1024, 1, None, ())],
        ),
        (TWO | {"tasks": 4, "tasks_per_node": 2, "tres_per_task": "gres:gpu:1"}, [(2, 2, 2, 1024, 1, None, ())]),
        (
            {"tasks": 2, "tres_per_node": "gres:gpu:4", "tres_req_str": "cpu=1,node=2", "max_nodes": 4},
            [(nodes, 4, 1, 1024, 1, None, ()) for nodes in (2, 3, 4)],
        ),
        (TASKS | {"tasks": 6, "tasks_per_node": 3, "tres_req_str": "cpu=6"} | BY_CPU, [(6, 1, 1, 10, 3, None, ())]),
        (THREE | {"tres_per_task": "gres/gpu:2", "tres_req_str": ""} | BY_CPU, [(3, 2, 1, 10, None, None, ())]),
        (TWO | {"tasks": 4} | BY_CPU, [(4, 0, 1, 10, None, 2, ())]),
        ({"minimum_cpus_per_node": 10, "max_nodes": 1}, [(1, 0, 10, 1024, None, None, ())]),
        ({"tres_req_str": "cpu=5,mem=3G", "memory_per_node": None}, [(1, 0, 5, 3072, None, None, ())]),
        (FIVE | {"tres_req_str": "cpu=1"}, [(5, 1, 1, 0, None, None, ())]),
        (FIVE | {"cpus_per_tres": "gres:gpu:1", "tres_req_str": "cpu=5"}, [(5, 1, 1, 0, None, None, ())]),
        (FIVE | {"max_nodes": 1, "tres_req_str": "cpu=5,gres/gpu=5"}, [(1, 5, 5, 0, None, None, ())]),
        (FIVE | {"tasks": 10, "tasks_per_tres": 2, "tres_req_str": "cpu=30"}, [(5, 1, 6, 0, None, None, ())]),
        (
            TWO | {"tasks": 8, "tasks_per_tres": 2, "tres_per_node": "gres:gpu:2", "tres_req_str": "cpu=8,node=2"},
            [(2, 2, 4, 1024, 1, None, ())],
        ),
        (EXCLUSIVE, [(1, 4, 64, 1024, None, None, ())]),
        (EXCLUSIVE | {"exclusive": ["true"], "shared": None}, [(1, 4, 64, 1024, None, None, ())]),
        (TWO | EXCLUSIVE | {"shared": ["none"], "tasks": 2}, [(2, 4, 64, 1024, 1, None, ())]),
        (TWO | {"exclusive": ["true"], "tasks": 4, "features": "ib"} | BY_CPU, [(2, 4, 64, 20, 1, None, ())]),
    ],
)
def test_waiting_jobs_that_are_read(fields: dict[str, Any], shapes: list[tuple[object, ...]]) -> None:
    """--gpus with --cpus-per-gpu, fixed numbers and ranges of nodes, tasks a node, --exclusive."""
    read_as = []
    found = read(WAITS | fields)
    for one in found.jobs[0].options:
        of_each = (one.demand.gpus, one.demand.cpu_millicores // 1000, one.demand.memory_mib)
        nodes = one.splits[0].domains if one.splits else None
        read_as.append((one.workers, *of_each, one.workers_per_node_max, nodes, one.demand.gpu_models))
    assert read_as == shapes
    assert ("for which no memory is stated" in notes_of(found)) == any(memory == 0 for _, _, _, memory, *_ in shapes)


@pytest.mark.parametrize(
    ("fields", "nodes"),
    [  # brackets and counts of one are about the one node; names and excluded ones become lists of nodes
        ({"partition": "gpu,vis", "features": "[a100|l40s]"}, ("gpu01", "gpu02", "gpu03", "gpu04", "vis01")),
        ({"partition": "gpu,vis", "features": "a100*1"}, ("gpu01", "gpu02", "gpu03", "gpu04")),
        ({"partition": "gpu,vis", "features": "a100&ib"}, ("gpu01", "gpu02", "gpu03")),
        ({"partition": "gpu,vis", "features": "a100|l40s"}, ("gpu01", "gpu02", "gpu03", "gpu04", "vis01")),
        (
            {"partition": "gpu,vis", "features": "l40s|ib", "excluded_nodes": "gpu02"},
            ("gpu01", "gpu03", "vis01"),
        ),
        ({"required_nodes": "gpu03"}, ("gpu03",)),
    ],
)
def test_constraints_partitions_and_node_lists(fields: dict[str, Any], nodes: tuple[str, ...]) -> None:
    found = read(WAITS | fields)
    assert chosen_nodes(found, found.jobs[0]) == nodes


def test_a_constraint_holds_for_nodes_that_come_later() -> None:
    """It is data of the round: a node with the features is one for the job, one without is not."""
    found = read(WAITS | {"partition": "gpu,vis", "features": "l40s|ib", "excluded_nodes": "gpu02"})
    labels = {"new": ("partition:vis", "feature:ib"), "plain": ("partition:gpu",), "apart": ("feature:ib",)}
    (first, *_), machine = found.cluster.nodes, found.cluster.machines[0].id
    added = tuple(Node(id=name, machine=machine, labels=dict.fromkeys(marks, "yes")) for name, marks in labels.items())
    later = found.model_copy(update={"cluster": found.cluster.model_copy(update={"nodes": (first, *added)})})
    assert chosen_nodes(later, found.jobs[0]) == ("gpu01", "new")


def test_reserved_nodes_take_jobs_of_reservations() -> None:
    """A taint on the node, a toleration in the job, on its nodes only."""
    found = read(
        WAITS | {"resv_name": "course"}, WAITS | {"job_id": 9}, state=["IDLE", "RESERVED"], reservation="course"
    )
    assert found.cluster.nodes[0].taints == (Taint(key="reservation"),)
    tolerated = Toleration(key="reservation", operator="Exists")
    assert [job.conditions.tolerations for job in found.jobs] == [(tolerated,), ()]
    assert chosen_nodes(found, found.jobs[0]) == ("gpu01",)


def test_arrays_and_their_limits() -> None:
    """Of tasks 3-9, two at once, one runs: one more may start; a list that Slurm cut is counted."""
    array = WAITS | {"array_job_id": 2, "array_task_id": None}
    runs = RUNS | {"job_id": 3, "array_job_id": 2, "array_task_id": 1}
    found = read(array | {"array_task_string": "3-9%2", "array_max_tasks": 2}, runs)
    assert [job.id for job in found.jobs] == ["2_3", "2_1"]
    assert left_out(found) == ["tasks of an array over its limit of tasks at once: 6 (2_4, 2_5, 2_6, ...)."]
    found = read(array | {"array_task_string": "3-4,..."})
    assert [job.id for job in found.jobs] == ["2_3", "2_4"]
    assert "cut off its list" in left_out(found)[0]


def test_other_generic_resources_are_named_ones() -> None:
    """By node, of all types together; a job of several nodes takes them on each; held ones as listed."""
    gang = {"tasks": 2, "tres_req_str": "cpu=2,node=2", "tres_per_node": "gres:gpu:1,gres:nic:1", "node_count": 2}
    found = read(
        RUNS | {"tres_per_node": "gres:nic:1"},
        RUNS | {"job_id": 5, "gres_detail": ["gpu:a100:0(IDX:N/A),nic:cx7:2(IDX:0,1)"]},
        WAITS | {"tres_per_node": "gres:nic:2", "tres_req_str": "cpu=1,mem=1G,node=1,gres/nic=2"},
        WAITS | {"job_id": 3, "max_nodes": 2} | gang,
        gres="gpu:a100:4,nic:cx7:2,nic:mlx5:3,shard:16,bus:no_consume:1",
    )
    kind = next(one for one in found.cluster.machines if one.id == found.cluster.nodes[0].machine)
    assert kind.resources == {"gres/nic": 5, "gres/bus": 1_000_000_000, "gres/shard": 16}
    takes = {job.id: (job.options[0].workers, job.options[0].demand.resources["gres/nic"]) for job in found.jobs}
    assert takes == {"1": (1, 1), "5": (1, 2), "2": (1, 2), "3": (2, 1)}
    plan = solve(found)
    assert [unplaced.job for unplaced in plan.unplaced] == ["3"]
    assert violations(found, plan) == []
    more = found.model_copy(update={"jobs": tuple(job for job in found.jobs if job.id != "3")})
    assert not solve(more).unplaced


def test_mig_instances_are_gpus_of_their_own() -> None:
    """Two whole GPUs and three instances; a job holds the second instance, another waits for one."""
    runs = RUNS | {"tres_alloc_str": "cpu=1,node=1,gres/gpu=1", "gres_detail": ["gpu:a100_1g.5gb:1(IDX:3)"]}
    waits = WAITS | {"tres_per_node": "gres/gpu:a100_1g.5gb:1", "tres_req_str": "cpu=1,node=1,gres/gpu=1"}
    found = read(runs, waits, gres="gpu:a100:2(S:0),gpu:a100_1g.5gb:3(S:0)")
    kinds = {machine.id: [gpu.model for gpu in machine.gpus] for machine in found.cluster.machines}
    assert kinds[found.cluster.nodes[0].machine] == ["a100", "a100", *["a100_1g.5gb"] * 3]
    assert held(found) == {"1": {"gpu01": [3]}}
    assert next(job for job in found.jobs if job.id == "2").options[0].demand.gpu_models == ("a100_1g.5gb",)
    assert "MIG instances are read as GPUs of their own (a100_1g.5gb)" in notes_of(found)
