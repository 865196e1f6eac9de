"""An autoscaler that decides late and by an old load, and replicas that need time to start."""

import pytest

from helpers.scenarios import policy, scenario
from placeopt.model import Autoscaler, Demand, Endpoint, LoadStep, Replica
from placeopt.simulation import named_policy, simulate, summarise
from placeopt.simulation.autoscaler import horizon_ms, wanted_over_time
from placeopt.simulation.endpoints import replicas, serving
from placeopt.simulation.latency import most_load
from placeopt_papers.scenarios.dynamoml import LAGGING, POD_START_MS, dynamoml_scenario

STEPS = ((0, 3_000), (1000, 16_000), (2000, 16_001), (3000, 3_000))


def endpoint(*, period_ms: int = 0, lag_ms: int = 0, start_ms: int = 0) -> Endpoint:
    """Build an endpoint whose load wants 1, 2, 3 and 1 replicas, a second each."""
    return Endpoint(
        id="e",
        gpu=Replica(demand=Demand(), rate_milli=10_000, latency_ms=100, start_ms=start_ms),
        latency_target_ms=200,
        autoscaler=Autoscaler(period_ms=period_ms, lag_ms=lag_ms),
        load=tuple(LoadStep(from_ms=at, rate_milli=rate) for at, rate in STEPS),
        until_ms=4000,
    )


def with_gpus(one: Endpoint, how: str = "follow") -> list[tuple[int, int]]:
    """Return the replicas with GPUs wanted from each moment on."""
    return [(at, gpus) for at, (gpus, _) in wanted_over_time(one, policy(replicas=how))]


def test_without_a_lag_they_change_with_the_load() -> None:
    """However they look ahead: the time until a decision answers is 0."""
    expected = [(0, 1), (1000, 2), (2000, 3), (3000, 1)]
    assert with_gpus(endpoint()) == with_gpus(endpoint(), "ahead") == expected


def test_a_change_is_seen_after_the_lag_and_decided_at_the_next_period() -> None:
    """1000 is seen at 1300 and decided at 1600, a multiple of 400; 2000 at 2400, 3000 at 3600."""
    late = endpoint(period_ms=400, lag_ms=300)
    assert with_gpus(late) == [(0, 1), (1600, 2), (2400, 3), (3600, 1)]
    assert with_gpus(endpoint(lag_ms=300)) == [(0, 1), (1300, 2), (2300, 3), (3300, 1)]
    assert with_gpus(endpoint(period_ms=1500)) == [(0, 1), (1500, 2), (3000, 1)]  # of 2000 and 3000 the later counts
    stays = [(arrival.job.arrival_ms, arrival.leaves_ms) for arrival in replicas(late, policy())]
    assert stays == [(0, 4000), (1600, 3600), (2400, 3600)]


def test_ahead_adds_the_largest_rise_to_be_expected() -> None:
    """
    Of the time until a decision answers, here 950 ms: at first 3, from nothing; 13 from the second step on.

    3 + 3 x 2, 16 + 13 x 3/2, 16.001 + 13 x 4/3 and 3 + 13 x 5/4, of which a replica takes 8. Over 1,250 ms the second
    rise is from nothing: 16 + 16 x 3/2, 16.001 + 16 x 4/3 and 3 + 16 x 5/4.
    """
    late = endpoint(period_ms=400, lag_ms=300, start_ms=250)
    assert horizon_ms(late) == 950
    assert with_gpus(late, "ahead") == [(0, 2), (1600, 5), (2400, 5), (3600, 3)]
    later = endpoint(period_ms=400, lag_ms=600, start_ms=250)
    assert with_gpus(later, "ahead") == [(0, 2), (1600, 5), (2800, 5), (3600, 3)]


def test_what_is_expected_may_use_all_that_answers_in_time() -> None:
    """80 % of a replica's 10 a second for the load of the moment, 95 % within 1,100 ms for what is expected."""
    late = endpoint(lag_ms=300).model_copy(update={"latency_target_ms": 1100})
    load = (LoadStep(from_ms=0, rate_milli=8_000), LoadStep(from_ms=1000, rate_milli=13_000))
    assert most_load(late.gpu, 1100) == pytest.approx(20 / 21)
    loads = late.model_copy(update={"load": load})
    assert with_gpus(loads, "ahead") == [(0, 3), (1300, 3)]  # 8 + 8 x 2 = 24, 13 + 8 x 3/2 = 25; of 80 % 3 and 4
    assert with_gpus(loads) == [(0, 1), (1300, 2)]


def test_a_rise_is_forgotten_after_five_minutes() -> None:
    """From 1 to 9 after a minute: 9 + 8 x 3/2 = 21, then 9 + 8 x 4/3, and after six minutes the load alone."""
    late = endpoint(lag_ms=300)
    load = [LoadStep(from_ms=at, rate_milli=rate) for at, rate in ((0, 1000), (60_000, 9000), (359_999, 9000))]
    loads = late.model_copy(update={"load": tuple(load), "until_ms": 600_000})
    assert with_gpus(loads, "ahead") == [(0, 1), (60_300, 3), (360_299, 3)]
    load[2] = LoadStep(from_ms=360_000, rate_milli=9000)
    assert with_gpus(loads.model_copy(update={"load": tuple(load)}), "ahead")[-1] == (360_300, 2)


def test_a_replica_answers_once_it_has_started() -> None:
    """The first runs with the endpoint; of 16 requests a second one serves 6.7 in time until the second has started."""
    late = endpoint(period_ms=400, lag_ms=300, start_ms=250)
    gpu = late.gpu
    found = serving([(late, [(gpu, 0, 4000), (gpu, 1600, 3600), (gpu, 2400, 3600), (gpu, 3700, 3900)])], 4000)
    one, two = 20 / 3, 40 / 3
    assert found is not None
    assert found.late == pytest.approx(0.85 * (16 - one) + 0.15 * (16 - two) + 0.65 * (16.001 - two))
    played = summarise(simulate(scenario([], endpoints=(late,)), policy("best-fit"))).serving
    assert played is not None
    assert played.late == pytest.approx(found.late)


def test_dynamoml_is_late_once_its_autoscaler_lags() -> None:
    """By construction nothing is late without a lag; with it, less is late by looking ahead than by following."""
    at_once, lagging = (
        dynamoml_scenario(seed=1, autoscaler=autoscaler, pod_start_ms=start)
        for autoscaler, start in ((None, 0), (LAGGING, POD_START_MS))
    )
    follows = named_policy("dynamoml")
    ahead = follows.model_copy(update={"replicas": "ahead"})
    late = [summarise(simulate(world, by)).serving for world in (at_once, lagging) for by in (follows, ahead)]
    shares = [found.late_share for found in late if found is not None]
    assert shares[:2] == [0, 0]
    assert 0 < shares[3] < shares[2] < 0.01
