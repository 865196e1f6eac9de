"""Slurm: nodes of every flag and spelling, and what runs: what is not known is kept or drained."""

from typing import Any

import pytest

from helpers.imported_rounds import drained, held, left_out, notes_of
from helpers.slurm_files import RUNS, WAITS, read, replies
from placeopt import BadInput
from placeopt.importers import read_slurm
from placeopt.model import Instance

ALWAYS = ["gpu04"]
"""The node of the small cluster that is drained anyhow."""


def closed(found: Instance) -> bool:
    """Tell whether the first node takes nothing new, and no other has changed."""
    assert drained(found) in (ALWAYS, ["gpu01", *ALWAYS])
    return "gpu01" in drained(found)


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
        (["IDLE", "SPLINES"], [], ["state SPLINES"]),
        ([], [], ["no state"]),
    ],
)
def test_flags_of_nodes_in_all_spellings(state: object, flags: object, reasons: list[str]) -> None:
    """22.05 has a word and a list of flags, 23.02 one list; an unknown flag drains, and is counted."""
    found = read(state=state, state_flags=flags)
    assert closed(found) == bool(reasons)
    lines = [line for line in notes_of(found).splitlines() if "gpu01" in line]
    assert [line.split(":")[0] for line in lines] == [f"Drained, {reason}" for reason in reasons]


@pytest.mark.parametrize(
    ("gres", "models"),
    [
        ("gpu:4", ["gpu"] * 4),  # which are no GPUs of a model called 4
        ("gpu:h100:1(S:0-1),gpu:2(S:0,1),shard:8", ["h100", "gpu", "gpu"]),
        ("gpu:0", []),
        ("(null)", []),
    ],
)
def test_gpus_of_nodes(gres: str, models: list[str]) -> None:
    found = read(gres=gres)
    machine = next(one for one in found.cluster.machines if one.id == found.cluster.nodes[0].machine)
    assert [gpu.model for gpu in machine.gpus] == models


@pytest.mark.parametrize(("told", "closes"), [("gpu:1", True), ("N/A", False), ("", False), (None, False)])
def test_a_node_with_drained_gpus_takes_no_work(told: str | None, closes: bool) -> None:
    """Which GPUs they are is not known: Slurm itself prints nothing but N/A there."""
    assert closed(read(gres_drained=told)) == closes


def test_a_node_whose_hardware_cannot_be_read_is_drained() -> None:
    """Its jobs stay, the others' import goes on."""
    found = read(RUNS | {"gres_detail": ["gpu:a100:2(IDX:0-1)"]}, gres="gpu:many:too:few")
    assert closed(found)
    assert "Drained, its hardware, or what is used of it, cannot be read: 1 (gpu01)." in notes_of(found)
    assert held(found) == {"1": {"gpu01": [0, 1]}}
    assert "more GPUs than its node has or has left: 1 (1)." in notes_of(found)


@pytest.mark.parametrize(
    ("fields", "node"),
    [
        ({"gres_detail": ["gpu:a100:2(IDX:0)"]}, {}),
        ({"gres_detail": ["gpu:a100:2(IDX:0,5000)"]}, {}),
        ({"gres_detail": ["gpu:a100:some"]}, {}),
        ({"gres_detail": ["gpu:a100:1(IDX:0)", "gpu:a100:1(IDX:0)"]}, {}),
        ({"gres_detail": ["shard:2(IDX:0)"]}, {}),
        ({"tres_per_node": "gres:shard:2"}, {}),
        ({"tres_alloc_str": "cpu=x"}, {}),
        ({"tres_alloc_str": ""}, {}),
        ({"user_name": "two\nlines"}, {}),
        ({"submit_time": {"set": True, "number": "soon"}}, {}),
        ({"gres_detail": ["gpu:1(IDX:N/A)"]}, {"gres": "gpu:h100:2,gpu:a100:2"}),
    ],
)
def test_a_running_job_that_cannot_be_read_holds_the_whole_node(fields: dict[str, Any], node: dict[str, Any]) -> None:
    """All GPUs that no other job has, the node drained, counted; the import goes on."""
    found = read(RUNS | fields, RUNS | {"job_id": 7, "gres_detail": ["gpu:a100:1(IDX:3)"]}, **node)
    assert held(found) == {"1": {"gpu01": [0, 1, 2]}, "7": {"gpu01": [3]}}
    assert closed(found)
    assert "Drained, a job there holds what cannot be read: 1 (gpu01)." in notes_of(found)
    assert ": holds all GPUs left on its nodes: 1 (1)." in notes_of(found)


def test_gpus_without_a_reported_node_hold_all_nodes() -> None:
    """Six GPUs on two nodes may lie 4 and 2; of --gpus-per-node it is known."""
    job = RUNS | {"nodes": "gpu[01-02]", "tres_alloc_str": "cpu=4,mem=4G,node=2,gres/gpu=6"}
    found = read(job)
    assert drained(found) == ["gpu01", "gpu02", *ALWAYS]
    assert held(found) == {"1": {"gpu01": [0, 1, 2, 3], "gpu02": [0, 1, 2, 3]}}
    found = read(job | {"tres_per_node": "gres:gpu:3"})
    assert (drained(found), held(found)) == (ALWAYS, {"1": {"gpu01": [0, 1, 2], "gpu02": [0, 1, 2]}})


@pytest.mark.parametrize("state", ["SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", ["CANCELLED", "COMPLETING"]])
def test_jobs_that_still_have_their_nodes(state: object) -> None:
    """A real Slurm's suspended job keeps its GPUs."""
    assert held(read(RUNS | {"job_state": state, "gres_detail": ["gpu:a100:2(IDX:1-2)"]})) == {"1": {"gpu01": [1, 2]}}


def test_a_job_in_an_unknown_state_with_nodes_runs() -> None:
    """It may hold them; one that has ended does not; one that runs on no node is counted."""
    odd = RUNS | {"job_state": ["WOBBLING"], "gres_detail": ["gpu:a100:1(IDX:0)"]}
    found = read(odd, RUNS | {"job_id": 2, "job_state": "COMPLETED"}, RUNS | {"job_id": 3, "nodes": ""})
    assert held(found).keys() == {"1"}
    assert "Kept as running, state WOBBLING, which is not known: 1 (1)." in notes_of(found)
    assert left_out(found) == ["runs on no node: 1 (3)."]


@pytest.mark.parametrize(
    "less",
    [
        {},
        {"gres_detail": ["gpu:a100:2(IDX:0-1)"]},
        {"tres_alloc_str": "cpu=2,mem=8G"},
        {"shared": "topo", "gres_detail": []},
    ],
)
def test_exclusive_jobs_that_run_hold_whole_nodes(less: dict[str, Any]) -> None:
    """Slurm gives them all; where the JSON says less, the node is drained."""
    whole = {"gres_detail": ["gpu:a100:4(IDX:0-3)"], "tres_alloc_str": "cpu=64,mem=8G,node=1", "shared": "none"}
    found = read(RUNS | whole | less)
    assert closed(found) == bool(less)
    assert ("Drained, held by an exclusive job that has not all of it: 1 (gpu01)." in notes_of(found)) == bool(less)
    if not less:
        demand = found.jobs[0].options[0].demand
        assert (demand.gpus, demand.cpu_millicores) == (4, 64_000)


@pytest.mark.parametrize(
    ("used", "more"),
    [
        ({"alloc_cpus": 8, "gres_used": "gpu:a100:1(IDX:0)"}, False),
        ({"alloc_cpus": 9}, True),
        ({"gres_used": "gpu:a100:2(IDX:0-1)"}, True),
    ],
)
def test_more_in_use_than_the_listed_jobs_hold_drains(used: dict[str, Any], more: bool) -> None:
    """With PrivateData=jobs a user's list lacks the others' jobs; the nodes tell that they are there."""
    found = read(RUNS | {"gres_detail": ["gpu:a100:1(IDX:0)"]}, **used)
    assert closed(found) == more
    assert ("more is in use there than the listed jobs hold: 1 (gpu01)" in notes_of(found)) == more


@pytest.mark.parametrize("field", ["submit_time", "start_time", "end_time", "time_limit"])
@pytest.mark.parametrize(
    "value", [10**12, {"set": True, "infinite": False, "number": 10**15}, 2**64 - 2, 0xFFFFFFFE, 2**53]
)
def test_times_that_no_clock_has_are_left_out(field: str, value: object) -> None:
    """The model has no such time: the job stays, its time is not known."""
    found = read(RUNS | {field: value}, WAITS | {field: value})
    assert {job.id for job in found.jobs} == {"1", "2"}
    assert not closed(found)


def test_the_moment_of_a_list_is_that_of_its_jobs_where_no_clock_has_it() -> None:
    nodes, jobs = replies(RUNS)
    assert read_slurm(nodes, {**jobs, "last_update": 10**12}).now_ms == 100_000


def test_too_many_jobs_are_refused_while_they_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays by the thousand stop at the bound, not after the last."""
    monkeypatch.setattr("placeopt.importers.slurm.snapshot.MAX_JOBS", 10)
    with pytest.raises(BadInput, match="more than 10 jobs"):
        read(*(WAITS | {"job_id": i, "array_job_id": i, "array_task_string": "0-8"} for i in (1, 2)))
