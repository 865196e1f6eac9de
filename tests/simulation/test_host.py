"""CPU cores and memory bandwidth: worked by hand."""

from typing import Any

import pytest

from helpers.scenarios import policy, scenario, timed
from placeopt import BadInput
from placeopt.build import running
from placeopt.documents import loads
from placeopt.model import Job
from placeopt.scheduling import CoreCurve, Throttle
from placeopt.simulation import History, Scenario, simulate, summarise

CURVE = CoreCurve(profile="slow", category="vision", speed_thousandths=(250, 500, 1000, 1000))
BEST_FIT = policy("best-fit", cores="best_fit")


def ends(world: Scenario, scheduling: Any = None) -> dict[str, int | None]:
    """Return when each job ended."""
    return {one.job: one.end_ms for one in simulate(world, scheduling or policy("best-fit")).jobs}


def cores(history: History) -> list[int]:
    """Return the millicores that each job got on its first node."""
    return [one.spans[0].placement.assignments[0].cpu_millicores for one in history.jobs]


@pytest.mark.parametrize(
    ("millicores", "speed"), [(0, 1), (500, 125), (1000, 250), (1500, 375), (2500, 750), (3000, 1000), (9000, 1000)]
)
def test_between_whole_cores_speed_is_interpolated(millicores: int, speed: int) -> None:
    """Below the first it falls in proportion; beyond the last it stays."""
    assert CURVE.speed(millicores) == speed


def test_too_few_cores_slow_a_job_and_its_gpu_waits() -> None:
    """Two cores for two GPUs: a quarter of the speed; three quarters of the time the GPUs wait."""
    jobs = [
        timed("x", 0, 1000, gpus=2, cpu_millicores=2000, profile="slow", gpu_utilisation_percent=80),
        timed("y", 0, 1000, gpus=1, cpu_millicores=3000, profile="slow"),
    ]
    history = simulate(scenario(jobs, core_curves=(CURVE,)), policy("best-fit"))
    assert [(one.end_ms, one.host_wait_ms) for one in history.jobs] == [(4000, 3000), (1000, 0)]
    figures = summarise(history).occupancy
    assert figures.utilisation == pytest.approx(2 * 1000 * 0.8 / (4 * 4000))
    assert figures.utilisation_of_active == pytest.approx(2 * 1000 * 0.8 / (2 * 4000 + 1000))
    others = [timed("x", 0, 1000, profile="other"), timed("y", 0, 1000)]
    assert ends(scenario(others, core_curves=(CURVE,))) == {"x": 1000, "y": 1000}, "without a curve cores do not count"


def test_the_best_fit_is_given_instead_of_what_was_asked_for() -> None:
    """Three a GPU, and no more than a node has; what the placements hold, too."""
    jobs = [timed("x", 0, 1000, gpus=2, cpu_millicores=2000, profile="slow")]
    jobs.append(timed("y", 0, 1000, cpu_millicores=20_000, profile="slow"))
    history = simulate(scenario(jobs, core_curves=(CURVE,)), BEST_FIT)
    assert [one.end_ms for one in history.jobs] == [1000, 1000]
    assert cores(history) == [6000, 3000]
    tiny = scenario([timed("x", 0, 1, profile="slow")], core_curves=(CURVE,), machine={"cpu_millicores": 2000})
    assert cores(simulate(tiny, BEST_FIT)) == [2000]


def test_each_trial_takes_time_at_the_speed_of_its_cores() -> None:
    """It tries 3, 2 and 4: 60 s with two cores at half the speed lose 30 s, once; asked cores lose nothing."""
    jobs = [timed("x", 0, 100_000, profile="slow", cpu_millicores=3000)]
    world = scenario(jobs, core_curves=(CURVE,), physics={"core_trial_ms": 60_000})
    assert ends(world, BEST_FIT) == {"x": 130_000}
    assert ends(world) == {"x": 100_000}


def test_the_search_begins_where_the_user_s_last_one_ended() -> None:
    """A fifth of the speed a core: 3, 2, 4, 5 and 6 lose 2/5, 3/5 and 1/5 of 10 s; from 5 on 4 and 6 lose a fifth."""
    curve = CoreCurve(profile="slow", category="vision", speed_thousandths=(200, 400, 600, 800, 1000, 1000))
    jobs = [timed(name, 0, 100_000, profile="slow", user=user) for name, user in ("au", "bu", "cv")]
    world = scenario(jobs, core_curves=(curve,), physics={"core_trial_ms": 10_000})
    assert ends(world, BEST_FIT) == {"a": 112_000, "b": 102_000, "c": 112_000}
    assert cores(simulate(world, BEST_FIT)) == [5000] * 3


def test_trials_that_measure_with_noise_find_other_cores() -> None:
    """With an error of a third some of forty jobs get two cores, or five; the same ones every time."""
    jobs = [timed(f"j{i}", 0, 1000, profile="slow", user=f"u{i}") for i in range(40)]
    exact, off, again = (
        cores(
            simulate(
                scenario(jobs, nodes=10, core_curves=(CURVE,), physics={"core_trial_noise_thousandths": noise}),
                BEST_FIT,
            )
        )
        for noise in (0, 333, 333)
    )
    assert set(exact) == {3000}
    assert min(off) < 3000 < max(off)
    assert off == again


def gpu_job(run_ms: int, mbps: int) -> Job:
    """Build a job on a GPU that uses so much memory bandwidth."""
    return timed("gpu", 0, run_ms, memory_bandwidth_mbps=mbps)


def cpu_job(run_ms: int, mbps: int) -> Job:
    """Build a job without GPUs, which may be throttled."""
    return timed("cpu", 0, run_ms, gpus=0, kind="cpu", cpu_millicores=1000, memory_bandwidth_mbps=mbps)


HALF = Throttle(rule="throttle", by="cores")
NOTICED = Throttle(rule="throttle", by="cores", noticed_by="utilisation")
BANDWIDTH: list[tuple[dict[str, Any], list[Job], dict[str, int]]] = [
    # 90 of 75 GB/s: 1.2 times as long; by the end of the CPU job the other has done 1000 of its 2000 ms
    ({"bandwidth": "ignore"}, [gpu_job(2000, 30_000), cpu_job(1000, 60_000)], {"gpu": 2200, "cpu": 1200}),
    # reserved, it is not given twice
    ({}, [gpu_job(2000, 30_000), cpu_job(1000, 60_000)], {"gpu": 2000, "cpu": 3000}),
    # 45 of the 60 GB/s are left to the CPU job: 60 / 45 times as long, rounded up to thousandths
    ({"bandwidth": "throttle"}, [gpu_job(2000, 30_000), cpu_job(1000, 60_000)], {"gpu": 2000, "cpu": 1334}),
    # a tenth is always left: 81 of 75 slow all by 1.08; 2160 / 10.8 are done, and 800 alone
    ({"bandwidth": "throttle"}, [gpu_job(2000, 75_000), cpu_job(1000, 60_000)], {"gpu": 2160, "cpu": 2960}),
    # SODA V-E: half of the cores use half of the bandwidth and take twice as long; the GPU job loses nothing
    ({"bandwidth": HALF}, [gpu_job(4000, 30_000), cpu_job(1000, 60_000)], {"gpu": 4000, "cpu": 2000}),
    # beside 60 GB/s it is 90 of 75, so that both take 1.2 times as long as they would
    ({"bandwidth": HALF}, [gpu_job(4000, 60_000), cpu_job(1000, 60_000)], {"gpu": 4400, "cpu": 2400}),
    # noticed by the utilisation of GPUs: 83 of 75 leave 90.4 %, 84 of 75 only 89.3 %; 10 % is a drop
    ({"bandwidth": NOTICED}, [gpu_job(2000, 30_000), cpu_job(1000, 53_000)], {"gpu": 2107, "cpu": 1107}),
    ({"bandwidth": NOTICED}, [gpu_job(2000, 30_000), cpu_job(1000, 54_000)], {"gpu": 2000, "cpu": 2000}),
    # without a GPU job no utilisation drops
    ({"bandwidth": NOTICED}, [cpu_job(1000, 120_000)], {"cpu": 1600}),
]


@pytest.mark.parametrize(("fields", "jobs", "expected"), BANDWIDTH, ids=range(len(BANDWIDTH)))
def test_bandwidth_that_is_too_much(fields: dict[str, Any], jobs: list[Job], expected: dict[str, int]) -> None:
    """Usable are 75 % of 100 GB/s: 75,000 MB/s."""
    world = scenario(jobs, physics={"memory_bandwidth_percent": 75}, machine={"memory_bandwidth_mbps": 100_000})
    assert ends(world, policy(**fields)) == expected


def test_a_gang_goes_at_the_pace_of_its_worst_node() -> None:
    """Only one of its two nodes is used beyond its 1,000 MB/s, by half, until the neighbour ends."""
    jobs = [
        timed("gang", 0, 2000, workers=2, memory_bandwidth_mbps=600),
        timed("b", 0, 1000, memory_bandwidth_mbps=900),
    ]
    jobs += [timed("c", 0, 1000, memory_bandwidth_mbps=400), timed("d", 0, 1000, memory_bandwidth_mbps=1000)]
    places = [[("n0", (0,)), ("n1", (0,))], [("n1", (1,))], [("n0", (1,))], [("n2", (0,))]]
    held = tuple(running(job, where) for job, where in zip(jobs, places, strict=True))
    fields: dict[str, Any] = {"nodes": 3, "running": held, "physics": {"memory_bandwidth_percent": 100}}
    known = ends(scenario(jobs, machine={"memory_bandwidth_mbps": 1000}, **fields), policy(bandwidth="ignore"))
    assert known == {"gang": 2500, "b": 1500, "c": 1000, "d": 1000}
    unknown = ends(scenario(jobs, **fields), policy(bandwidth="ignore"))
    assert unknown["gang"] == 2000, "unknown bandwidth limits nobody"


def test_what_runs_from_the_beginning_counts_too() -> None:
    """Beside it, 1.2 times as long; without the scenario's word nobody is slowed."""
    jobs = [timed("old", 0, 1000, memory_bandwidth_mbps=60_000), timed("new", 0, 600, memory_bandwidth_mbps=30_000)]
    held = (running(jobs[0], [("n0", (0,))]),)
    for percent, expected in ((75, {"new": 720, "old": 1120}), (None, {"new": 600, "old": 1000})):
        physics, machine = {"memory_bandwidth_percent": percent}, {"memory_bandwidth_mbps": 100_000}
        world = scenario(jobs, running=held, physics=physics, machine=machine)
        assert ends(world, policy(bandwidth="ignore")) == expected


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ('"core_curves": [{"profile": "a", "speed_thousandths": [999]}]', "the highest is 999"),
        (
            '"core_curves": [{"profile": "a", "speed_thousandths": [1000]}], "physics": {"rule": "sc17"}',
            "supports neither",
        ),
        ('"physics": {"rule": "sc17", "memory_bandwidth_percent": 75}', "supports neither"),
    ],
)
def test_what_cannot_be_is_refused(fields: str, told: str) -> None:
    machines, nodes = '[{"id": "m", "cpu_millicores": 1, "memory_mib": 1}]', '[{"id": "n", "machine": "m"}]'
    with pytest.raises(BadInput, match=told):
        loads(Scenario, f'{{"cluster": {{"machines": {machines}, "nodes": {nodes}}}, {fields}}}')
