"""Policies that go by run times or utilisations which jobs do not state say so, or refuse."""

from typing import Any

import pytest

from helpers.scenarios import policy, scenario, timed
from placeopt.build import job, option
from placeopt.errors import BadInput
from placeopt.model import Arrays, Arrival, Policy, Postpone
from placeopt.simulation import (
    missing_estimates,
    named_policy,
    policy_names,
    simulate,
    summarise,
    with_actual_estimates,
    without_utilisation,
)

READ = {
    *("srtf", "srtf-preemptive", "placeopt", "placeopt-jct", "placeopt-queue", "placeopt-preemptive"),
    *("placeopt-rounds", "min-min", "weighted-fair", "genie", "capacity", "coda", "soda"),
}
"""Policies that come with placeopt and decide by run times; "genie" by the latency that they stand in for."""


def bare(name: str, actual_ms: int, **fields: Any) -> Arrival:
    """Return a job of four GPUs that states no run time."""
    return Arrival(job=job(name, **{"gpus": 4, **fields}), actual_run_time_ms=actual_ms)


@pytest.mark.parametrize("name", policy_names())
def test_every_policy_reports_whether_it_lacks_estimates(name: str) -> None:
    """Which jobs, how many, and for what; policies that read none have nothing to say."""
    world = scenario([bare("long", 60_000), bare("short", 10_000)])
    missing = missing_estimates(world, named_policy(name))
    assert (missing is not None) == (name in READ), missing
    if missing is not None:
        assert (missing.jobs, missing.first) == (2, ("long", "short"))
        assert missing.read_by


@pytest.mark.parametrize("name", sorted(READ))
def test_with_estimates_nothing_is_missing(name: str) -> None:
    """Stated by the job, or taken from the truth."""
    stated = [Arrival(job=job(n, options=(option(run_time_ms=1000),))) for n in ("a", "b")]
    assert missing_estimates(scenario(stated), named_policy(name)) is None
    world = scenario([bare("a", 60_000), bare("b", 10_000)])
    assert missing_estimates(with_actual_estimates(world), named_policy(name)) is None


def test_what_stands_in_for_an_estimate_counts() -> None:
    """An expected completion time is all that min-min needs, for GENIE a latency; services have no run time."""
    due = scenario([bare("due", 1000, expected_completion_ms=5000), Arrival(job=job("notebook"), service=True)])
    assert missing_estimates(due, named_policy("min-min")) is None
    found = missing_estimates(due, named_policy("srtf"))
    assert found is not None
    assert found.first == ("due",)
    quick = scenario([bare("quick", 1000, options=(option(latency_ms=7),))])
    assert missing_estimates(quick, named_policy("genie")) is None
    assert missing_estimates(quick, policy(order="swaf")) is None


def test_parts_of_policies_that_read_run_times() -> None:
    """Look-ahead, worth, stops, and parts of arrays by demand, each named."""
    world = scenario([bare("a", 1000)])
    parts = {
        "look-ahead": policy(policy=Policy(postpone=Postpone(rule="lookahead"))),
        "order srsf": policy(order="srsf"),
        "preempts srtf": policy(preempts="srtf"),
        "parts of arrays by demand": policy(order="capacity", arrays=Arrays(by="user", parts="demand")),
        "limit of restarts": policy(preempts="priority", restarts_max_thousandths=100),
    }
    for words, one in parts.items():
        missing = missing_estimates(world, one)
        assert missing is not None, words
        assert missing.read_by == (words,)
    assert missing_estimates(world, policy(order="capacity", arrays=Arrays(by="user"))) is None


def test_srtf_without_estimates_is_fcfs_and_the_summary_reports_it() -> None:
    """With the actual times as estimates it is srtf again."""
    jobs = [bare("first", 10_000), bare("long", 60_000), bare("short", 1000)]
    world = scenario(jobs)
    told = summarise(simulate(world, named_policy("srtf")))
    assert told.missing_estimates is not None
    assert (told.missing_estimates.jobs, told.missing_estimates.read_by) == (3, ("order srtf",))
    starts = [one.start_ms for one in simulate(world, named_policy("srtf")).jobs]
    assert starts == [0, 10_000, 70_000]
    known = with_actual_estimates(world)
    assert [one.start_ms for one in simulate(known, named_policy("srtf")).jobs] == [1000, 11_000, 0]
    assert summarise(simulate(known, named_policy("srtf"))).missing_estimates is None


def test_actual_estimates_are_perfect_predictions() -> None:
    """Of every option in proportion, of elastic ones with all workers; the truth stays what it was."""
    both = job("a", options=(option("one", run_time_ms=100), option("two", workers=2, run_time_ms=60)))
    world = scenario([Arrival(job=both, actual_run_time_ms=1000), Arrival(job=job("s"), service=True)])
    known = with_actual_estimates(world)
    assert [one.run_time_ms for one in known.arrivals[0].job.options] == [1000, 600]
    assert known.arrivals[0].actual_ms("two") == world.arrivals[0].actual_ms("two") == 600
    assert known.arrivals[1] == world.arrivals[1]


@pytest.mark.parametrize("name", sorted(set(policy_names()) - READ))
def test_policies_that_read_no_estimates_decide_the_same_without(name: str) -> None:
    """Otherwise the list above would leave one out."""
    kinds = [(4, 50_000), (2, 9_000), (1, 70_000), (3, 4_000), (2, 30_000), (4, 1_000), (1, 2_000), (2, 8_000)]
    common = {"gpu_utilisation_percent": 50}
    jobs = [
        bare(f"j{i}", ms, gpus=gpus, arrival_ms=500 * i, user=f"u{i % 2}", **common)
        for i, (gpus, ms) in enumerate(kinds)
    ]
    world = scenario(jobs)
    if name.startswith("sc17"):
        world = world.model_copy(update={"physics": world.physics.model_copy(update={"rule": "sc17"})})
    one, other = (simulate(w, named_policy(name)) for w in (world, with_actual_estimates(world)))
    assert [job.spans for job in one.jobs] == [job.spans for job in other.jobs]


def test_a_policy_that_shares_gpus_by_utilisation_needs_it() -> None:
    """Else Horus, OBP and PAB put four jobs on each GPU, all at full speed: a day ends after 26.6 h instead of 40.4."""
    cpu = Arrival(job=timed("c", 0, 1, gpus=0, cpu_millicores=1000, kind="cpu"))
    unstated = scenario([Arrival(job=timed("a", 0, 1, gpu_memory_mib=1024)), cpu])
    stated = scenario([Arrival(job=timed("a", 0, 1, gpu_utilisation_percent=50)), cpu])
    for name in ("horus", "horus-f", "obp", "pab"):
        with pytest.raises(BadInput, match="no job of scenario 'made' states any: up to 4 would run on each GPU"):
            simulate(unstated, named_policy(name))
        assert simulate(stated, named_policy(name)).finished
    for name in ("fcfs", "placeopt"):
        assert simulate(unstated, named_policy(name)).finished
    mixed = scenario([*stated.arrivals, Arrival(job=timed("b", 0, 1))])
    assert without_utilisation(mixed, named_policy("obp")) == ("b",)
    assert simulate(mixed, named_policy("obp")).finished
