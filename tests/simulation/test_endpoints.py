"""Inference that follows its load: replicas that come and leave, and how well they serve."""

import pytest

from helpers.scenarios import policy, scenario, timed
from placeopt import BadInput
from placeopt.formats import dumps, loads
from placeopt.model import Demand, Endpoint, LoadStep, Replica, Scenario
from placeopt.simulation import simulate, summarise
from placeopt.simulation.autoscaler import wanted_replicas
from placeopt.simulation.endpoints import Serving, replicas, serving
from placeopt.simulation.latency import latency_ms, most_load

GPU = Replica(demand=Demand(gpu_utilisation_percent=80), rate_milli=10_000, latency_ms=100)
CPU = Replica(demand=Demand(gpus=0, cpu_millicores=4000), rate_milli=2_000, latency_ms=100)
STEPS = ((0, 3_000), (1000, 16_000), (2000, 16_001), (3000, 3_000))


def endpoint(*, cpu: Replica | None = None, **fields: object) -> Endpoint:
    """Build an endpoint of 10 requests a second a GPU: 3 come a second, then 16, a little more, and 3 again."""
    steps = tuple(LoadStep(from_ms=at, rate_milli=rate) for at, rate in STEPS)
    return Endpoint(
        **{"id": "e", "gpu": GPU, "cpu": cpu, "latency_target_ms": 200, "load": steps, "until_ms": 4000, **fields}
    )


def stays(one: Endpoint, **fields: object) -> dict[str, tuple[int, int | None, int]]:
    """Return arrival, leaving and utilisation of every replica."""
    return {
        arrival.job.id: (
            arrival.job.arrival_ms,
            arrival.leaves_ms,
            arrival.job.options[0].demand.gpu_utilisation_percent,
        )
        for arrival in replicas(one, policy(**fields))
    }


class TestReplicas:
    """None serves more than 80 % of what it can: 8 a second."""

    def test_they_follow_the_load(self) -> None:
        """
        1, 2, 3 and 1; the last to come leaves first.

        The first serves 3, 8, 5.3 and 3 of its 10: 48 % in the mean, 50 in tens; the second 8 and 5.3, the third 5.3.
        """
        assert stays(endpoint()) == {
            "e.gpu0.0": (0, 4000, 40),
            "e.gpu1.0": (1000, 3000, 56),
            "e.gpu2.0": (2000, 3000, 48),
        }

    def test_they_stay_at_their_peak(self) -> None:
        """Three all the time, 9.5 in the mean between them."""
        peak = stays(endpoint(), replicas="peak")
        assert {times[:2] for times in peak.values()} == {(0, 4000)}
        assert {times[2] for times in peak.values()} == {32}
        assert len(peak) == 3

    def test_under_a_low_load_they_are_on_cores(self) -> None:
        """3 a second: two of 1.6 each; GPUs from the second step on, and cores again."""
        found = stays(endpoint(cpu=CPU), cpu_replicas=True)
        assert {name: times[:2] for name, times in found.items()} == {
            "e.gpu0.0": (1000, 3000),
            "e.gpu1.0": (1000, 3000),
            "e.gpu2.0": (2000, 3000),
            "e.cpu0.0": (0, 1000),
            "e.cpu0.1": (3000, 4000),
            "e.cpu1.0": (0, 1000),
            "e.cpu1.1": (3000, 4000),
            "e.gpu-instead.0": (0, 1000),  # one of both comes
            "e.gpu-instead.1": (3000, 4000),
        }
        assert stays(endpoint(cpu=CPU)) == stays(endpoint())

    def test_there_is_one_at_least_and_no_more_than_may_be(self) -> None:
        """Without a load, and with too much."""
        assert wanted_replicas(endpoint(), 0, policy()) == (1, 0)
        assert wanted_replicas(endpoint(replicas_max=2), 10**9, policy()) == (2, 0)

    def test_a_job_may_not_have_a_replica_s_name(self) -> None:
        """Else two would be one."""
        with pytest.raises(BadInput, match=r"e\.gpu0\.0"):
            simulate(scenario([timed("e.gpu0.0", 0, 1)], endpoints=(endpoint(),)), policy())


class TestServing:
    """Answers take 100 ms, and may take 200: half of it in the queue, at two thirds of what replicas can serve."""

    def test_latency_rises_with_the_load(self) -> None:
        """M/D/1: a request waits r / (2 (1 - r)) times 100 ms; of a faster replica a tenth of it."""
        fast = GPU.model_copy(update={"rate_milli": 100_000})
        assert latency_ms(fast, 0.5) == 105
        assert most_load(fast, 200) == pytest.approx(20 / 21)
        assert latency_ms(GPU, 0.0) == 100
        assert latency_ms(GPU, 0.5) == 150
        assert most_load(GPU, 200) == pytest.approx(2 / 3)
        assert latency_ms(GPU, most_load(GPU, 200)) == pytest.approx(200)
        assert most_load(GPU, 100) == 0

    def test_what_comes_above_is_late(self) -> None:
        """One replica serves 6.7 in time: 9.3 of 16 are late, for a second."""
        one = endpoint(load=(LoadStep(from_ms=0, rate_milli=16_000),), until_ms=1000)
        found = serving([(one, [(GPU, 0, 1000)])], 1000)
        assert found.requests == pytest.approx(16)
        assert found.late == pytest.approx(16 - 20 / 3)
        assert (found.late_s, found.latency_p95_ms) == (1, None)

    def test_where_nothing_runs_all_are_late(self) -> None:
        """For the second half."""
        one = endpoint(load=(LoadStep(from_ms=0, rate_milli=4_000),), until_ms=1000)
        assert serving([(one, [(GPU, 0, 500)])], 1000) == Serving(4.0, 2.0, 0.5, None)
        assert serving([(one, [(GPU, 0, 500)])], 500).late == 0

    def test_the_95th_percentile_is_over_requests(self) -> None:
        """Half of the capacity for nine seconds, a fifth for one: 45 of 47 answers take 150 ms."""
        steps = (LoadStep(from_ms=0, rate_milli=5_000), LoadStep(from_ms=9000, rate_milli=2_000))
        one = endpoint(load=steps, until_ms=10_000)
        assert serving([(one, [(GPU, 0, 10_000)])], 10_000).latency_p95_ms == pytest.approx(150)

    def test_both_kinds_serve_side_by_side(self) -> None:
        """Each 6.7 a second in time; 4 are a fifth of what they can."""
        cores = CPU.model_copy(update={"rate_milli": 10_000})
        one = endpoint(cpu=cores, load=(LoadStep(from_ms=0, rate_milli=4_000),), until_ms=1000)
        found = serving([(one, [(GPU, 0, 1000), (cores, 0, 1000)])], 1000)
        assert (found.late, found.latency_p95_ms) == (0, pytest.approx(112.5))

    def test_without_requests_there_is_nothing_to_tell(self) -> None:
        """No endpoint, or no load."""
        assert serving([], 1000) is None
        assert serving([(endpoint(load=(LoadStep(from_ms=0, rate_milli=0),)), [])], 1000) is None


def test_in_a_simulation_a_full_cluster_makes_answers_late() -> None:
    """
    Four GPUs; jobs hold three until 1500, so the second replica is half a second late, the third comes in time.

    Meanwhile one serves 6.7 of 16 a second in time; two serve 13.3 of them, three 20.
    """
    jobs = [timed(f"j{i}", 0, 1500) for i in range(3)]
    world = scenario(jobs, endpoints=(endpoint(),))
    found = summarise(simulate(world, policy("best-fit")))
    assert found.serving.late == pytest.approx(0.5 * (16 - 20 / 3) + 0.5 * (16 - 40 / 3))
    assert found.serving.late_s == pytest.approx(1.0)
    assert (found.services, found.jobs, found.ended) == (3, 3, 3)
    assert loads(Scenario, dumps(world)) == world
    assert summarise(simulate(scenario(jobs), policy("best-fit"))).serving is None


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"load": (LoadStep(from_ms=5, rate_milli=1), LoadStep(from_ms=5, rate_milli=2))}, "expected after 5"),
        ({"until_ms": 3000}, "expected after the last step"),
        ({"gpu": CPU}, "a replica of the first has GPUs"),
        ({"latency_target_ms": 99}, "always late"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict, told: str) -> None:
    """With words that lead to it."""
    with pytest.raises(ValueError, match=told):
        endpoint(**fields)
