"""Slurm: nodes of every flag and spelling, and what runs: what is not known is kept or drained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.slurm_files import DATA, RUNS, WAITS, left_out, read
from placeopt import BadInput, Unsupported
from placeopt.formats import read_slurm


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
    """22.05 has a word and a list of flags, 23.02 one list; an unknown flag drains, and is counted."""
    found = read(tmp_path, state=state, state_flags=flags)
    assert found.cluster.nodes[0].drained == bool(reasons)
    lines = [line for line in found.note.splitlines() if "gpu01" in line]
    assert [line.split(":")[0] for line in lines] == [f"Drained, {reason}" for reason in reasons]


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
    """``gres=gpu:4`` is no GPU of a model called 4."""
    found = read(tmp_path, gres=gres)
    machine = next(one for one in found.cluster.machines if one.id == found.cluster.nodes[0].machine)
    assert [gpu.model for gpu in machine.gpus] == models


def test_a_node_whose_hardware_cannot_be_read_is_drained(tmp_path: Path) -> None:
    """Its jobs stay, the others' import goes on."""
    found = read(tmp_path, RUNS | {"gres_detail": ["gpu:a100:2(IDX:0-1)"]}, gres="gpu:many:too:few")
    assert found.cluster.nodes[0].drained
    assert "Drained, its hardware cannot be read: 1 (gpu01)." in found.note
    assert list(found.running[0].assignments[0].gpus) == ["0", "1"]
    assert "more GPUs than its node has or has left: 1 (1)." in found.note


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
    """All GPUs that no other job has, the node drained, counted; the import goes on."""
    node = {"gres": fields.pop("also")} if "also" in fields else {}
    other = RUNS | {"job_id": 7, "gres_detail": ["gpu:a100:1(IDX:3)"]}
    found = read(tmp_path, RUNS | fields, other, **node)
    held = {one.job: [int(gpu) for part in one.assignments for gpu in part.gpus] for one in found.running}
    assert held == {"1": [0, 1, 2], "7": [3]}
    assert found.cluster.nodes[0].drained
    assert "Drained, a job there holds what cannot be read: 1 (gpu01)." in found.note
    assert ": holds all GPUs left on its nodes: 1 (1)." in found.note


def test_gpus_without_a_reported_node_hold_all_nodes(tmp_path: Path) -> None:
    """Twelve GPUs, or six, on two nodes may lie 4 and 2; of --gpus-per-node it is known."""
    job = RUNS | {"nodes": "gpu[01-02]", "tres_alloc_str": "cpu=4,mem=4G,node=2,gres/gpu=6"}
    found = read(tmp_path, job)
    assert [node.drained for node in found.cluster.nodes[:3]] == [True, True, False]
    assert sum(len(part.gpus) for part in found.running[0].assignments) == 8
    found = read(tmp_path, job | {"tres_per_node": "gres:gpu:3"})
    assert [node.drained for node in found.cluster.nodes[:3]] == [False] * 3
    assert [len(part.gpus) for part in found.running[0].assignments] == [3, 3]


@pytest.mark.parametrize("state", ["SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", ["CANCELLED", "COMPLETING"]])
def test_jobs_that_still_have_their_nodes(tmp_path: Path, state: object) -> None:
    """A real Slurm's suspended job keeps its GPUs."""
    found = read(tmp_path, RUNS | {"job_state": state, "gres_detail": ["gpu:a100:2(IDX:1-2)"]})
    assert list(found.running[0].assignments[0].gpus) == ["1", "2"]


def test_a_job_in_an_unknown_state_with_nodes_runs(tmp_path: Path) -> None:
    """It may hold them; one that has ended does not; one that runs on no node is counted."""
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
    """Slurm gives them all; where the JSON says less, the node is drained."""
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
    """With PrivateData=jobs a user's list lacks the others' jobs; the nodes tell that they are there."""
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
    """The model has no such time: the job stays, its time is not known."""
    for value in (10**12, {"set": True, "infinite": False, "number": 10**15}, 2**64 - 2, 0xFFFFFFFE):
        found = read(tmp_path, RUNS | {field: value}, WAITS | {field: value})
        assert {job.id for job in found.jobs} == {"1", "2"}
        assert not any(node.drained for node in found.cluster.nodes[:3])
    (tmp_path / "j.json").write_text(json.dumps({"jobs": [RUNS], "last_update": 10**12}))
    assert read_slurm(tmp_path / "n.json", tmp_path / "j.json").now_ms == 100_000


def test_the_list_of_a_newer_sinfo_is_refused_with_the_expected_command(tmp_path: Path) -> None:
    """From 23.02 on sinfo --json groups nodes; scontrol has the list."""
    (tmp_path / "s.json").write_text(json.dumps({"sinfo": [{"node": {"state": ["IDLE"]}, "nodes": {"total": 2}}]}))
    with pytest.raises(Unsupported, match=r"'sinfo'.*give the output of 'scontrol show nodes --json'"):
        read_slurm(tmp_path / "s.json", DATA / "slurm_jobs.json")


def test_too_many_jobs_are_refused_while_they_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays by the thousand stop at the bound, not after the last."""
    monkeypatch.setattr("placeopt.formats.slurm.snapshot.MAX_JOBS", 10)
    arrays = [WAITS | {"job_id": i, "array_job_id": i, "array_task_string": "0-8"} for i in (1, 2)]
    with pytest.raises(BadInput, match="more than 10 jobs"):
        read(tmp_path, *arrays)


def test_a_node_with_drained_gpus_takes_no_work(tmp_path: Path) -> None:
    """Which GPUs they are is not known: Slurm itself prints nothing but N/A there."""
    assert "gpu01" in {node.id for node in read(tmp_path, gres_drained="gpu:1").cluster.nodes if node.drained}
    for nothing in ("N/A", "", None):
        assert "gpu01" not in {n.id for n in read(tmp_path, gres_drained=nothing).cluster.nodes if n.drained}
