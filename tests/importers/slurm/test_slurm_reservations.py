"""Slurm's reservations: room for those that ask for them, and maintenance that begins at a time."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.slurm_files import RUNS, WAITS, idle_nodes
from placeopt import BadInput, Instance, Unsupported, solve
from placeopt.check import judge, violations
from placeopt.cli.run import run
from placeopt.importers import read_slurm

NOW_S, HOUR = 10_000, 3600
GPUS = WAITS | {"tres_per_node": "gres:gpu:4", "max_nodes": 1, "submit_time": NOW_S, "user_name": "ann", "account": "a"}
"""Four GPUs of one node."""


def listed(name: str = "r", nodes: str = "n0", begins: int = 0, ends: int = 100_000, **fields: Any) -> dict[str, Any]:
    """Return what Slurm prints of one reservation."""
    times = {"start_time": {"set": True, "infinite": False, "number": begins}, "end_time": ends}
    return {"name": name, "node_list": nodes, "flags": [], "users": "ann", "accounts": "", **times, **fields}


def read(*jobs: dict[str, Any], reserved: tuple[dict[str, Any], ...], nodes: int = 1, **fields: Any) -> Instance:
    hosts = idle_nodes(nodes)
    hosts["nodes"][0].update(fields)
    entries = [{**GPUS, **job, "job_id": n} for n, job in enumerate(jobs, 2)]
    return read_slurm(hosts, {"jobs": entries}, reservations={"reservations": list(reserved)})


def started(round_: Instance) -> set[str]:
    plan = solve(round_, time_limit_s=10)
    assert violations(round_, plan) == []
    return {one.job for one in plan.placements}


LATER = {"begins": NOW_S + 2 * HOUR}
RESERVED = {"state": ["IDLE", "RESERVED"], "reservation": "r"}


@pytest.mark.parametrize(
    ("job", "reservation", "starts"),
    [
        ({"time_limit": 120}, LATER, True),
        ({"time_limit": 121}, LATER, False),
        ({"time_limit": {"set": True, "infinite": True, "number": 0}}, LATER, False),
        ({}, LATER, False),
        ({"time_limit": 121}, {**LATER, "nodes": "n9"}, True),
        ({"time_limit": 121}, {**LATER, "flags": ["MAINT", "IGNORE_JOBS"]}, False),
        ({}, {"ends": NOW_S}, True),
        ({}, {}, False),
        ({}, {"flags": ["MAGNETIC"]}, True),
        ({"user_name": "bob"}, {"flags": ["MAGNETIC"]}, False),
        ({}, {"flags": ["MAGNETIC"], "accounts": "b"}, False),
        ({}, {"flags": ["MAGNETIC"], "users": "-ann"}, False),
        ({}, {"flags": ["MAGNETIC"], "users": "-bob", "accounts": "a,b"}, True),
        # reservations of cores: what is left of 32, and the part of the GPUs
        ({"tres_per_node": "gres:gpu:2"}, {"core_specializations": [{"node": "n0", "core": "0-3"}],
                                           "tres": "cpu=4,gres/gpu=2"}, True),
        ({"tres_per_node": "gres:gpu:3"}, {"core_specializations": [{"node": "n0", "core": "0-3"}],
                                           "tres": "cpu=4,gres/gpu=2"}, False),
        ({"tres_per_node": "", "cpus_per_task": 28}, {"core_specializations": [{"node": "n0", "core": "0-3"}]}, True),
        ({"tres_per_node": "", "cpus_per_task": 29}, {"core_specializations": [{"node": "n0", "core": "0-3"}]}, False),
    ],
)  # fmt: skip
def test_who_takes_of_reserved_room(job: dict[str, Any], reservation: dict[str, Any], starts: bool) -> None:
    """On the only node, which Slurm marks as reserved once the reservation has begun."""
    begun = not {"begins", "ends", "nodes"} & reservation.keys()
    round_ = read(job, reserved=(listed(**reservation),), **(RESERVED if begun else {}))
    assert started(round_) == ({"2"} if starts else set())
    own = read({**job, "resv_name": "r"}, reserved=(listed(**reservation),), **RESERVED)
    assert started(own) == {"2"}


def test_a_maintenance_of_all_nodes() -> None:
    """Short jobs start, long ones wait; what runs stays, and what runs into it is said."""
    runs = RUNS | {"nodes": "n0", "time_limit": 9000, "tres_alloc_str": "cpu=8,mem=8G,node=1,gres/gpu=4"}
    jobs = [runs, *({"time_limit": 60 + i % 2 * 600} for i in range(6))]
    round_ = read(*jobs, reserved=(listed("m", "n[0-7]", **LATER, flags=["MAINT"]),), nodes=8)
    assert len(round_.holds) == 8
    assert started(round_) == {"2", "3", "5", "7"}
    assert {one.where for one in judge(round_, solve(round_, time_limit_s=10)).standing} == {
        "node 'n0'", *(f"node 'n0' gpu {i}" for i in range(4))
    }  # fmt: skip


def test_a_file_and_what_is_none(tmp_path: Path) -> None:
    for name, text in (("n", idle_nodes(1)), ("j", {"jobs": [GPUS]}), ("r", {"reservations": [listed()]})):
        (tmp_path / name).write_text(json.dumps(text))
    files = [str(tmp_path / name) for name in "njr"]
    out = tmp_path / "round.json"
    command = ["import", "slurm", "--nodes", files[0], "--jobs", files[1], "--reservations", files[2]]
    assert run([*command, "--out", str(out)]) == 0
    assert [one["node"] for one in json.loads(out.read_text())["holds"]] == ["n0"]
    with pytest.raises(Unsupported, match=r"list of jobs; give the output of .scontrol show reservations --json"):
        read_slurm(idle_nodes(1), {"jobs": [GPUS]}, reservations={"jobs": []})
    with pytest.raises(BadInput, match="node_list"):
        read(GPUS, reserved=(listed(nodes="n[0"),))
