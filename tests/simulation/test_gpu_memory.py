"""GPU memory as it really is: the last to come fails, asks for more, and is found a place where it has it."""

import pytest

from helpers.scenarios import policy, scenario, timed
from placeopt.simulation import Arrival, Scenario, simulate, summarise

FAILS = {"memory_failure_ms": 300}


def needing(name: str, arrival_ms: int, run_ms: int, says: int, needs: int | None, **fields: object) -> Arrival:
    """Build a job of half a GPU."""
    job = timed(name, arrival_ms, run_ms, gpu_milli=500, gpu_memory_mib=says, **fields)
    return Arrival(job=job, actual_gpu_memory_mib=needs)


def test_the_last_job_fails_after_the_delay_and_requests_more() -> None:
    """
    8,000 are needed by the first; the second says 2,000 and needs 9,000: 8,384 are left to it.

    It fails after 300 ms, asks for 8,385, more than the 2,400 of 120 %, and starts on the next GPU, its work lost.
    """
    world = scenario([needing("a", 0, 5000, 8000, None), needing("b", 100, 1000, 2000, 9000)], physics=FAILS)
    history = simulate(world, policy())
    spans = {
        job.job: [(s.start_ms, s.end_ms, s.placement.assignments[0].gpus) for s in job.spans] for job in history.jobs
    }
    assert spans["a"] == [(0, 5000, {"0": 500})]
    assert spans["b"] == [(100, 400, {"0": 500}), (400, 1400, {"1": 500})]
    assert history.jobs[1].failures == summarise(history).failures == 1


def test_what_is_left_on_the_fullest_gpu_counts() -> None:
    """
    A pair finds 8,384 on one of its GPUs, 4,384 on the other, and needs 9,000.

    4,385 fit beside the first job again, which leaves 8,384: only then it asks for more than anybody leaves.
    """
    world = scenario(
        [
            needing("a", 0, 5000, 8000, None),
            needing("c", 0, 5000, 12_000, None),
            needing("b", 1, 1000, 2000, 9000, workers=2),
        ],
        physics=FAILS,
    )
    assert [job.failures for job in simulate(world, policy()).jobs] == [0, 0, 2]


def test_the_one_that_came_first_is_safe_though_it_understates_too() -> None:
    """
    It has what it needs; only newcomers find too little, and again until they ask for what nobody thinks is there.

    4,384 are left: 4,385 are asked for, then 1.2 times as much each time, rounded up: 15,716 at the eighth failure, and
    15,708 are left beside what the first says.
    """
    world = scenario([needing("a", 0, 5000, 676, 12_000), needing("b", 1, 1000, 2000, 5000)], physics=FAILS)
    assert [job.failures for job in simulate(world, policy()).jobs] == [0, 8]


def test_no_job_fails_that_has_room_by_then() -> None:
    """The other ends before the delay is over; all work counts."""
    world = scenario([needing("a", 0, 200, 8000, None), needing("b", 100, 1000, 2000, 9000)], physics=FAILS)
    history = simulate(world, policy())
    assert [(job.end_ms, job.failures) for job in history.jobs] == [(200, 0), (1100, 0)]


def test_a_demand_rises_to_the_largest_gpu_at_most() -> None:
    """120 % of 15,000 are more than any GPU has: it has the next one for itself."""
    world = scenario([needing("a", 0, 5000, 1300, 8000), needing("b", 1, 1000, 15_000, 16_384)], physics=FAILS)
    assert [(job.end_ms, job.failures) for job in simulate(world, policy()).jobs] == [(5000, 0), (1301, 1)]


def test_a_job_that_would_fail_for_ever_is_refused() -> None:
    """It needs more than any GPU has; or a service, which never leaves, hides what it needs."""
    with pytest.raises(ValueError, match=r"arrivals\[0\].actual_gpu_memory_mib: 20000, but no GPU"):
        Scenario.model_validate({**dict(scenario([])), "arrivals": (needing("a", 0, 1, 1, 20_000),)})
    job = timed("a", 0, 1, gpu_memory_mib=10)
    with pytest.raises(ValueError, match="must not understate"):
        Scenario.model_validate(
            {**dict(scenario([])), "arrivals": (Arrival(job=job, service=True, actual_gpu_memory_mib=11),)}
        )
