"""Jobs that are worth their rate: the round of most value is the one under which most end per time."""

from __future__ import annotations

from helpers.scenarios import policy, scenario, timed
from placeopt.model import Option
from placeopt.simulation import named_policy, simulate
from placeopt.simulation.scheduling.scheduler import by_rate


def test_an_option_is_worth_its_rate() -> None:
    """Half the time, twice the value; what has no run time, or is elastic, keeps what it states."""
    assert by_rate(Option(value=7, run_time_ms=20_000)).value == 5_000_000
    assert by_rate(Option(value=7, run_time_ms=10_000)).value == 10_000_000
    assert by_rate(Option(value=7, run_time_ms=1)).value == 1_000_000_000
    assert by_rate(Option(value=7)).value == 7
    assert by_rate(Option(value=7, workers=2, workers_min=1, run_time_ms=10)).value == 7


def test_short_jobs_go_first_only_where_they_are_worth_more() -> None:
    """A job of 90 s that states a higher value than two of 20 and 10 s: it goes first, or last."""
    long = timed("long", 0, 90_000, gpus=4, value=9000)
    jobs = [timed("first", 0, 1_000, gpus=4, value=4000), long]
    jobs += [timed(f"short-{i}", 0, 10_000 * i, gpus=4, value=4000) for i in (2, 1)]
    order = {}
    for worth in ("stated", "rate"):
        history = simulate(scenario(jobs), policy("auto", rounds="whole", worth=worth))
        order[worth] = [job.job for job in sorted(history.jobs, key=lambda job: job.start_ms or 0)]
    assert order["rate"] == ["first", "short-1", "short-2", "long"]
    assert order["stated"][0] == "long"
    assert named_policy("placeopt-jct").worth == "rate"
