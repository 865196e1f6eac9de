"""The stored day of Philly: what its name and note say, and what policies make of it."""

from pathlib import Path

import pytest

from placeopt import read_scenario
from placeopt.model import Scenario
from placeopt.simulation import named_policy, simulate, summarise

PATH = Path(__file__).resolve().parents[2] / "instances" / "papers" / "philly-40+1-x44-s0.json.gz"


@pytest.fixture(scope="module")
def day() -> Scenario:
    """1,494 jobs of one day, on 44 nodes of 8 GPUs."""
    return read_scenario(PATH)


def test_its_load_is_that_of_its_note(day: Scenario) -> None:
    """GPU time asked for over the GPU time between the first and the last arrival; a node fewer would be above 0.9."""
    asked = sum(
        arrival.job.options[0].workers * arrival.job.options[0].demand.gpus * (arrival.actual_run_time_ms or 0)
        for arrival in day.arrivals
    )
    came = [arrival.job.arrival_ms for arrival in day.arrivals]
    loads = [asked / (8 * nodes * (max(came) - min(came))) for nodes in (len(day.cluster.nodes), 43)]
    assert (len(day.arrivals), len(day.cluster.nodes), max(came) < 86_400_000) == (1494, 44, True)
    assert loads[0] <= 0.9 < loads[1]


def test_played_to_its_end(day: Scenario) -> None:
    """Nobody is lost or ends early, GPU time granted and idle is all there is, and users are its virtual clusters."""
    history = simulate(day, named_policy("best-fit"))
    found = summarise(history)
    assert (found.finished, found.ended, found.stranded) == (True, 1494, 0)
    assert all(job.placed_ms >= job.alone_ms for job in history.jobs)
    held = found.occupancy
    assert held.granted + held.idle == held.window_ms * held.gpus * 1000
    assert sum(one.ended for one in found.users) == 1494
    assert found.fairness is not None
    assert 1 / len(found.users) < found.fairness < 1


def test_of_its_first_jobs_ours_are_slowed_least(day: Scenario) -> None:
    """What the page of policies shows of whole days, on what is played in a second."""
    first = day.model_copy(update={"arrivals": day.arrivals[:250]})
    ours, best_fit = (summarise(simulate(first, named_policy(name))) for name in ("placeopt-queue", "best-fit"))
    assert ours.completion_s is not None
    assert best_fit.completion_s is not None
    assert ours.completion_s.mean < best_fit.completion_s.mean
    assert ours.slowed < best_fit.slowed
