"""The stored instances: listed, readable, small, the same as the script makes them today; those by hand enumerated."""

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

from placeopt import read_instance, solve
from placeopt.benchmark import Known, read_solu
from placeopt.documents import read_bytes
from placeopt.model import Instance, Job, Postpone
from placeopt.topology import gpu_distances

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "instances"
LISTS = ("tiny", "openb", "generated", "hard", "real")


def listed(name: str) -> list[str]:
    return (STORED / f"{name}.test").read_text().split()


@pytest.mark.parametrize("path", sorted({path for name in LISTS for path in listed(name)}))
def test_every_listed_instance_reads(path: str) -> None:
    """Named as its file, with a source, and not above 200 kB."""
    file = STORED / path
    instance = read_instance(file)
    assert instance.name == file.name.removesuffix(".gz").removesuffix(".json")
    assert instance.note
    assert file.stat().st_size < 200_000


def test_lists_name_all_stored_instances() -> None:
    folders = ("hand", "openb", "generated", "hard", "real")  # others hold machines, not rounds
    stored = {f"{folder}/{file.name}" for folder in folders for file in (STORED / folder).glob("*.json*")}
    stored.remove("openb/openb-gpu-nodes.json.gz")  # nodes alone, and no jobs to place
    assert {path for name in LISTS for path in listed(name)} == stored


def test_openb_whole() -> None:
    """Known figures of the trace: 8,152 pods, 1,523 nodes of 27 shapes, 6,212 GPUs, of which 6,086.8 are asked for."""
    instance = read_instance(STORED / "openb" / "openb-default.json.gz")
    gpus = {machine.id: len(machine.gpus) for machine in instance.cluster.machines}
    assert (len(instance.jobs), len(instance.cluster.nodes), len(gpus)) == (8152, 1523, 27)
    assert sum(gpus[node.machine] for node in instance.cluster.nodes) == 6212
    assert sum(job.options[0].value for job in instance.jobs if job.kind != "cpu") == 6_086_800
    assert sum(job.kind == "cpu" for job in instance.jobs) == 1088


def test_script_makes_the_same_files(tmp_path: Path) -> None:
    """Of those made without the trace. Contents are compared, as another zlib may compress otherwise."""
    subprocess.run(
        [sys.executable, ROOT / "bench" / "instances" / "make_instances.py", "--out", tmp_path],
        check=True,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "bench")},
    )
    made = [file.relative_to(tmp_path) for file in tmp_path.rglob("*.json*")]
    assert len(made) == 22 + 28
    for file in made:
        assert read_bytes(tmp_path / file) == read_bytes(STORED / file), file
    for name in ("tiny", "generated", "hard", "large", "all"):
        assert (tmp_path / f"{name}.test").read_text() == (STORED / f"{name}.test").read_text()


def best_and_how_often(instance: Instance) -> tuple[int, int, int]:
    """Net value, communication and the number of plans that reach both, over all sets of GPUs of all jobs."""
    machine = instance.cluster.machines[0]
    distance = gpu_distances(machine).tolist()
    held = {int(gpu) for entry in instance.running for gpu in entry.assignments[0].gpus}
    running = {entry.job for entry in instance.running}
    jobs = [job for job in instance.jobs if job.id not in running]
    plans: list[tuple[int, int]] = []

    def place(rest: list[Job], free: frozenset[int], value: int, communication: int) -> None:
        if not rest:
            plans.append((-value, communication))
            return
        job, *others = rest
        place(others, free, value, communication)
        for gpus in combinations(sorted(free), job.options[0].demand.gpus):
            talk = job.communication.weight * sum(distance[a][b] for a, b in combinations(gpus, 2))
            place(others, free - set(gpus), value + job.options[0].value, communication + talk)

    kept = sum(job.options[0].value for job in instance.jobs if job.id in running)
    place(jobs, frozenset(range(len(machine.gpus))) - held, kept, 0)
    value, communication = min(plans)
    return -value, communication, plans.count((value, communication))


@pytest.mark.parametrize(
    ("name", "expected"), [("minsky-1", (4000, 4, 1)), ("dgx1-1", (8000, 28, 4)), ("dgx1-tour", (8000, 27, 24))]
)
def test_optimum_matches_the_readme(name: str, expected: tuple[int, int, int]) -> None:
    """Every placement is enumerated, so that the optimum in their README is a fact."""
    instance = read_instance(STORED / "hand" / f"{name}.json")
    assert best_and_how_often(instance) == expected
    assert read_solu(STORED / "best.solu")[name] == Known(expected[0], expected[0])


@pytest.mark.parametrize(("rule", "start"), [("none", {"soon", "late"}), ("utility", set()), ("lookahead", {"late"})])
def test_waiting_jobs_match_the_readme(rule: str, start: set[str]) -> None:
    """Who is placed runs across: GPUs 1 and 3 are all there is."""
    instance = read_instance(STORED / "hand" / "minskys-wait.json")
    policy = instance.policy.model_copy(update={"postpone": Postpone.model_validate({"rule": rule})})
    plan = solve(instance, policy=policy, time_limit_s=10)
    placed = [placement for placement in plan.placements if placement.job in ("soon", "late")]
    assert {p.job for p in placed} == start
    assert all(set(p.assignments[0].gpus) == {"1", "3"} for p in placed)
    assert {unplaced.reason for unplaced in plan.unplaced} <= {"postponed"}
    if rule == "none":
        assert plan.status == "optimal"
        assert (plan.levels[0].objective, plan.costs["communication"].raw) == (8000, 40)
        assert read_solu(STORED / "best.solu")["minskys-wait"] == Known(8000, 8000)
