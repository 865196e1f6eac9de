"""Policies see estimates; what happens follows the truth."""

import pytest
from pydantic import ValidationError

from helpers.scenarios import policy, random_scenario, scenario, timed
from placeopt import BadInput
from placeopt.build import job, option
from placeopt.model import Arrival, Demand, Endpoint, Estimate, LoadStep, Replica
from placeopt.simulation import named_policy, policy_names, simulate, with_scaled_errors

CURVE = {"interference": "curve"}


def sharing(name: str, percent: int, believed: int | None, memory_mib: int = 0, **estimate: int) -> Arrival:
    """Return a job of 10 s that uses a part of one GPU."""
    one = option(gpu_utilisation_percent=percent, gpu_memory_mib=memory_mib, run_time_ms=10_000)
    return Arrival(job=job(name, options=(one,)), estimates=(Estimate(gpu_utilisation_percent=believed, **estimate),))


def test_the_believed_shortest_is_first_and_takes_as_long_as_it_does() -> None:
    """Both want all GPUs; long is believed to be the shorter one."""
    jobs = [timed("long", 0, 60_000, gpus=4), timed("short", 0, 1_000, gpus=4)]
    told = [Arrival(job=one, estimates=(Estimate(run_time_ms=ms),)) for one, ms in zip(jobs, (10, 5_000), strict=True)]
    ends = [one.end_ms for one in simulate(scenario(told), named_policy("srtf")).jobs]
    assert ends == [60_000, 61_000]
    assert [one.end_ms for one in simulate(scenario(jobs), named_policy("srtf")).jobs] == [61_000, 1_000]


@pytest.mark.parametrize("name", [name for name in policy_names() if not name.startswith("sc17")])
def test_estimates_that_are_true_change_nothing(name: str) -> None:
    """Of run times, for every policy that comes with placeopt."""
    plain = random_scenario(5, jobs=12, nodes=2)
    told = plain.model_copy(
        update={
            "arrivals": tuple(
                arrival.model_copy(
                    update={
                        "estimates": tuple(Estimate(run_time_ms=one.run_time_ms) for one in arrival.job.options),
                    }
                )
                for arrival in plain.arrivals
            )
        }
    )
    assert told.digest != plain.digest
    one, other = (simulate(w, named_policy(name)) for w in (plain, told))
    assert [job.spans for job in one.jobs] == [job.spans for job in other.jobs]


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
    told = [sharing(f"j{i}", 10, None, memory_mib=10_000, gpu_memory_mib=1_000) for i in range(5)]
    history = simulate(scenario(told, physics=CURVE), named_policy("horus"))
    assert sum(one.failures for one in history.jobs) == 1
    assert all(one.end_ms is not None for one in history.jobs)
    true = [sharing(f"j{i}", 10, None, memory_mib=10_000) for i in range(5)]
    assert not sum(one.failures for one in simulate(scenario(true, physics=CURVE), named_policy("horus")).jobs)


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
    every = policy("best-fit", replica_load_percent=100)
    for factor, wanted, noise in ((0, 8, 0), (1, 4, 20), (2, 2, 40)):
        told = with_scaled_errors(made, factor)
        assert sum(job.service for job in simulate(told, every).jobs) == wanted
        assert told.physics.core_trial_noise_thousandths == noise
        assert told.endpoints[0].gpu.rate_milli == 1_000
