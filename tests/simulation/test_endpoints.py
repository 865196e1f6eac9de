"""Services: inference whose replicas follow its load, where they run and how late they answer; jobs without an end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from helpers.scenarios import log_lines, policy, scenario, timed
from placeopt import BadInput
from placeopt.documents import dumps, loads
from placeopt.model import Demand, Job
from placeopt.scheduling import Replicas, named_policy
from placeopt.simulation import (
    Arrival,
    Autoscaler,
    Endpoint,
    History,
    LoadStep,
    Replica,
    Scenario,
    round_at,
    simulate,
    summarise,
)
from placeopt.systems.dynamoml import LAGGING, POD_START_MS, dynamoml_scenario

GPU = Replica(demand=Demand(gpu_utilisation_percent=80), rate_milli=10_000, latency_ms=100)
CPU = Replica(demand=Demand(gpus=0, cpu_millicores=8000), rate_milli=2_000, latency_ms=100)
STEPS = {0: 3_000, 1000: 16_000, 2000: 16_001, 3000: 3_000}
"""Moment in ms -> requests per 1,000 s: a replica takes 8,000 of its 10,000, so 1, 2, 3 and 1 replicas are wanted."""


def endpoint(load: dict[int, int] = STEPS, until_ms: int = 4000, *, gpu: Replica = GPU, **fields: Any) -> Endpoint:
    """Build an endpoint of 10 requests a second a GPU; with a think time the load is of clients."""
    what = "clients" if "think_time_ms" in fields else "rate_milli"
    steps = tuple(LoadStep.model_validate({"from_ms": at, what: amount}) for at, amount in load.items())
    return Endpoint(**{"id": "e", "gpu": gpu, "latency_target_ms": 200, "load": steps, "until_ms": until_ms, **fields})


def play(one: Endpoint, *jobs: Job, nodes: int = 9, how: dict[str, Any] | None = None) -> History:
    """Play a service beside jobs."""
    return simulate(scenario(jobs, nodes=nodes, endpoints=(one,)), policy("best-fit", **how or {}))


def stays(history: History) -> dict[str, tuple[int | None, int | None]]:
    """Return start and end of every replica."""
    return {done.job: (done.start_ms, done.end_ms) for done in history.jobs if done.service}


def numbers(history: History) -> list[tuple[int, int]]:
    """Return how many replicas run since each change of their number."""
    spans = stays(history).values()
    ends = max(end for _, end in spans)
    found = [(at, sum(a <= at < b for a, b in spans)) for at in sorted({at for span in spans for at in span} - {ends})]
    return [now for before, now in zip([(0, 0), *found], found, strict=False) if before[1] != now[1]]


def used_percent(history: History, at_ms: int) -> list[int]:
    """Return the utilisation of the GPU of every replica at a moment."""
    return [one.options[0].demand.gpu_utilisation_percent for one in round_at(history, at_ms).jobs]


def test_replicas_follow_the_load() -> None:
    """
    The last to come leaves first; also where decisions look ahead, since they answer at once.

    The first serves 3, 8, 5.3 and 3 of its 10: 48 % in the mean, 50 in tens of 80; the second 8 and 5.3, the third 5.3.
    """
    history = play(endpoint())
    assert stays(history) == {"e.gpu0.0": (0, 4000), "e.gpu1.0": (1000, 3000), "e.gpu2.0": (2000, 3000)}
    assert used_percent(history, 2000) == [40, 56, 48]
    assert stays(play(endpoint(), how={"replicas": "ahead"})) == stays(history)
    assert stays(play(endpoint(cpu=CPU))) == stays(history), "cores are used where the policy says so"


def test_replicas_stay_at_their_peak_or_their_first_number() -> None:
    """Three all the time, 9.5 in the mean between them; or one."""
    history = play(endpoint(), how={"replicas": "peak"})
    assert stays(history) == dict.fromkeys(("e.gpu0.0", "e.gpu1.0", "e.gpu2.0"), (0, 4000))
    assert used_percent(history, 0) == [32] * 3
    assert stays(play(endpoint(), how={"replicas": "first"})) == {"e.gpu0.0": (0, 4000)}


LATE = {"lag_ms": 300, "period_ms": 400}
FAR = {"load": {0: 8_000, 1000: 13_600}, "latency_target_ms": 1100, "lag_ms": 300}
RISE = {"load": {0: 1000, 60_000: 9000, 359_999: 9000}, "until_ms": 600_000, "lag_ms": 300}
FORGOTTEN = RISE | {"load": {0: 1000, 60_000: 9000, 360_000: 9000}}
NUMBERS: list[tuple[dict[str, Any], str, list[tuple[int, int]]]] = [
    ({"load": {0: 0}}, "follow", [(0, 1)]),
    ({"load": {0: 10**6}, "replicas_max": 2}, "follow", [(0, 2)]),
    # seen after the lag, decided at the next multiple of the period; of two in one period the later counts
    (LATE, "follow", [(0, 1), (1600, 2), (2400, 3), (3600, 1)]),
    ({"lag_ms": 300}, "follow", [(0, 1), (1300, 2), (2300, 3), (3300, 1)]),
    ({"period_ms": 1500}, "follow", [(0, 1), (1500, 2), (3000, 1)]),
    # ahead: 3 + 3 x 2, 16 + 13 x 3/2, 16.001 + 13 x 4/3, 3 + 13 x 5/4: rises within 950 ms, until a decision answers
    (LATE | {"start_ms": 250}, "ahead", [(0, 2), (1600, 5), (3600, 3)]),
    # within 1,250 ms the second rise is from nothing: 16 + 16 x 3/2, 16.001 + 16 x 4/3, 3 + 16 x 5/4
    (LATE | {"lag_ms": 600, "start_ms": 250}, "ahead", [(0, 2), (1600, 5), (3600, 3)]),
    # what is expected may use all that answers in time: 20/21 within 1,100 ms, so 3 for 8 + 8 x 2 and 13.6 + 8 x 3/2
    (FAR, "ahead", [(0, 3)]),
    # a rise is forgotten after five minutes: 9 + 8 x 3/2 = 21, then 9 + 8 x 4/3, then the load alone
    (RISE, "ahead", [(0, 1), (60_300, 3)]),
    (FORGOTTEN, "ahead", [(0, 1), (60_300, 3), (360_300, 2)]),
    # believed to serve 20 a second
    ({"profiled_rate_milli": 20_000}, "follow", [(0, 1), (2000, 2), (3000, 1)]),
]


@pytest.mark.parametrize(("fields", "how", "expected"), NUMBERS, ids=range(len(NUMBERS)))
def test_numbers_of_replicas(fields: dict[str, Any], how: str, expected: list[tuple[int, int]]) -> None:
    """One at least, no more than may be; decided late, by an old load, or by the load that is expected."""
    known = dict(fields)
    gpu = {name: known.pop(name) for name in ("start_ms", "profiled_rate_milli") if name in known}
    scaler = Autoscaler(**{name: known.pop(name) for name in ("lag_ms", "period_ms") if name in known})
    one = endpoint(gpu=GPU.model_copy(update=gpu), autoscaler=scaler, **known)
    assert numbers(play(one, nodes=20, how={"replicas": how})) == expected


SERVED: list[tuple[dict[str, Any], dict[str, Any], tuple[float, float, float, float | None]]] = [
    ({"load": {0: 5_000}}, {}, (20, 0, 0, 150)),  # M/D/1: a request waits r / (2 (1 - r)) times 100 ms
    ({"load": {0: 50_000}}, {"rate_milli": 100_000}, (200, 0, 0, 105)),  # of a faster replica a tenth of it
    ({"load": {0: 100_000}}, {"rate_milli": 100_000}, (400, 400 / 21, 4, 200)),  # in time up to 20 of 21
    ({"load": {0: 16_000}}, {}, (64, 4 * (16 - 20 / 3), 4, None)),  # up to 6.7 of 10
    ({"load": {0: 1_000}, "latency_target_ms": 100}, {}, (4, 4, 4, None)),
    ({"load": {0: 5_000, 9000: 2_000}, "until_ms": 10_000}, {}, (47, 0, 0, 150)),  # 45 of 47 take 150 ms
    ({"load": {0: 2_000, 9900: 5_000}, "until_ms": 10_000}, {}, (20.3, 0, 0, 112.5)),  # 19.8 of 20.3 take 112.5 ms
]


@pytest.mark.parametrize(("fields", "gpu", "expected"), SERVED)
def test_how_late_one_replica_answers(fields: dict[str, Any], gpu: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """Answers take 100 ms, and may take 200: half of it in the queue, at two thirds of what replicas can serve."""
    found = summarise(play(endpoint(gpu=GPU.model_copy(update=gpu), replicas_max=1, **fields))).serving
    assert found is not None
    assert (found.requests, found.late, found.late_s, found.latency_p95_ms) == pytest.approx(expected)


WAITING: list[tuple[dict[int, int], int, tuple[float, float, float, float | None]]] = [
    # at half of 10 a second an answer takes 150 ms: N = X (Z + R), 5 = 5 x (0.85 + 0.15)
    ({0: 5}, 850, (20, 0, 0, 150)),
    # at 8 a second 300 ms, above the target of 200: 3 = 5 x (0.45 + 0.15), 6 = 8 x (0.45 + 0.3)
    ({0: 3, 2000: 6}, 450, (26, 16, 2, 300)),
    # one client that asks at once: r^2 / 2 - 2 r + 1 = 0, so r = 2 - sqrt(2), and an answer takes 1 / X
    ({0: 1}, 0, (40 * (2 - 2**0.5), 0, 0, 100 / (2 - 2**0.5))),
    ({0: 0, 2000: 5}, 850, (10, 0, 0, 150)),
]


@pytest.mark.parametrize(("load", "think_time_ms", "expected"), WAITING, ids=range(len(WAITING)))
def test_clients_wait_for_their_answers(load: dict[int, int], think_time_ms: int, expected: tuple[Any, ...]) -> None:
    """One replica of 10 a second, 100 ms an answer: the rate at which clients think or wait all the time."""
    found = summarise(play(endpoint(load, think_time_ms=think_time_ms, replicas_max=1))).serving
    assert found is not None
    assert (found.requests, found.late, found.late_s, found.latency_p95_ms) == pytest.approx(expected)


def test_replicas_follow_the_clients() -> None:
    """8 clients keep a replica at 80 % of 10 a second: an answer takes 300 ms there, and they think for 700."""
    history = play(endpoint({0: 8, 1000: 9, 2000: 17, 3000: 4}, think_time_ms=700))
    assert numbers(history) == [(0, 1), (1000, 2), (2000, 3), (3000, 1)]
    assert numbers(play(endpoint({0: 8, 2000: 17}, think_time_ms=700), how={"replicas": "peak"})) == [(0, 3)]
    assert used_percent(play(endpoint({0: 5}, think_time_ms=850)), 0) == [40], "half of 80"


def test_clients_send_nothing_while_nothing_runs() -> None:
    """Jobs hold all GPUs for the first half of four seconds."""
    found = summarise(play(endpoint({0: 5}, think_time_ms=850), timed("full", 0, 2000, gpus=4), nodes=1)).serving
    assert (found.requests, found.late, found.late_s) == (10, 0, 2)


def test_where_nothing_runs_all_are_late() -> None:
    """For the first half; and a simulation that is stopped in the middle counts what came by then."""
    one = endpoint({0: 4_000}, 1000)
    found = summarise(play(one, timed("full", 0, 500, gpus=4), nodes=1)).serving
    assert (found.requests, found.late, found.late_s, found.latency_p95_ms) == (4, 2, 0.5, None)
    cancel, world = threading.Event(), scenario([timed("later", 500, 1000)], endpoints=(one,))
    stops = lambda tick: cancel.set() if tick.now_ms == 500 else None  # noqa: E731
    stopped = simulate(world, policy("best-fit"), cancel=cancel, on_progress=stops)
    assert (summarise(stopped).serving.requests, summarise(stopped).serving.late) == (2, 0)


def test_without_requests_there_is_nothing_to_tell() -> None:
    """No endpoint, or no load."""
    assert summarise(simulate(scenario([timed("a", 0, 1)]), policy())).serving is None
    assert summarise(play(endpoint({0: 0}))).serving is None


def test_a_full_cluster_makes_answers_late() -> None:
    """
    Four GPUs; jobs hold three until 1500, so the second replica is half a second late, the third comes in time.

    Meanwhile one serves 6.7 of 16 a second in time; two serve 13.3 of them, three 20.
    """
    history = play(endpoint(), *(timed(f"j{i}", 0, 1500) for i in range(3)), nodes=1)
    found = summarise(history)
    assert found.serving.late == pytest.approx(0.5 * (16 - 20 / 3) + 0.5 * (16 - 40 / 3))
    assert found.serving.late_s == pytest.approx(1.0)
    assert (found.services, found.jobs, found.ended) == (3, 3, 3)
    assert loads(Scenario, dumps(history.scenario)) == history.scenario


def test_a_replica_answers_once_it_has_started() -> None:
    """The first runs with the endpoint; of 16 requests a second one serves 6.7 in time until the second has started."""
    late = endpoint(gpu=GPU.model_copy(update={"start_ms": 250}), autoscaler=Autoscaler(**LATE))
    expected = 0.85 * (16 - 20 / 3) + 0.15 * (16 - 40 / 3) + 0.65 * (16.001 - 40 / 3)
    assert summarise(play(late)).serving.late == pytest.approx(expected)


def test_dynamoml_is_late_once_its_autoscaler_lags() -> None:
    """By construction nothing is late without a lag; with it, less is late by looking ahead than by following."""
    at_once, lagging = (
        dynamoml_scenario(seed=1, autoscaler=autoscaler, pod_start_ms=start)
        for autoscaler, start in ((None, 0), (LAGGING, POD_START_MS))
    )
    follows = named_policy("dynamoml")
    ahead = follows.model_copy(update={"replicas": Replicas(rule="ahead")})
    late = [summarise(simulate(world, by)).serving for world in (at_once, lagging) for by in (follows, ahead)]
    shares = [found.late_share for found in late if found is not None]
    assert shares[:2] == [0, 0]
    assert 0 < shares[3] < shares[2] < 0.01


def cpu_job(name: str, at_ms: int, cores: int, *, ms: int = 10_000, **fields: Any) -> Job:
    """Build a job on cores alone."""
    return timed(name, at_ms, ms, gpus=0, cpu_millicores=1000 * cores, **{"kind": "cpu", **fields})


FULL = cpu_job("full", 0, 30)
"""It leaves 2 of a machine's 32 cores, and its GPUs."""
ON_CPU = {"rule": "follow", "on_cpu": True}
WAITS, WANTS = cpu_job("waits", 10, 16), timed("wants", 10, 1, gpus=2, cpu_millicores=3000)
FEW, GROWING = {1000: 3_000, 4000: 20_000}, {1000: 1_000, 2000: 3_000, 4000: 20_000}
CHOICES: dict[str, tuple[list[Job], dict[int, int], bool]] = {
    "as many cores as they would take are waited for": ([FULL, WAITS], FEW, True),
    "fewer cores": ([FULL, cpu_job("small", 10, 15)], FEW, False),
    "nobody waits": ([FULL], FEW, False),
    "no GPU is idle": ([FULL, WAITS, timed("gpus", 0, 9000, gpus=4)], FEW, False),
    "GPU jobs want those that are idle": ([FULL, WAITS, timed("two", 0, 9000, gpus=2), WANTS], FEW, False),
    "one more is idle": ([FULL, WAITS, timed("one", 0, 9000), WANTS], FEW, True),
    "inference waits for the cores": ([FULL, cpu_job("other", 10, 16, kind="inference")], FEW, False),
    "chosen once, by the first of two": ([cpu_job("full", 0, 30, ms=1500), cpu_job("waits", 10, 8)], GROWING, True),
}


@pytest.mark.parametrize(("jobs", "load", "instead"), CHOICES.values(), ids=CHOICES)
def test_gpus_serve_where_cpu_jobs_wait_and_gpus_are_idle(
    jobs: list[Job], load: dict[int, int], instead: bool, tmp_path: Path
) -> None:
    """Two replicas would take 16 cores; the choice for one is the choice for all, and for as long as few are wanted."""
    world = scenario(jobs, endpoints=(endpoint(load, 5000, cpu=CPU),))
    rules, log = policy("best-fit", replicas=ON_CPU), tmp_path / "log"
    simulate(world, rules, log=log)
    came = {line["job"] for line in log_lines(log) if line["e"] == "arrival" and line["job"].startswith("e.")}
    few = {"e.gpu-instead.0"} if instead else {"e.cpu0.0", "e.cpu1.0"}
    assert came == {"e.gpu0.0", "e.gpu1.0", "e.gpu2.0"} | few


def test_under_a_low_load_replicas_are_on_cores() -> None:
    """3 a second: two of 1.6 each; GPUs from the second step on, and cores again."""
    few = stays(play(endpoint(cpu=CPU), how={"replicas": ON_CPU}))
    gpus = {"e.gpu0.0": (1000, 3000), "e.gpu1.0": (1000, 3000), "e.gpu2.0": (2000, 3000)}
    cores = {f"e.cpu{i}.{n}": span for n, span in enumerate([(0, 1000), (3000, 4000)]) for i in range(2)}
    assert few == gpus | cores


def test_a_service_moves_to_a_gpu_where_cores_are_short() -> None:
    """With 32 cores held and 16 waited for a GPU serves the two seconds of low load, and no answer is late."""
    load = {0: 20_000, 1000: 3_000, 3000: 20_000}
    history = play(
        endpoint(load, cpu=CPU),
        cpu_job("a", 0, 29),
        cpu_job("b", 10, 16),
        nodes=1,
        how={"replicas": ON_CPU},
    )
    assert {name for name, span in stays(history).items() if span == (1000, 3000)} == {"e.gpu-instead.0"}
    assert summarise(history).serving.late == 0


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"load": (LoadStep(from_ms=5, rate_milli=1), LoadStep(from_ms=5, rate_milli=2))}, "expected after 5"),
        ({"until_ms": 3000}, "expected after the last step"),
        ({"gpu": CPU}, "a replica of the first has GPUs"),
        ({"latency_target_ms": 99}, "always late"),
        ({"think_time_ms": 5}, "all steps state clients with it"),
        ({"load": (LoadStep(from_ms=0, clients=5),)}, "all steps state clients with it"),
        ({"load": (LoadStep(from_ms=0, clients=5),), "think_time_ms": 5, "cpu": CPU}, "replicas of one kind"),
    ],
)
def test_endpoints_that_cannot_be_are_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Endpoint(**{**dict(endpoint()), **fields})


def test_a_step_states_a_rate_or_clients() -> None:
    """Exactly one."""
    for fields in ({}, {"rate_milli": 5, "clients": 5}):
        with pytest.raises(ValueError, match="exactly one"):
            LoadStep(from_ms=0, **fields)


def test_a_job_may_not_have_a_replica_s_name() -> None:
    """Else two would be one."""
    with pytest.raises(BadInput, match=r"e\.gpu0\.0"):
        play(endpoint(), timed("e.gpu0.0", 0, 1))


def service(name: str, arrival_ms: int, leaves_ms: int | None = None, **fields: Any) -> Arrival:
    """Build a service that is there from one moment to another."""
    return Arrival(job=timed(name, arrival_ms, 1, kind="inference", **fields), service=True, leaves_ms=leaves_ms)


def test_services_leave_at_their_end_whether_they_run_or_wait(tmp_path: Path) -> None:
    """Two want the machine; the second leaves before it is free, and a job starts when the first is gone."""
    services = service("a", 0, 500, gpus=4), service("b", 10, 400, gpus=4)
    world = scenario([*services, timed("job", 20, 100, gpus=4)])
    history = simulate(world, policy(), log=tmp_path / "log")
    assert [(job.start_ms, job.end_ms) for job in history.jobs] == [(0, 500), (None, 400), (500, 600)]
    events = " ".join(line["e"] for line in log_lines(tmp_path / "log")[1:])
    assert events == "arrival round arrival arrival leave leave round end over"


def test_services_without_a_time_leave_with_the_last_job() -> None:
    """Also where that never ends: it waits for a fifth GPU, and when nothing happens any more services leave."""
    notebook = service("notebook", 0)
    history = simulate(scenario([notebook, timed("job", 20, 100)]), policy())
    assert [(job.start_ms, job.end_ms) for job in history.jobs] == [(0, 120), (20, 120)]
    figures = summarise(history)
    assert (figures.jobs, figures.services, figures.last_end_s) == (1, 1, 0.12)
    assert figures.occupancy.granted == 1000 * (120 + 100)
    wide, never = (simulate(scenario([notebook, timed("job", 20, 100, gpus=n)]), policy()) for n in (4, 5))
    assert wide.jobs[1].start_ms == 20, "once the service has left"
    assert never.stranded == ("job",)


def test_contradictions_of_services_are_refused() -> None:
    """A time to leave without a service, or before it arrives; a service with a run time."""
    with pytest.raises(ValueError, match="leaves_ms: goes with service"):
        Arrival(job=timed("x", 0, 1), leaves_ms=5)
    with pytest.raises(ValueError, match=r"expected (after|later)"):
        service("x", 5, 5)
    with pytest.raises(ValueError, match="no run time of its own"):
        Arrival(job=timed("x", 0, 1), service=True, actual_run_time_ms=5)
