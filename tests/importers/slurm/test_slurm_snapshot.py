"""Slurm's nodes and jobs as a round; the expected round is worked out by hand from the two small files."""

from pathlib import Path
from typing import Any

import pytest

from helpers.imported_rounds import drained, held, left_out, notes_of, waiting
from helpers.node_conditions import chosen_nodes
from helpers.slurm_files import DATA, RUNS, WAITS, read
from placeopt import BadInput, PlaceoptError, Unsupported
from placeopt.importers import read_slurm

GIVE = "give the output of 'scontrol show nodes --json'"
MOST, MORE = {"allocated": 10**9}, {"allocated": 10**9 + 1}
"""MiB of memory: the most that is read, and beyond it."""
NODES, JOBS, TOPOLOGY = DATA / "slurm_nodes.json", DATA / "slurm_jobs.json", DATA / "topology.conf"


def test_the_small_cluster() -> None:
    """Who runs where on which GPUs; what is drained; an array of which two tasks may run; what waits is left out."""
    found = read_slurm(NODES, JOBS, TOPOLOGY)
    assert held(found) == {
        "501": {"gpu01": [0, 1]},
        "504": {"gpu01": [2], "gpu02": [0]},
        "502": {"gpu02": [3]},
        "503": {"gpu03": [0, 1, 2, 3]},
        "505": {"gpu04": [0]},
    }
    assert waiting(found) == {"506", "507_0", "507_1", "509"}
    assert left_out(found) == [
        "tasks of an array over its limit of tasks at once: 1 (507_2).",
        "waiting for Dependency: 1 (508).",
    ]
    assert drained(found) == ["gpu04"]
    assert {node.id: node.domain for node in found.cluster.nodes}["gpu03"] == "leaf2"
    jobs = {job.id: job for job in found.jobs}
    assert chosen_nodes(found, jobs["506"]) == ("gpu01", "gpu02", "gpu03")  # a100&ib
    pair = jobs["504"].options[0]
    assert (pair.workers, pair.workers_per_node_max, pair.demand.gpus, pair.demand.gpu_models) == (2, 1, 1, ())
    assert (pair.demand.cpu_millicores, pair.demand.memory_mib) == (8000, 51_200)
    assert pair.value == 2 * 11_641  # a priority of 11 digits
    assert (jobs["509"].kind, jobs["509"].options[0].value) == ("cpu", 11)
    assert found.now_ms == 1_790_000_000_000
    assert [jobs[name].priority for name in ("501", "506", "507_0", "507_1", "509")] == [0, 5, 6, 6, 7]


def test_unreported_gpus_are_the_lowest_with_room() -> None:
    """After those that are told; a note says so."""
    two = RUNS | {"tres_alloc_str": "cpu=2,mem=2G,gres/gpu=2"}
    found = read(two | {"job_id": 3, "gres_detail": []}, two | {"gres_detail": ["gpu:a100:2(IDX:0,2)"]})
    assert held(found) == {"3": {"gpu01": [1, 3]}, "1": {"gpu01": [0, 2]}}
    assert "lowest free" in notes_of(found)


def test_a_job_that_does_not_run_as_it_asked() -> None:
    """Six GPUs, four on one node and two on the other, with 6 CPUs each: a part of the job for each kind of node."""
    held_there = {"nodes": "gpu[01-02]", "gres_detail": ["gpu:a100:4(IDX:0-3)", "gpu:a100:2(IDX:1-2)"]}
    asked = {"tres_alloc_str": "cpu=12,mem=60G,node=2,gres/gpu=6", "tres_per_node": "gres:gpu:3", "node_count": 2}
    found = read(RUNS | held_there | asked)
    assert held(found) == {"1": {"gpu01": [0, 1, 2, 3]}, "1+1": {"gpu02": [1, 2]}}
    assert [job.options[0].demand.cpu_millicores for job in found.jobs] == [6000, 6000]
    assert "divided evenly" in notes_of(found)


def test_fields_of_slurm_node_by_node() -> None:
    """CPU of tasks that lie 44, 64 and 20 to a node: 32 workers of 4. With GPUs, a part for each: none counts less."""
    amounts = {"gpu01": (44, 22528), "gpu02": (64, 32768), "gpu03": (20, 10240)}
    allocation = [
        {"name": name, "cpus": {"count": cpus, "used": 0}, "memory": {"allocated": memory}}
        for name, (cpus, memory) in amounts.items()
    ]
    tasks = {"nodes": "gpu[01-03]", "tres_alloc_str": "cpu=128,mem=64G,node=3", "node_count": 3, "gres_detail": []}
    runs = RUNS | tasks | {"job_resources": {"nodes": {"allocation": allocation}}}
    found = read(runs)
    option = found.jobs[0].options[0]
    assert (option.workers, option.demand.cpu_millicores, option.demand.memory_mib) == (32, 4000, 2048)
    assert [len(part.workers) for part in found.running[0].assignments] == [11, 16, 5]
    found = read(runs | {"gres_detail": ["gpu:a100:1(IDX:3)"] * 3, "tres_per_node": "gres/gpu:1"})
    assert [one.assignments[0].cpu_millicores for one in found.running] == [44_000, 64_000, 20_000]


@pytest.mark.parametrize(
    ("fields", "memory_mib", "gpus"),
    [
        ({"tres_alloc_str": "cpu=8,mem=8G,node=1,gres/shard=2"}, 8192, 4),
        (
            {"job_resources": {"nodes": {"allocation": [{"name": "gpu01", "cpus": {"count": 8}, "memory": MOST}]}}},
            10**9,
            0,
        ),
        ({"job_resources": {"nodes": {"allocation": [{"name": "gpu01", "cpus": {"count": 8}, "memory": MORE}]}}}, 0, 4),
    ],
)
def test_what_cannot_be_read_of_a_running_job(fields: dict[str, Any], memory_mib: int, gpus: int) -> None:
    """Its GPUs: it keeps its CPUs and memory, and all GPUs left on its node; of its memory: that is unknown."""
    demand = read(RUNS | fields).jobs[0].options[0].demand
    assert (demand.gpus, demand.cpu_millicores, demand.memory_mib) == (gpus, 8000 * (memory_mib > 0), memory_mib)


def test_sites_that_do_not_account_for_gpus() -> None:
    """What is held stands in the details alone; what is asked for in its own fields; of several models any mix."""
    runs = RUNS | {"gres_detail": ["gpu:h100:1(IDX:0),gpu:h200:1(IDX:2)"], "tres_alloc_str": "cpu=1,mem=512M"}
    waits = WAITS | {"tres_per_job": "gres/gpu:6", "tres_req_str": "cpu=1,mem=512M,node=1", "memory_per_node": None}
    found = read(
        runs | {"tres_per_node": "gres/gpu:h100:1,gres/gpu:h200:1"},
        waits | {"cpus_per_tres": "gres/gpu:4", "memory_per_tres": "gres/gpu:100"},
    )
    assert held(found) == {"1": {"gpu01": [0, 2]}}
    assert "any mix" in notes_of(found)
    option = found.jobs[1].options[0]
    assert (option.workers, option.demand.gpus, option.demand.cpu_millicores) == (6, 1, 4000)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"job_state": None}, r"job_state: is missing"),
        ({"job_state": 7}, r"job_state: 7"),
        ({"job_id": "one"}, r"job_id: 'one'"),
        ({"nodes": "gpu[01"}, r"nodes: .*brackets"),
    ],
)
def test_broken_jobs_are_named(job: dict[str, Any], words: str) -> None:
    """Field and value, where it is not known who the job is, whether it runs, or on which nodes."""
    with pytest.raises(BadInput, match=rf"^jobs\.jobs\[0\]\.{words}"):
        read(RUNS | job)


@pytest.mark.parametrize(
    ("files", "error", "words"),
    [
        (({}, JOBS), BadInput, r"^nodes: no list 'nodes'"),
        ((NODES, {}), BadInput, r"^jobs: no list 'jobs'"),
        # from 23.02 on sinfo --json groups nodes
        (
            ({"sinfo": [{"nodes": {"total": 2}}]}, JOBS),
            Unsupported,
            rf"^nodes: no list 'nodes', but Slurm's list of sinfo; {GIVE}",
        ),
        ((NODES, NODES), Unsupported, "slurm_nodes.json: no list 'jobs', but Slurm's list of nodes"),
        ((JOBS, JOBS), Unsupported, r"slurm_jobs.json: no list 'nodes'.*scontrol show nodes --json"),
        ((NODES, JOBS, JOBS), Unsupported, r"topology\.conf"),
    ],
)
def test_files_of_another_command_are_named(files: Any, error: type[PlaceoptError], words: str) -> None:
    with pytest.raises(error, match=words):
        read_slurm(*files)


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text(JOBS.read_text()[:500])
    with pytest.raises(BadInput, match=r"cut\.json.*complete"):
        read_slurm(NODES, tmp_path / "cut.json")


@pytest.mark.parametrize("text", ["NodeName=gpu01 Arch=x86_64", "\nJobId=7 JobName=x", "  JOBID PARTITION  NAME"])
def test_plain_text_is_refused_with_the_expected_command(tmp_path: Path, text: str) -> None:
    """As scontrol and squeue print it for people."""
    (tmp_path / "text").write_text(text)
    with pytest.raises(Unsupported, match=r"plain text.*'scontrol show nodes --json', of Slurm before 23\.02 'sinfo "):
        read_slurm(tmp_path / "text", JOBS)
    with pytest.raises(Unsupported, match=r"plain text.*'squeue --json'"):
        read_slurm(NODES, tmp_path / "text")
