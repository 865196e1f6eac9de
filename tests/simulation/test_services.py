"""Services have no end of their own: they leave when they are told to, or with the last job that has one."""

import pytest

from helpers.scenarios import log_lines, policy, scenario, timed
from placeopt.model import Arrival, Scenario
from placeopt.simulation import simulate, summarise


def service(name: str, arrival_ms: int, leaves_ms: int | None = None, **fields: object) -> Arrival:
    """Build a service."""
    return Arrival(job=timed(name, arrival_ms, 1, kind="inference", **fields), service=True, leaves_ms=leaves_ms)


def world_of(*arrivals: Arrival) -> Scenario:
    """Build a scenario on a machine of four GPUs."""
    return scenario([]).model_copy(update={"arrivals": arrivals})


def test_they_leave_at_their_end_whether_they_run_or_wait(tmp_path) -> None:
    """Two want the machine; the second leaves before it is free, and a job starts when the first is gone."""
    world = world_of(
        service("a", 0, 500, gpus=4), service("b", 10, 400, gpus=4), Arrival(job=timed("job", 20, 100, gpus=4))
    )
    history = simulate(world, policy(), log=tmp_path / "log")
    assert [(job.start_ms, job.end_ms) for job in history.jobs] == [(0, 500), (None, 400), (500, 600)]
    assert [line["e"] for line in log_lines(tmp_path / "log")[1:]] == [
        *("arrival", "round", "arrival", "arrival", "leave", "leave", "round", "end", "over")
    ]


def test_without_a_time_they_leave_with_the_last_job() -> None:
    """Also where that never ends: it waits for a fifth GPU, and when nothing happens any more services leave."""
    world = world_of(service("notebook", 0), Arrival(job=timed("job", 20, 100)))
    history = simulate(world, policy())
    assert [(job.start_ms, job.end_ms) for job in history.jobs] == [(0, 120), (20, 120)]
    figures = summarise(history)
    assert (figures.jobs, figures.services, figures.last_end_s) == (1, 1, 0.12)
    assert figures.occupancy.granted == 1000 * (120 + 100)
    world = world_of(service("notebook", 0), Arrival(job=timed("job", 20, 100, gpus=4)))
    assert simulate(world, policy()).jobs[1].start_ms == 20, "once the service has left"
    history = simulate(world_of(service("notebook", 0), Arrival(job=timed("job", 20, 100, gpus=5))), policy())
    assert history.stranded == ("job",)


def test_contradictions_are_refused() -> None:
    """A time to leave without a service, or before it arrives; a service with a run time."""
    with pytest.raises(ValueError, match="leaves_ms: goes with service"):
        Arrival(job=timed("x", 0, 1), leaves_ms=5)
    with pytest.raises(ValueError, match=r"expected (after|later)"):
        service("x", 5, 5)
    with pytest.raises(ValueError, match="no run time of its own"):
        Arrival(job=timed("x", 0, 1), service=True, actual_run_time_ms=5)
