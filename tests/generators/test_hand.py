"""The rounds made by hand: every placement enumerated, so that the optimum in their README is a fact."""

from itertools import combinations
from pathlib import Path

import pytest

from placeopt.formats.documents import read_instance
from placeopt.model import Instance, Job
from placeopt.topology.machine_distances import gpu_distances

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
def test_optimum_is_what_the_readme_says(name: str, expected: tuple[int, int, int]) -> None:
    instance = read_instance(INSTANCES / "hand" / f"{name}.json")
    assert best_and_how_often(instance) == expected
    assert f"=opt= {name} {expected[0]}" in (INSTANCES / "best.solu").read_text().splitlines()
