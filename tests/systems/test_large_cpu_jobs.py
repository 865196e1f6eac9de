"""SODA V-C: what a CPU job has that asks for more cores of a node than the CPU jobs' array has."""

from typing import Any

import pytest

from helpers.scenarios import policy, scenario, timed
from placeopt.model import Job
from placeopt.simulation import round_at, simulate
from placeopt.systems.soda import Arrays

BY_SIZE = Arrays(rule="arrays", by="size", parts="equal", borrow_percent=1_000_000, per_node=True)
SODA = policy("best-fit", order="drf", divides=BY_SIZE, bandwidth="throttle")
GPU = timed("gpu", 0, 1000)
"""With it half of the parts, and 16 of a node's 32 cores, are the CPU jobs'."""


def cpu_job(cores: int, **fields: Any) -> Job:
    """Build a CPU job of a second."""
    return timed("cpu", 0, 1000, gpus=0, kind="cpu", cpu_millicores=1000 * cores, **fields)


GIVEN: dict[str, tuple[Job, list[tuple[int, int]], int]] = {
    # (workers, cores) on each node, and the end
    "as many as there are": (cpu_job(16), [(1, 16)], 1000),
    "more than the array": (cpu_job(20), [(1, 16)], 1250),
    "more than a node": (cpu_job(40), [(1, 16)], 2500),
    "distributed: the same number, 80, on five": (cpu_job(40, workers=2), [(1, 16)] * 5, 1000),
    "two workers on a single node": (cpu_job(10, workers=2, single_node=True), [(2, 16)], 1250),
}


@pytest.mark.parametrize(("job", "given", "end_ms"), GIVEN.values(), ids=GIVEN)
def test_a_cpu_job_larger_than_a_node_gets_the_most(job: Job, given: list[tuple[int, int]], end_ms: int) -> None:
    """It goes at the part of its pace that it has of the cores; what it got stands in its placement."""
    history = simulate(scenario([GPU, job], nodes=6), SODA)
    got = history.jobs[1].spans[0].placement.assignments
    workers = sorted((len(at.workers), at.cpu_millicores // 1000) for at in got)
    assert (sum(each for each, _ in workers), sum(cores for _, cores in workers)) == (
        sum(each for each, _ in given),
        sum(cores for _, cores in given),
    )
    assert history.jobs[1].end_ms == end_ms
    assert len(round_at(history, 500).running) == 2


def test_bandwidth_goes_with_the_cores() -> None:
    """40 cores would use 100 of 100 GB/s, 16 use 40: no job is slowed by it."""
    job = cpu_job(40, memory_bandwidth_mbps=100_000)
    machine, physics = {"memory_bandwidth_mbps": 100_000}, {"memory_bandwidth_percent": 50}
    history = simulate(scenario([GPU, job], machine=machine, physics=physics), SODA)
    assert history.jobs[1].end_ms == 2500


def test_where_nothing_is_divided_it_waits_for_ever() -> None:
    """No policy but one with arrays on every node gives a job fewer cores than it asks for."""
    assert simulate(scenario([GPU, cpu_job(40)]), policy("best-fit")).stranded == ("cpu",)
