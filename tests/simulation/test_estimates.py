"""Policies see estimates, and say so or refuse where they lack those that they go by; what happens is the truth."""

from typing import Any

import pytest
from pydantic import ValidationError

from helpers.scenarios import policy, random_scenario, scenario, timed
from placeopt.build import job, option
from placeopt.errors import BadInput
from placeopt.model import Demand, Policy, Postpone
from placeopt.scheduling import named_policy, policy_names
from placeopt.simulation import (
    Arrival,
    Endpoint,
    Estimate,
    LoadStep,
    Replica,
    Scenario,
    missing_estimates,
    simulate,
    summarise,
    with_actual_estimates,
    with_drawn_errors,
    with_scaled_errors,
    without_utilisation,
)
from placeopt.systems.soda import Arrays

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
    """Which jobs, how many, and for what; nothing where jobs state them, or they are taken from the truth."""
    world, rules = scenario([bare("long", 60_000), bare("short", 10_000)]), named_policy(name)
    missing = missing_estimates(world, rules)
    assert (missing is not None) == (name in READ), missing
    if missing is not None:
        assert (missing.jobs, missing.first) == (2, ("long", "short"))
        assert missing.read_by
    assert missing_estimates(with_actual_estimates(world), rules) is None
    assert missing_estimates(scenario([job(n, run_time_ms=1000) for n in "ab"]), rules) is None


def with_estimates(world: Scenario, *, stated: bool) -> Scenario:
    """Return the scenario with estimates that are true, or with jobs that state no run time."""
    arrivals = []
    for arrival in world.arrivals:
        one = arrival.job.options[0]
        bare_job = arrival.job.model_copy(update={"options": (one.model_copy(update={"run_time_ms": None}),)})
        truth = {"actual_run_time_ms": arrival.actual_run_time_ms or one.run_time_ms, "job": bare_job}
        update = {"estimates": (Estimate(run_time_ms=one.run_time_ms),)} if stated else truth
        arrivals.append(arrival.model_copy(update=update))
    return world.model_copy(update={"arrivals": tuple(arrivals)})


@pytest.mark.parametrize("name", policy_names())
def test_estimates_that_tell_nothing_new_change_nothing(name: str) -> None:
    """True ones; and all of them, under a policy that is not in the list above: otherwise it would leave one out."""
    plain = random_scenario(5, jobs=12, nodes=2, **({"rule": "sc17"} if name.startswith("sc17") else {}))
    told, untold = (with_estimates(plain, stated=stated) for stated in (True, False))
    assert plain.digest not in (told.digest, untold.digest)
    others = [told, *([] if name in READ else [untold])]
    spans = [job.spans for job in simulate(plain, named_policy(name)).jobs]
    assert all(spans == [job.spans for job in simulate(other, named_policy(name)).jobs] for other in others)


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
        "parts of arrays by demand": policy(order="capacity", divides=Arrays(rule="arrays", by="user", parts="demand")),
        "limit of restarts": policy(preempts="priority", restarts_max_thousandths=100),
    }
    for words, one in parts.items():
        missing = missing_estimates(world, one)
        assert missing is not None, words
        assert missing.read_by == (words,)
    assert missing_estimates(world, policy(order="capacity", divides=Arrays(rule="arrays", by="user"))) is None


def test_srtf_without_estimates_is_fcfs_and_the_summary_reports_it() -> None:
    """With the actual times as estimates it is srtf again."""
    jobs = [bare("first", 10_000), bare("long", 60_000), bare("short", 1000)]
    world = scenario(jobs)
    unknown, known = (simulate(made, named_policy("srtf")) for made in (world, with_actual_estimates(world)))
    told = summarise(unknown).missing_estimates
    assert told is not None
    assert (told.jobs, told.read_by, summarise(known).missing_estimates) == (3, ("order srtf",), None)
    assert [one.start_ms for one in unknown.jobs] == [0, 10_000, 70_000]
    assert [one.start_ms for one in known.jobs] == [1000, 11_000, 0]


def test_actual_estimates_are_perfect_predictions() -> None:
    """Of every option in proportion, of elastic ones with all workers; the truth stays what it was."""
    both = job("a", options=(option("one", run_time_ms=100), option("two", workers=2, run_time_ms=60)))
    world = scenario([Arrival(job=both, actual_run_time_ms=1000), Arrival(job=job("s"), service=True)])
    known = with_actual_estimates(world)
    assert [one.run_time_ms for one in known.arrivals[0].job.options] == [1000, 600]
    assert known.arrivals[0].actual_ms("two") == world.arrivals[0].actual_ms("two") == 600
    assert known.arrivals[1] == world.arrivals[1]


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


CURVE = {"interference": "curve"}


def sharing(name: str, percent: int, believed: int | None, memory_mib: int = 0, **estimate: int) -> Arrival:
    """Return a job of 10 s that uses a part of one GPU."""
    one = option(gpu_utilisation_percent=percent, gpu_memory_mib=memory_mib, run_time_ms=10_000)
    return Arrival(job=job(name, options=(one,)), estimates=(Estimate(gpu_utilisation_percent=believed, **estimate),))


def test_the_believed_shortest_is_first_and_takes_as_long_as_it_does() -> None:
    """Both want all GPUs; long is believed to be the shorter one."""
    jobs = [timed("long", 0, 60_000, gpus=4), timed("short", 0, 1_000, gpus=4)]
    told = [Arrival(job=one, estimates=(Estimate(run_time_ms=ms),)) for one, ms in zip(jobs, (10, 5_000), strict=True)]
    for known, ends in ((told, [60_000, 61_000]), (jobs, [61_000, 1_000])):
        assert [one.end_ms for one in simulate(scenario(known), named_policy("srtf")).jobs] == ends


def last_end_ms(percents: list[int], believed: int | None) -> int:
    """Return when the last of these jobs ends under Horus on four GPUs."""
    jobs = [sharing(f"j{i}", percent, believed) for i, percent in enumerate(percents)]
    return max(one.end_ms or 0 for one in simulate(scenario(jobs, physics=CURVE), named_policy("horus")).jobs)


def test_utilisation_is_believed_by_the_policy_and_true_for_the_jobs() -> None:
    """Believed to be light, three of five share a GPU: at 300 % they take 1.16664 x 9 - 0.00302 x 3 times as long."""
    assert last_end_ms([100] * 5, 1) == 104_910
    assert last_end_ms([1] * 5, None) == last_end_ms([1] * 5, 1) < 11_000
    truthful = scenario([sharing(f"j{i}", 100, None) for i in range(5)], physics=CURVE)
    seen = truthful.as_seen()
    assert [one.estimates for one in seen.arrivals] == [()] * 5
    assert seen.arrivals[0].job == truthful.arrivals[0].job


def test_memory_that_is_believed_too_small_lets_the_last_job_fail() -> None:
    """Five of 10,000 MiB, believed to need 1,000, on four GPUs of 16,384: the one that shares fails and waits."""
    for believed, failures in (({"gpu_memory_mib": 1_000}, 1), ({}, 0)):
        jobs = [sharing(f"j{i}", 10, None, memory_mib=10_000, **believed) for i in range(5)]
        history = simulate(scenario(jobs, physics=CURVE), named_policy("horus"))
        assert (sum(one.failures for one in history.jobs), history.stranded) == (failures, ())


def test_a_shape_is_chosen_by_what_is_believed() -> None:
    """By the believed rate, with or without its cost; the task takes the time of the true one."""
    shapes = (
        option("1x1", run_time_ms=8_000, latency_ms=8_000, rate_milli=1_000),
        option("1x4", run_time_ms=2_000, latency_ms=2_000, rate_milli=4_000, gpus=4),
    )
    task = job("task", options=shapes, expected_completion_ms=60_000)
    wrong = (Estimate(), Estimate(rate_milli=1_000, latency_ms=8_000, run_time_ms=8_000))
    for name in ("tetris-cer", "tetris-perf"):
        for estimates, chosen, end in (((), "1x4", 2_000), (wrong, "1x1", 8_000)):
            found = simulate(scenario([Arrival(job=task, estimates=estimates)]), named_policy(name)).jobs[0]
            assert found.placement is not None
            assert (found.placement.option, found.end_ms) == (chosen, end)


def test_errors_are_scaled_by_their_logarithm() -> None:
    """0.8 of the truth is 1, 0.8 and 0.64 of it; utilisation ends at 100."""
    both = job("a", options=(option("one", run_time_ms=100), option("two", workers=2, run_time_ms=60)))
    arrival = Arrival(job=both, actual_run_time_ms=1_000, estimates=(Estimate(run_time_ms=800), Estimate()))
    for factor, times in ((0, [1_000, 600]), (1, [800, 60]), (2, [640, 6])):
        seen = with_scaled_errors(scenario([arrival]), factor).arrivals[0]
        assert [one.run_time_ms for one in seen.seen.options] == times
        assert seen.actual_ms("two") == 600
    high = with_scaled_errors(scenario([sharing("a", 60, 80)]), 2).arrivals[0].seen
    assert high.options[0].demand.gpu_utilisation_percent == 100
    low = with_scaled_errors(scenario([sharing("a", 50, 40)]), 2).arrivals[0].seen
    assert low.options[0].demand.gpu_utilisation_percent == 32
    need = Arrival(job=job("a", options=(option(gpu_memory_mib=800),)), actual_run_time_ms=1)
    need = need.model_copy(update={"actual_gpu_memory_mib": 1_000})
    assert with_scaled_errors(scenario([need]), 2).arrivals[0].seen.options[0].demand.gpu_memory_mib == 640
    bare = scenario([Arrival(job=job("a"), actual_run_time_ms=5)])
    assert with_scaled_errors(bare, 2) == bare
    with pytest.raises(BadInput, match="factor"):
        with_scaled_errors(bare, -1)


def test_drawn_errors_are_of_all_jobs_of_a_profile() -> None:
    """
    Twice or half: a time of 1,000 ms is 2,000 or 500, at half or twice the rate; both occur over eight profiles.

    Utilisation of 60 ends at 100; fields that are not asked for, and what is true, stay.
    """
    made = option("one", run_time_ms=1_000, rate_milli=400, gpu_utilisation_percent=60)
    jobs = [Arrival(job=job(f"j{i}", profile=f"p{i % 8}", options=(made,))) for i in range(16)]
    told = with_drawn_errors(scenario(jobs), 2, 7)
    seen = [one.seen.options[0] for one in told.arrivals]
    found = [(one.run_time_ms, one.rate_milli, one.demand.gpu_utilisation_percent) for one in seen]
    assert set(found) == {(2_000, 200, 100), (500, 800, 30)}
    assert found[:8] == found[8:]
    assert [one.job for one in told.arrivals] == [one.job for one in jobs]
    assert told == with_drawn_errors(scenario(jobs), 2, 7) != with_drawn_errors(scenario(jobs), 2, 8)
    alone = with_drawn_errors(scenario(jobs), 2, 7, ["rate_milli"]).arrivals[0].seen.options[0]
    assert (alone.run_time_ms, alone.demand.gpu_utilisation_percent) == (1_000, 60)
    for factor, fields in ((0.5, ()), (2, ("nix",))):
        with pytest.raises(BadInput, match="expected 1 to 10, and fields of Estimate"):
            with_drawn_errors(scenario(jobs), factor, 7, fields)


def test_estimates_are_refused_that_belong_to_no_option_or_understate_a_service() -> None:
    """With the field's place."""
    with pytest.raises(ValidationError, match="estimates: 2, but the job has 1 options"):
        Arrival(job=job("a"), actual_run_time_ms=1, estimates=(Estimate(), Estimate()))
    with pytest.raises(ValidationError, match="a service must not understate"):
        scenario([Arrival(job=job("a"), service=True, estimates=(Estimate(gpu_memory_mib=1),))])


def test_errors_of_profiles_and_of_trials_are_scaled() -> None:
    """A replica believed to serve twice as much, then four times; noise of 2 %, then of 4."""
    gpu = Replica(demand=Demand(gpus=1), rate_milli=1_000, profiled_rate_milli=2_000, latency_ms=1)
    load = (LoadStep(from_ms=0, rate_milli=8_000),)
    made = scenario([], physics={"core_trial_noise_thousandths": 20}).model_copy(
        update={"endpoints": (Endpoint(id="e", gpu=gpu, latency_target_ms=1_000, load=load, until_ms=10),)}
    )
    every = policy("best-fit", replicas={"rule": "follow", "load_percent": 100})
    drawn = with_drawn_errors(
        made.model_copy(update={"physics": made.physics.model_copy(update={"core_trial_ms": 1})}), 2, 0
    )
    assert drawn.endpoints[0].gpu.profiled_rate_milli in (500, 2_000)
    assert drawn.physics.core_trial_noise_thousandths == 693
    for factor, wanted, noise in ((0, 8, 0), (1, 4, 20), (2, 2, 40)):
        told = with_scaled_errors(made, factor)
        assert sum(job.service for job in simulate(told, every).jobs) == wanted
        assert told.physics.core_trial_noise_thousandths == noise
        assert told.endpoints[0].gpu.rate_milli == 1_000
