"""CPU cores and memory bandwidth: worked by hand."""

import pytest

from helpers.scenarios import policy, scenario, timed
from placeopt import BadInput
from placeopt.build import running
from placeopt.formats import loads
from placeopt.model import CoreCurve, Scenario, Throttle
from placeopt.simulation import simulate, summarise
from placeopt.simulation.memory_bandwidth import MemoryBandwidthUse
from placeopt.simulation.scheduling.resource_estimator import ResourceEstimator

CURVE = CoreCurve(profile="slow", category="vision", speed_thousandths=(250, 500, 1000, 1000))


def on_machines(world: Scenario, **fields: object) -> Scenario:
    """Return the scenario with other figures of its machine."""
    machine = world.cluster.machines[0].model_copy(update=fields)
    return world.model_copy(update={"cluster": world.cluster.model_copy(update={"machines": (machine,)})})


def ends(world: Scenario, scheduling=None) -> dict[str, int | None]:
    """Return when each job ended."""
    return {one.job: one.end_ms for one in simulate(world, scheduling or policy("best-fit")).jobs}


def cpu_job(name: str, run_ms: int, *, mbps: int, cores: int = 1):
    """Build a job of kind ``cpu`` that arrives at 0."""
    return timed(name, 0, run_ms, gpus=0, kind="cpu", cpu_millicores=1000 * cores, memory_bandwidth_mbps=mbps)


class TestCores:
    """Speed by the cores of each GPU."""

    @pytest.mark.parametrize(
        ("millicores", "speed"), [(0, 1), (500, 125), (1000, 250), (1500, 375), (2500, 750), (3000, 1000), (9000, 1000)]
    )
    def test_between_whole_cores_speed_is_interpolated(self, millicores: int, speed: int) -> None:
        """Below the first it falls in proportion; beyond the last it stays."""
        assert CURVE.speed(millicores) == speed

    def test_too_few_cores_slow_a_job_and_its_gpu_waits(self) -> None:
        """Two cores for two GPUs: a quarter of the speed; three quarters of the time the GPUs wait."""
        jobs = [
            timed("x", 0, 1000, gpus=2, cpu_millicores=2000, profile="slow", gpu_utilisation_percent=80),
            timed("y", 0, 1000, gpus=1, cpu_millicores=3000, profile="slow"),
        ]
        history = simulate(scenario(jobs, core_curves=(CURVE,)), policy("best-fit"))
        x, y = history.jobs
        assert (x.end_ms, x.host_wait_ms) == (4000, 3000)
        assert (y.end_ms, y.host_wait_ms) == (1000, 0)
        figures = summarise(history).occupancy
        assert figures.utilisation == pytest.approx(2 * 1000 * 0.8 / (4 * 4000))
        assert figures.utilisation_of_active == pytest.approx(2 * 1000 * 0.8 / (2 * 4000 + 1000))

    def test_without_a_curve_cores_do_not_count(self) -> None:
        """Another profile, or none."""
        jobs = [timed("x", 0, 1000, profile="other"), timed("y", 0, 1000)]
        assert ends(scenario(jobs, core_curves=(CURVE,))) == {"x": 1000, "y": 1000}

    def test_the_best_fit_is_given_instead_of_what_was_asked_for(self) -> None:
        """Three a GPU; what the placements hold, too."""
        job = timed("x", 0, 1000, gpus=2, cpu_millicores=2000, profile="slow")
        greedy = timed("y", 0, 1000, cpu_millicores=20_000, profile="slow")
        history = simulate(scenario([job, greedy], core_curves=(CURVE,)), policy("best-fit", cores="best_fit"))
        assert [one.end_ms for one in history.jobs] == [1000, 1000]
        assert [one.placement.assignments[0].cpu_millicores for one in history.jobs] == [6000, 3000]

    def test_the_search_begins_where_the_user_s_last_one_ended(self) -> None:
        """From 3 it asks for 2 and 4; and no more than a node has."""
        world = scenario([timed("x", 0, 1, profile="slow", user="u")], core_curves=(CURVE,))
        belief = ResourceEstimator(world, policy(cores="best_fit"))
        for _ in range(2):
            assert belief.of(world.arrivals[0].job).options[0].demand.cpu_millicores == 3000
        assert belief.steps == [3, 3]
        tiny = ResourceEstimator(on_machines(world, cpu_millicores=2000), policy(cores="best_fit"))
        assert tiny.of(world.arrivals[0].job).options[0].demand.cpu_millicores == 2000

    def test_each_trial_takes_time_at_the_speed_of_its_cores(self) -> None:
        """It tries 3, 2 and 4: 60 s with two cores at half the speed lose 30 s, once; asked cores lose nothing."""
        jobs = [timed("x", 0, 100_000, profile="slow", cpu_millicores=3000)]
        world = scenario(jobs, core_curves=(CURVE,), physics={"core_trial_ms": 60_000})
        assert ends(world, policy("best-fit", cores="best_fit")) == {"x": 130_000}
        assert ends(world) == {"x": 100_000}

    def test_trials_that_measure_with_noise_find_other_cores(self) -> None:
        """With an error of a third some of forty jobs get two cores, or five; the same ones every time."""
        jobs = [timed(f"j{i}", 0, 1000, profile="slow", user=f"u{i}") for i in range(40)]
        exact, off = (
            ResourceEstimator(
                scenario(jobs, core_curves=(CURVE,), physics={"core_trial_noise_thousandths": noise}),
                policy(cores="best_fit"),
            )
            for noise in (0, 333)
        )
        assert {exact.of(job).options[0].demand.cpu_millicores for job in jobs} == {3000}
        found = [off.of(job).options[0].demand.cpu_millicores for job in jobs]
        assert min(found) < 3000 < max(found)
        assert not off.search_ms


class TestBandwidth:
    """Usable are 75 % of 100 GB/s: 75,000 MB/s."""

    def world(self, jobs) -> Scenario:
        """Build a scenario of one node."""
        return on_machines(scenario(jobs, physics={"memory_bandwidth_percent": 75}), memory_bandwidth_mbps=100_000)

    def test_all_are_slowed_in_proportion_to_what_is_too_much(self) -> None:
        """
        90 of 75 GB/s: everybody takes 1.2 times as long.

        The CPU job (1000 ms) ends at 1200; by then the other has done 1000 of its 2000 ms.
        """
        jobs = [timed("gpu", 0, 2000, memory_bandwidth_mbps=30_000), cpu_job("cpu", 1000, mbps=60_000)]
        assert ends(self.world(jobs), policy(bandwidth="ignore")) == {"gpu": 2200, "cpu": 1200}

    def test_reserved_it_is_not_given_twice(self) -> None:
        """The CPU job waits until the other has ended."""
        jobs = [timed("gpu", 0, 2000, memory_bandwidth_mbps=30_000), cpu_job("cpu", 1000, mbps=60_000)]
        assert ends(self.world(jobs), policy()) == {"gpu": 2000, "cpu": 3000}

    def test_throttled_cpu_jobs_disturb_no_job(self) -> None:
        """45 of the 60 GB/s are left to it: 60 / 45 times as long, rounded up to thousandths."""
        jobs = [timed("gpu", 0, 2000, memory_bandwidth_mbps=30_000), cpu_job("cpu", 1000, mbps=60_000)]
        assert ends(self.world(jobs), policy(bandwidth="throttle")) == {"gpu": 2000, "cpu": 1334}

    def test_a_tenth_is_always_left(self) -> None:
        """GPU jobs use all there is; 6 GB/s stay with the CPU job, and 81 of 75 slow all by 1.08."""
        traffic = MemoryBandwidthUse([75_000], throttle=Throttle())
        traffic.start("gpu", {0: 75_000}, throttled=False)
        traffic.start("cpu", {0: 60_000}, throttled=True)
        assert traffic.excess([0], throttled=False) == 80
        assert traffic.excess([0], throttled=True) == 10_800 - 1000

    def test_half_of_the_cores_use_half_of_the_bandwidth(self) -> None:
        """
        SODA V-E: 30 of 60 GB/s, beside 30: below 75, so the GPU job loses nothing and the CPU job takes twice as long.

        Beside 60 GB/s it is 90 of 75: both take 1.2 times as long as they would, 2.4 times the CPU job.
        """
        halved = policy(bandwidth="throttle", throttle=Throttle(by="cores"))
        jobs = [timed("gpu", 0, 4000, memory_bandwidth_mbps=30_000), cpu_job("cpu", 1000, mbps=60_000)]
        assert ends(self.world(jobs), halved) == {"gpu": 4000, "cpu": 2000}
        traffic = MemoryBandwidthUse([75_000], throttle=Throttle(by="cores"))
        traffic.start("gpu", {0: 60_000}, throttled=False)
        traffic.start("cpu", {0: 60_000}, throttled=True)
        assert (traffic.excess([0], throttled=False), traffic.excess([0], throttled=True)) == (200, 1400)

    @pytest.mark.parametrize(("mbps", "excesses"), [(53_000, (107, 107)), (54_000, (0, 1000))])
    def test_noticed_by_the_utilisation_of_gpus(self, mbps: int, excesses: tuple[int, int]) -> None:
        """SODA V-E: 83 and 84 of 75 GB/s leave GPUs at 90.4 and 89.3 % of their utilisation: 10 % is a drop."""
        traffic = MemoryBandwidthUse([75_000], throttle=Throttle(by="cores", noticed_by="utilisation"))
        traffic.start("gpu", {0: 30_000}, throttled=False, has_gpus=True)
        traffic.start("cpu", {0: mbps}, throttled=True)
        assert (traffic.excess([0], throttled=False), traffic.excess([0], throttled=True)) == excesses

    def test_without_a_gpu_job_no_utilisation_drops(self) -> None:
        """Nobody is held back: 120 of 75 GB/s."""
        traffic = MemoryBandwidthUse([75_000], throttle=Throttle(noticed_by="utilisation"))
        traffic.start("cpu", {0: 120_000}, throttled=True)
        assert traffic.excess([0], throttled=True) == 600

    def test_a_gang_goes_at_the_pace_of_its_worst_node(self) -> None:
        """Only one of its two nodes has a neighbour; unknown bandwidth limits nobody."""
        traffic = MemoryBandwidthUse([1000, 1000, None], throttle=None)
        traffic.start("gang", {0: 600, 1: 600}, throttled=False)
        traffic.start("other", {1: 900, 2: 9000}, throttled=False)
        assert traffic.excess([0, 1], throttled=False) == 500
        assert traffic.excess([0], throttled=False) == traffic.excess([2], throttled=False) == 0
        assert list(traffic.jobs_with_new_pace([0, 1, 2])) == ["gang", "other"]
        traffic.end("other", {1: 900, 2: 9000}, throttled=False)
        assert traffic.excess([0, 1], throttled=False) == 0

    def test_what_runs_from_the_beginning_counts_too(self) -> None:
        """Beside it, 1.2 times as long."""
        jobs = [timed("old", 0, 1000, memory_bandwidth_mbps=60_000), timed("new", 0, 600, memory_bandwidth_mbps=30_000)]
        world = self.world(jobs).model_copy(update={"running": (running(jobs[0], [("n0", (0,))]),)})
        assert ends(world, policy(bandwidth="ignore")) == {"new": 720, "old": 1120}

    def test_off_unless_stated(self) -> None:
        """Without the scenario's word nobody is slowed."""
        jobs = [timed("a", 0, 1000, memory_bandwidth_mbps=60_000), timed("b", 0, 1000, memory_bandwidth_mbps=60_000)]
        world = on_machines(scenario(jobs), memory_bandwidth_mbps=100_000)
        assert ends(world, policy(bandwidth="ignore")) == {"a": 1000, "b": 1000}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ('"core_curves": [{"profile": "a", "speed_thousandths": [999]}]', "the highest is 999"),
        (
            '"core_curves": [{"profile": "a", "speed_thousandths": [1000]}], "physics": {"rule": "sc17"}',
            "knows neither",
        ),
        ('"physics": {"rule": "sc17", "memory_bandwidth_percent": 75}', "knows neither"),
    ],
)
def test_what_cannot_be_is_refused(fields: str, told: str) -> None:
    """With words that lead to it."""
    cluster = (
        '{"machines": [{"id": "m", "cpu_millicores": 1, "memory_mib": 1}], "nodes": [{"id": "n", "machine": "m"}]}'
    )
    with pytest.raises(BadInput, match=told):
        loads(Scenario, f'{{"cluster": {cluster}, {fields}}}')
