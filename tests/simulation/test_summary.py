"""The figures of a simulation, worked by hand."""

import pytest

from helpers.scenarios import policy, scenario, timed
from placeopt.build import running
from placeopt.simulation import simulate, summarise


def test_by_hand() -> None:
    """
    One machine of four GPUs. wide (4 GPUs) runs 10..110 s, late (1 GPU) comes at 20, waits 90 s, runs 110..130 s.

    GPU-seconds: 400 + 20 of 4 x 120; idle GPUs beside late are stranded, 3 x 20. late had asked to be done by 100 s.
    """
    jobs = [
        timed("wide", 10_000, 100_000, gpus=4, user="u", deadline_ms=200_000),
        timed("late", 20_000, 20_000, user="v", expected_completion_ms=100_000),
    ]
    found = summarise(simulate(scenario(jobs), policy()))
    assert (found.jobs, found.ended, found.finished, found.stranded) == (2, 2, True, 0)
    assert (found.last_end_s, found.makespan_s) == (130, 120)
    assert found.completion_s.mean == (100 + 110) / 2
    assert (found.wait_s.mean, found.wait_s.median, found.wait_s.max) == (45, 45, 90)
    assert (found.slowdown.max, found.slowdown_with_wait.max, found.slowed) == (1, 5.5, 0)
    assert (found.started_at_once, found.in_time) == (0.5, 0.5)
    assert found.fairness == pytest.approx(6.5**2 / (2 * (1 + 5.5**2)))
    users = [(one.user, one.ended, one.wait_s, one.slowdown_with_wait) for one in found.users]
    assert users == [("u", 1, 0, 1), ("v", 1, 90, 5.5)]
    held = found.occupancy
    assert (held.granted, held.allocation, held.fragmentation) == (420_000 * 1000, 420 / 480, 60 / 480)
    assert found.rounds == 3
    assert found.decision_ms is not None


def test_slowed_jobs_are_counted_by_the_scenario_s_limit() -> None:
    """The pair across sockets takes 1.3 of its time; a limit of 1.3 is kept."""
    jobs = [timed("pair", 0, 1000, gpus=2, spread=300), timed("a", 0, 9000), timed("b", 0, 9000)]
    held = (running(jobs[1], [("n0", (1,))]), running(jobs[2], [("n0", (3,))]))
    for limit, slowed in ((1300, 0), (1299, 1)):
        world = scenario(jobs, slowed_thousandths=limit, running=held)
        assert summarise(simulate(world, policy())).slowed == slowed


@pytest.mark.parametrize(
    ("physics", "slowdown", "slowed"), [({"restart_ms": 400}, 1.08, 0), ({"keeps_work": False}, 1.6, 1)]
)
def test_what_a_stopped_job_waits_again_is_no_slowing_by_its_place(physics: dict, slowdown: float, slowed: int) -> None:
    """
    A job of 5 s runs for 3 s, waits 1 s for a dearer one, and runs 0.4 + 2 s more, or all 5 s anew.

    In its places it is for 5.4 or 8 s; from first start to end 6.4 or 9 s, more than 10 % above 5 either way.
    """
    jobs = [timed("low", 0, 5000, gpus=4), timed("high", 3000, 1000, gpus=4, priority=1)]
    stops = policy("best-fit", order="priority", preempts="priority")
    found = summarise(simulate(scenario(jobs, physics=physics), stops))
    assert (found.stops, found.slowed, found.delayed) == (1, slowed, 1)
    assert found.slowdown.max == slowdown
    assert (found.stopped_s.mean, found.stopped_s.max) == (0.5, 1)
    assert found.wait_s.max == 0


def test_of_nothing() -> None:
    """No jobs, no figures, no fault."""
    found = summarise(simulate(scenario([]), policy()))
    assert (found.jobs, found.last_end_s, found.wait_s, found.in_time) == (0, None, None, None)
    assert found.occupancy.allocation == 0
