"""The rounds made by hand: every placement enumerated, so that the optimum in their README is a fact."""

from itertools import combinations
from pathlib import Path

import pytest

from placeopt import read_instance, solve
from placeopt.formats import Known, read_solu
from placeopt.model import Instance, Job, Postpone
from placeopt.topology import gpu_distances

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


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
    instance = read_instance(INSTANCES / "hand" / f"{name}.json")
    assert best_and_how_often(instance) == expected
    assert read_solu(INSTANCES / "best.solu")[name] == Known(expected[0], expected[0])


@pytest.mark.parametrize(("rule", "start"), [("none", {"soon", "late"}), ("utility", set()), ("lookahead", {"late"})])
def test_waiting_jobs_match_the_readme(rule: str, start: set[str]) -> None:
    """Who is placed runs across: GPUs 1 and 3 are all there is."""
    instance = read_instance(INSTANCES / "hand" / "minskys-wait.json")
    policy = instance.policy.model_copy(update={"postpone": Postpone.model_validate({"rule": rule})})
    plan = solve(instance, policy=policy, time_limit_s=10)
    placed = [placement for placement in plan.placements if placement.job in ("soon", "late")]
    assert {p.job for p in placed} == start
    assert all(set(p.assignments[0].gpus) == {"1", "3"} for p in placed)
    assert {unplaced.reason for unplaced in plan.unplaced} <= {"postponed"}
    if rule == "none":
        assert plan.status == "optimal"
        assert (plan.levels[0].objective, plan.costs["communication"].raw) == (8000, 40)
        assert read_solu(INSTANCES / "best.solu")["minskys-wait"] == Known(8000, 8000)
