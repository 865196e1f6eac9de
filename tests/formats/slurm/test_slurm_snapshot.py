"""Slurm's nodes and jobs as a round; the expected round is worked out by hand from the two small files."""

from pathlib import Path
from typing import Any

import pytest

from helpers.slurm_files import read
from placeopt import BadInput, Unsupported
from placeopt.formats import read_slurm

DATA = Path(__file__).resolve().parents[3] / "examples"
NODES, JOBS, TOPOLOGY = DATA / "slurm_nodes.json", DATA / "slurm_jobs.json", DATA / "topology.conf"
RUNNING = {"job_id": 1, "job_state": ["RUNNING"], "partition": "gpu", "nodes": "gpu01"}
PENDING = {"job_id": 2, "job_state": "PENDING", "partition": "gpu", "state_reason": "Priority"}


def test_the_small_cluster() -> None:
    """Who runs where on which GPUs; what is drained; an array of which two tasks may run; what waits is left out."""
    found = read_slurm(NODES, JOBS, TOPOLOGY)
    held = {
        (one.job, part.node, tuple(int(gpu) for gpu in part.gpus)) for one in found.running for part in one.assignments
    }
    assert held == {
        ("501", "gpu01", (0, 1)),
        ("504", "gpu01", (2,)),
        ("504", "gpu02", (0,)),
        ("502", "gpu02", (3,)),
        ("503", "gpu03", (0, 1, 2, 3)),
        ("505", "gpu04", (0,)),
    }
    waiting = {job.id for job in found.jobs} - {one.job for one in found.running}
    assert waiting == {"506", "507_0", "507_1", "509"}
    assert "Left out, waiting for Dependency: 1 (508)." in found.note
    assert "over its limit of tasks at once: 1 (507_2)." in found.note
    assert [node.id for node in found.cluster.nodes if node.drained] == ["gpu04"]
    assert {node.id: node.domain for node in found.cluster.nodes}["gpu03"] == "leaf2"
    jobs = {job.id: job for job in found.jobs}
    assert jobs["506"].nodes_allowed == ("gpu01", "gpu02", "gpu03")  # a100&ib
    pair = jobs["504"].options[0]
    assert (pair.workers, pair.workers_per_node_max, pair.demand.gpus, pair.demand.gpu_models) == (2, 1, 1, ())
    assert (pair.demand.cpu_millicores, pair.demand.memory_mib, pair.value) == (
        8000,
        51_200,
        2 * 11_641,
    )  # of 11 digits
    assert (jobs["509"].kind, jobs["509"].options[0].value) == ("cpu", 11)
    assert found.now_ms == 1_790_000_000_000
    assert [jobs[name].priority for name in ("501", "506", "507_0", "507_1", "509")] == [0, 5, 6, 6, 7]


def test_unreported_gpus_are_the_lowest_with_room(tmp_path: Path) -> None:
    """After those that are told; a note says so."""
    told = RUNNING | {"gres_detail": ["gpu:a100:2(IDX:0,2)"], "tres_alloc_str": "cpu=2,mem=2G,gres/gpu=2"}
    silent = RUNNING | {"job_id": 3, "tres_alloc_str": "cpu=2,mem=2G,gres/gpu=2", "gres_detail": []}
    found = read(tmp_path, silent, told)
    assert {one.job: tuple(one.assignments[0].gpus) for one in found.running} == {"3": ("1", "3"), "1": ("0", "2")}
    assert "lowest free" in found.note


def test_a_job_that_does_not_run_as_it_asked(tmp_path: Path) -> None:
    """Six GPUs, four on one node and two on the other, with 6 CPUs each: a part of the job for each kind of node."""
    split = RUNNING | {
        "nodes": "gpu[01-02]",
        "gres_detail": ["gpu:a100:4(IDX:0-3)", "gpu:a100:2(IDX:1-2)"],
        "tres_alloc_str": "cpu=12,mem=60G,node=2,gres/gpu=6",
        "tres_per_node": "gres:gpu:3",
        "node_count": 2,
    }
    found = read(tmp_path, split)
    assert [(one.job, list(one.assignments[0].gpus)) for one in found.running] == [
        ("1", ["0", "1", "2", "3"]),
        ("1+1", ["1", "2"]),
    ]
    assert [job.options[0].demand.cpu_millicores for job in found.jobs] == [6000, 6000]
    assert "divided evenly" in found.note


def test_fields_of_slurm_node_by_node(tmp_path: Path) -> None:
    """CPU of tasks that lie 44, 64 and 20 to a node: 32 workers of 4. With GPUs, a part for each: none counts less."""

    def held(name: str, cpus: int, memory: int) -> dict[str, Any]:
        return {"name": name, "cpus": {"count": cpus, "used": 0}, "memory": {"allocated": memory}}

    allocation = [held("gpu01", 44, 22528), held("gpu02", 64, 32768), held("gpu03", 20, 10240)]
    tasks = {"nodes": "gpu[01-03]", "tres_alloc_str": "cpu=128,mem=64G,node=3", "node_count": 3, "gres_detail": []}
    found = read(tmp_path, RUNNING | tasks | {"job_resources": {"nodes": {"allocation": allocation}}})
    option = found.jobs[0].options[0]
    assert (option.workers, option.demand.cpu_millicores, option.demand.memory_mib) == (32, 4000, 2048)
    assert [len(part.workers) for part in found.running[0].assignments] == [11, 16, 5]
    gpus = {**tasks, "gres_detail": ["gpu:a100:1(IDX:3)"] * 3, "tres_per_node": "gres/gpu:1"}
    found = read(tmp_path, RUNNING | gpus | {"job_resources": {"nodes": {"allocation": allocation}}})
    assert [one.assignments[0].cpu_millicores for one in found.running] == [44_000, 64_000, 20_000]


def test_sites_that_do_not_account_for_gpus(tmp_path: Path) -> None:
    """What is held stands in the details alone; what is asked for in its own fields; of several models any mix."""
    running = RUNNING | {"gres_detail": ["gpu:h100:1(IDX:0),gpu:h200:1(IDX:2)"], "tres_alloc_str": "cpu=1,mem=512M"}
    running["tres_per_node"] = "gres/gpu:h100:1,gres/gpu:h200:1"
    waiting = PENDING | {"tres_per_job": "gres/gpu:6", "tres_req_str": "cpu=1,mem=512M,node=1"}
    waiting |= {"cpus_per_tres": "gres/gpu:4", "memory_per_tres": "gres/gpu:100"}
    found = read(tmp_path, running, waiting)
    assert list(found.running[0].assignments[0].gpus) == ["0", "2"]
    assert "any mix" in found.note
    option = found.jobs[1].options[0]
    assert (option.workers, option.demand.gpus, option.demand.cpu_millicores) == (6, 1, 4000)


@pytest.mark.parametrize(
    ("request_fields", "shape"),
    [
        (
            {"tres_per_node": "gres/gpu:a100:4", "node_count": 2, "tasks": 2, "tres_req_str": "cpu=8,gres/gpu=8"},
            (2, 4, 1, ("a100",)),
        ),
        ({"tres_per_task": "gres/gpu:2", "tasks": {"set": True, "infinite": False, "number": 3}}, (3, 2, None, ())),
        ({"tres_per_job": "gres/gpu:5", "cpus_per_tres": "gres:gpu:1", "tres_req_str": "cpu=5"}, (5, 1, None, ())),
        ({"tres_per_job": "gres/gpu:5", "max_nodes": 1, "tres_req_str": "cpu=5,gres/gpu=5"}, (1, 5, None, ())),
        ({"tres_req_str": "cpu=5,mem=3G"}, (1, 0, None, ())),
    ],
)
def test_shapes_of_requests(tmp_path: Path, request_fields: dict[str, Any], shape: tuple[Any, ...]) -> None:
    """One worker a node, a task, or a GPU."""
    option = read(tmp_path, PENDING | request_fields).jobs[0].options[0]
    assert (option.workers, option.demand.gpus, option.workers_per_node_max, option.demand.gpu_models) == shape


def test_constraints_partitions_and_node_lists(tmp_path: Path) -> None:
    """Several partitions, names and excluded ones become lists of nodes; what is about several nodes is left out."""
    cases: list[dict[str, Any]] = [
        {"partition": "gpu,vis", "features": "l40s|ib", "excluded_nodes": "gpu02"},
        {"required_nodes": "gpu03"},
        {"features": "[a100*1&l40s*1]", "tasks": 2, "tres_req_str": "cpu=2,node=2", "max_nodes": 2},
    ]
    found = read(tmp_path, *({**PENDING, "job_id": i, **case} for i, case in enumerate(cases)))
    assert [job.nodes_allowed for job in found.jobs] == [("gpu01", "gpu03", "vis01"), ("gpu03",)]
    assert "about several nodes together, or one that cannot be read: 1 (2)" in found.note


def test_reserved_nodes_take_jobs_of_reservations(tmp_path: Path) -> None:
    """A taint on the node, a toleration in the job, on its nodes only; left out where no node tells the reservation."""
    jobs = [PENDING | {"resv_name": "course"}, {**PENDING, "job_id": 9}]
    found = read(tmp_path, *jobs, state=["IDLE", "RESERVED"], reservation="course")
    assert found.cluster.nodes[0].taints == ("reservation",)
    assert [(job.tolerations, job.nodes_allowed) for job in found.jobs] == [(("reservation",), ("gpu01",)), ((), None)]
    found = read(tmp_path, *jobs, state=["IDLE", "RESERVED"])
    assert [job.id for job in found.jobs] == ["9"]
    assert "Left out, waits in a reservation whose nodes are not listed: 1 (2)." in found.note


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"job_state": None}, ["jobs[0].job_state", "is missing"]),
        ({"job_state": 7}, ["jobs[0].job_state", "7"]),
        ({"job_id": "one"}, ["jobs[0].job_id", "'one'"]),
        ({"nodes": "gpu[01"}, ["jobs[0].nodes", "brackets"]),
    ],
)
def test_broken_jobs_are_named(tmp_path: Path, job: dict[str, Any], words: list[str]) -> None:
    """Field and value, where it is not known who the job is, whether it runs, or on which nodes."""
    with pytest.raises(BadInput) as error:
        read(tmp_path, RUNNING | job)
    for word in words:
        assert word in str(error.value)


def test_broken_files_are_named(tmp_path: Path) -> None:
    """No JSON, another command's JSON, no topology.conf."""
    (tmp_path / "cut.json").write_text(JOBS.read_text()[:500])
    with pytest.raises(BadInput, match=r"cut\.json.*complete"):
        read_slurm(NODES, tmp_path / "cut.json")
    with pytest.raises(BadInput, match="'jobs'"):
        read_slurm(NODES, NODES)
    with pytest.raises(Unsupported, match=r"slurm_jobs.json: no list 'nodes'.*scontrol show nodes --json"):
        read_slurm(JOBS, JOBS)
    with pytest.raises(Unsupported, match=r"topology\.conf"):
        read_slurm(NODES, JOBS, JOBS)


@pytest.mark.parametrize("text", ["NodeName=gpu01 Arch=x86_64", "\nJobId=7 JobName=x", "  JOBID PARTITION  NAME"])
def test_plain_text_is_refused_with_the_expected_command(tmp_path: Path, text: str) -> None:
    """As scontrol and squeue print it for people."""
    (tmp_path / "text").write_text(text)
    with pytest.raises(Unsupported, match=r"plain text.*'scontrol show nodes --json'"):
        read_slurm(tmp_path / "text", JOBS)
    with pytest.raises(Unsupported, match=r"plain text.*'squeue --json'"):
        read_slurm(NODES, tmp_path / "text")


def test_mig_instances_are_gpus_of_their_own(tmp_path: Path) -> None:
    """Two whole GPUs and three instances; a job holds the second instance, another waits for one."""
    runs = RUNNING | {"tres_alloc_str": "cpu=1,node=1,gres/gpu=1", "gres_detail": ["gpu:a100_1g.5gb:1(IDX:3)"]}
    waits = PENDING | {"tres_per_node": "gres/gpu:a100_1g.5gb:1", "tres_req_str": "cpu=1,node=1,gres/gpu=1"}
    found = read(tmp_path, runs, waits, gres="gpu:a100:2(S:0),gpu:a100_1g.5gb:3(S:0)")
    kinds = {machine.id: [gpu.model for gpu in machine.gpus] for machine in found.cluster.machines}
    assert kinds[found.cluster.nodes[0].machine] == ["a100", "a100", *["a100_1g.5gb"] * 3]
    assert list(found.running[0].assignments[0].gpus) == ["3"]
    assert next(job for job in found.jobs if job.id == "2").options[0].demand.gpu_models == ("a100_1g.5gb",)
    assert "MIG instances are read as GPUs of their own (a100_1g.5gb)" in found.note
