"""CPU jobs held back by their cores where memory bandwidth runs short, and who starts on what they leave: by hand."""

from typing import Any

import pytest

from helpers.scenarios import policy, scenario, timed
from placeopt.model import Job
from placeopt.scheduling import Throttle
from placeopt.simulation import History, simulate

HALF = policy("best-fit", bandwidth=Throttle(rule="throttle", by="cores"))


def gpu_job(run_ms: int, arrival_ms: int = 0) -> Job:
    """Build a job on a GPU that uses 30 of the 75 GB/s that may be used of a node, and no cores."""
    return timed("gpu", arrival_ms, run_ms, memory_bandwidth_mbps=30_000)


def cpu_job(name: str, run_ms: int, cores: int, gbps: int = 0, *, workers: int = 1) -> Job:
    """Build a job without GPUs."""
    needs = {"cpu_millicores": 1000 * cores, "memory_bandwidth_mbps": 1000 * gbps}
    return timed(name, 0, run_ms, gpus=0, kind="cpu", workers=workers, **needs)


def play(*jobs: Job, how: Any = HALF) -> History:
    """Play jobs on a node of 32 cores and 100 GB/s, of which 75 may be used."""
    fields: dict[str, Any] = {"physics": {"memory_bandwidth_percent": 75}}
    return simulate(scenario(jobs, machine={"memory_bandwidth_mbps": 100_000}, **fields), how)


Story = dict[str, list[tuple[int, int | None, int]]]


def story(history: History) -> Story:
    """Return the spans of every CPU job: from, to, cores."""
    return {
        job.job: [
            (one.start_ms, one.end_ms, sum(at.cpu_millicores for at in one.placement.assignments) // 1000)
            for one in job.spans
        ]
        for job in history.jobs
        if job.job != "gpu"
    }


HUNGRY = cpu_job("hungry", 1000, 24, 60)
STORIES: dict[str, tuple[list[Job], Story]] = {
    # 24 cores leave 8; held back it has 12, takes twice as long, and 16 of the 20 that are free are enough for the next
    "a new CPU job starts on the cores": (
        [gpu_job(4000), HUNGRY, cpu_job("next", 500, 16)],
        {"hungry": [(0, 2000, 12)], "next": [(0, 500, 16)]},
    ),
    # after 1,000 ms half of its work is done, with 12 cores another tenth until the cores are free, then 24
    "they come back once they are free": (
        [gpu_job(1000), HUNGRY, cpu_job("next", 1200, 16)],
        {"hungry": [(0, 1200, 12), (1200, 1600, 24)], "next": [(0, 1200, 16)]},
    ),
    # half of the work before the GPU job comes, the other half with half of the cores
    "it runs already": ([gpu_job(4000, 500), HUNGRY], {"hungry": [(0, 500, 24), (500, 1500, 12)]}),
    # the second finds 20 free, is held back by the same rule, and leaves 8 + 12 - 8 = 12 to the third
    "the new ones are held back, too": (
        [gpu_job(4000), HUNGRY, cpu_job("second", 500, 16, 1), cpu_job("third", 500, 12)],
        {"hungry": [(0, 2000, 12)], "second": [(0, 1000, 8)], "third": [(0, 500, 12)]},
    ),
    # without a need for it nothing changes
    "bandwidth suffices": (
        [gpu_job(4000), cpu_job("hungry", 1000, 24, 45), cpu_job("next", 500, 16)],
        {"hungry": [(0, 1000, 24)], "next": [(1000, 1500, 16)]},
    ),
}


@pytest.mark.parametrize(("jobs", "expected"), STORIES.values(), ids=STORIES)
def test_new_cpu_jobs_start_on_the_cores_released(jobs: list[Job], expected: Story) -> None:
    """The GPU job loses nothing."""
    history = play(*jobs)
    assert story(history) == expected
    assert history.jobs[0].end_ms == jobs[0].arrival_ms + history.jobs[0].alone_ms


def test_half_of_the_cores_cost_no_pause() -> None:
    """What a change of the number of workers costs, cores do not: they are set while a job runs."""
    world = scenario(
        [gpu_job(4000, 500), HUNGRY],
        machine={"memory_bandwidth_mbps": 100_000},
        physics={"memory_bandwidth_percent": 75, "resize_ms": 300},
    )
    assert story(simulate(world, HALF)) == {"hungry": [(0, 500, 24), (500, 1500, 12)]}


def test_a_stopped_job_asks_for_all_of_its_cores_again() -> None:
    """Inference stops it at 100 with a twentieth done; when that has left at 200 it starts anew, and is held back."""
    inference = timed("service", 100, 100, gpus=0, kind="inference", cpu_millicores=32_000)
    rules = policy("best-fit", bandwidth=Throttle(rule="throttle", by="cores"), preempts="inference")
    told = story(play(gpu_job(4000), HUNGRY, inference, how=rules))
    assert told["hungry"] == [(0, 100, 12), (200, 2100, 12)]


def test_whole_rounds_hold_no_job_back_by_its_cores() -> None:
    with pytest.raises(ValueError, match="bandwidth: by 'cores' goes with rounds 'each'"):
        policy("auto", rounds="whole", bandwidth=Throttle(rule="throttle", by="cores"))
