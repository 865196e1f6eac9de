"""What policies believe of jobs: predicted once, and corrected by what was measured of earlier ones."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from helpers.scenarios import scenario, timed
from placeopt import Engine
from placeopt.build import instance, job, node, option, running
from placeopt.model import Cluster, Instance, Option
from placeopt.scheduling import LiveScheduler, Predictor, Scheduling, System, Usage, named_policy
from placeopt.simulation import Arrival, Estimate, simulate

CALLS: list[str] = []


def by_seconds(model: None, row: dict[str, str], options: Sequence[Option], cluster: Cluster) -> list[Estimate]:
    """A predictor: so many seconds as the row says, with a utilisation of 20 %."""
    CALLS.append(row["profile"])
    ms = 1000 * int(row["seconds"])
    return [Estimate(run_time_ms=ms, gpu_utilisation_percent=20) for _ in options]


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system with that predictor beside the installed ones."""
    found = System("none", Path(), {}, {"seconds": Predictor("seconds", estimates=f"{__name__}:by_seconds")})
    monkeypatch.setattr("placeopt.scheduling.predictions.load_systems", lambda: {"made": found})
    CALLS.clear()


def believing(name: str, **seconds: int) -> Scheduling:
    """Return a policy that believes run times of profiles."""
    table = tuple({"profile": profile, "seconds": str(value)} for profile, value in seconds.items())
    fields = {**dict(named_policy(name)), "predictions": ({"predictor": "seconds", "table": table},)}
    return Scheduling.model_validate(fields)


def reading(nodes: int = 1) -> Instance:
    boxes = tuple(node(f"n{i}") for i in range(nodes))
    jobs = [job(name, gpus=1, profile=name[0], gpu_utilisation_percent=50) for name in ("a1", "a2", "b", "c")]
    made = instance(1, jobs)
    return made.model_copy(update={"cluster": made.cluster.model_copy(update={"nodes": boxes})})


@pytest.mark.parametrize("name", ["placeopt", "srtf"])
def test_a_kind_of_jobs_is_predicted_once_while_the_cluster_stays(engine: Engine, name: str) -> None:
    """Four jobs wait for three rounds, of two profiles that are known: two calls; a node more: two others."""
    live = LiveScheduler(engine, believing(name, a=10, b=20))
    for _ in range(3):
        live.follow(reading())
        live.decide(1.0, threading.Event(), deterministic=True)
    assert sorted(CALLS) == ["a", "b"]
    live.follow(reading(nodes=2))
    assert sorted(CALLS) == ["a", "a", "b", "b"]
    assert [one.options[0].run_time_ms for one in live.snapshot.jobs] == [10_000, 10_000, 20_000, None]


@pytest.mark.parametrize("name", ["placeopt-jct", "srtf"])
def test_a_simulation_predicts_a_kind_of_jobs_once(name: str) -> None:
    """In whole rounds too, to which the engine's jobs have no profile: the believed shortest is first."""
    jobs = [timed("held", 0, 1000, gpus=4), *(timed(f"a{i}", 1, 2000, gpus=4, profile="a") for i in range(3))]
    jobs.append(timed("b", 2, 5000, gpus=4, profile="b"))
    found = {one.job: one.start_ms for one in simulate(scenario(jobs), believing(name, a=10, b=1)).jobs}
    assert (found["b"], sorted(CALLS)) == (1000, ["a", "b"])
    plain = {one.job: one.start_ms for one in simulate(scenario(jobs), named_policy(name)).jobs}
    assert plain["b"] == 7000


def test_what_was_measured_corrects_what_is_predicted(engine: Engine) -> None:
    """
    Predicted are 20 %; measured, of the job that runs, 80 %: that is believed of both jobs of the profile.

    What runs keeps its memory, and jobs of the profile that infer are others.
    """

    class Stated:
        def read(self) -> Usage:
            return Usage({"gpu_utilisation_percent": {"a1": 80.0}})

    live = LiveScheduler(engine, believing("placeopt", a=10, b=20), telemetry=Stated())
    now = reading()
    infers = job("a3", gpus=1, profile="a", kind="inference")
    held = (running(now.jobs[0], [("n0", [0])]),)
    live.follow(now.model_copy(update={"jobs": (*now.jobs, infers), "running": held}))
    percents = [one.options[0].demand.gpu_utilisation_percent for one in live.snapshot.jobs]
    assert percents == [80, 80, 20, 50, 20]


def shapes(name: str, arrival_ms: int) -> Arrival:
    """Return a task that takes 8 s on a GPU, believed to be 2, and 2 s on four, believed to be 4."""
    both = (
        option("1x1", run_time_ms=8_000, latency_ms=8_000, rate_milli=1_000),
        option("1x4", run_time_ms=2_000, latency_ms=2_000, rate_milli=4_000, gpus=4),
    )
    told = (Estimate(rate_milli=4_000, latency_ms=2_000), Estimate(rate_milli=2_000, latency_ms=4_000))
    return Arrival(
        job=job(name, options=both, arrival_ms=arrival_ms, profile="net", expected_completion_ms=10**6), estimates=told
    )


@pytest.mark.parametrize(("telemetry", "second"), [(False, ("1x1", 8_000, 16_000)), (True, ("1x4", 20_000, 22_000))])
def test_genie_s_waiting_tasks_are_corrected_by_the_first_that_ends(
    telemetry: bool, second: tuple[str, int, int]
) -> None:
    """
    The first task takes one GPU, believed to process 4 a second, and processes 1: a quarter.

    The second waits meanwhile, for others hold three GPUs for 20 s. Four GPUs, believed to process 2 a second, are then
    better for it than one, and it waits for them: it was not, and takes the first one that is free.
    """
    tasks = [Arrival(job=timed("held", 0, 20_000, gpus=3)), shapes("first", 0), shapes("second", 1_000)]
    made = scenario(tasks, physics={"telemetry": telemetry, "spread_slowdown_thousandths": 0})
    found = {one.job: one for one in simulate(made, named_policy("tetris-perf")).jobs}
    ran = {
        name: (one.placement.option, one.start_ms, one.end_ms)
        for name, one in found.items()
        if one.placement is not None
    }
    assert (ran["first"], ran["second"]) == (("1x1", 0, 8_000), second)


def heavy(name: str, arrival_ms: int, believed: int | None) -> Arrival:
    """Return a job of 10 s that uses a GPU whole."""
    record = job(
        name, arrival_ms=arrival_ms, profile="net", options=(option(gpu_utilisation_percent=100, run_time_ms=10_000),)
    )
    return Arrival(job=record, estimates=(Estimate(gpu_utilisation_percent=believed),))


def test_horus_s_later_jobs_are_believed_as_the_first_was_measured() -> None:
    """Five jobs after a first one of their profile: believed light they share GPUs; measured, as if that were true."""

    def ends(believed: int | None, telemetry: bool) -> list[int | None]:
        jobs = [heavy("first", 0, 1), *(heavy(f"j{i}", 20_000, believed) for i in range(5))]
        made = scenario(jobs, physics={"interference": "curve", "telemetry": telemetry})
        return [one.end_ms for one in simulate(made, named_policy("horus")).jobs]

    true = ends(None, telemetry=False)
    assert ends(1, telemetry=True) == true != ends(1, telemetry=False)
