"""Replicas that CPU cores could serve run on a GPU instead where CPU jobs wait for the cores and GPUs are idle."""

from pathlib import Path

import pytest

from helpers.scenarios import log_lines, policy, scenario, timed
from placeopt.build import job
from placeopt.model import Demand, Endpoint, Job, LoadStep, Replica, Scenario
from placeopt.simulation import History, simulate, summarise
from placeopt.simulation.endpoints import core_stays
from placeopt.simulation.replica_choice import ReplicaChoice

GPU = Replica(demand=Demand(gpus=1), rate_milli=10_000, latency_ms=100)
CPU = Replica(demand=Demand(gpus=0, cpu_millicores=8000), rate_milli=2_000, latency_ms=100)
ON_CORES = policy("best-fit", cpu_replicas=True)


def endpoint() -> Endpoint:
    """Return a service that wants three GPUs, from 1000 ms on two replicas on cores, and three GPUs again."""
    steps = ((0, 20_000), (1000, 3_000), (3000, 20_000))
    load = tuple(LoadStep(from_ms=at, rate_milli=rate) for at, rate in steps)
    return Endpoint(id="e", gpu=GPU, cpu=CPU, latency_target_ms=200, load=load, until_ms=4000)


def cpu_job(name: str, at_ms: int, cores: int) -> Job:
    """Build a job on cores alone that runs for 10 s."""
    return timed(name, at_ms, 10_000, gpus=0, kind="cpu", cpu_millicores=1000 * cores)


def replicas_of(history: History) -> dict[str, tuple[int | None, int | None]]:
    """Return start and end of the replicas that came after the first step."""
    return {done.job: (done.start_ms, done.end_ms) for done in history.jobs if done.service and done.arrival_ms}


def world(*jobs: Job) -> Scenario:
    """Build a scenario with the service on one machine of four GPUs and 32 cores."""
    return scenario(jobs, endpoints=(endpoint(),))


CASES = [
    pytest.param(("waits",), 1, True, id="as many cores as they would take"),
    pytest.param(("small",), 1, False, id="fewer cores"),
    pytest.param((), 4, False, id="nobody waits"),
    pytest.param(("waits",), 0, False, id="no GPU is idle"),
    pytest.param(("waits", "gpus"), 2, False, id="GPU jobs want those that are idle"),
    pytest.param(("waits", "gpus"), 3, True, id="one more is idle"),
    pytest.param(("inference",), 1, False, id="other replicas wait for cores"),
]


@pytest.mark.parametrize(("names", "idle", "expected"), CASES)
def test_gpus_serve_where_cpu_jobs_wait_and_gpus_are_idle(names: tuple[str, ...], idle: int, expected: bool) -> None:
    """Two replicas would take 16 cores; the choice for one is the choice for all."""
    known = {
        "waits": cpu_job("waits", 0, 16),
        "small": cpu_job("small", 0, 15),
        "gpus": timed("gpus", 0, 1, gpus=2),
        "inference": job("inference", gpus=0, kind="inference", cpu_millicores=16_000),
    }
    (stay,) = core_stays(endpoint(), ON_CORES)
    assert stay.first_millicores == 16_000
    choice = ReplicaChoice((endpoint(),), ON_CORES)
    waiting = [known[name] for name in names]
    assert choice.comes("e.cpu0.0", waiting, idle) is not expected
    assert choice.comes("e.gpu-instead.0", [], 0) is expected, "chosen once"
    assert choice.comes("e.cpu1.0", [], 0) is not expected
    assert not choice.concerns("e.gpu0.0")


def test_a_service_moves_to_a_gpu_where_cores_are_short(tmp_path: Path) -> None:
    """With 32 cores held and 16 waited for a GPU serves the two seconds of low load; else two replicas on cores do."""
    idle = simulate(world(cpu_job("first", 0, 8)), ON_CORES)
    assert {name: times for name, times in replicas_of(idle).items() if times[0] == 1000} == {
        "e.cpu0.0": (1000, 3000),
        "e.cpu1.0": (1000, 3000),
    }
    short = world(cpu_job("first", 0, 29), cpu_job("second", 10, 16))
    history = simulate(short, ON_CORES, log=tmp_path / "log")
    assert {name: times for name, times in replicas_of(history).items() if times[0] == 1000} == {
        "e.gpu-instead.0": (1000, 3000)
    }
    assert not any("e.cpu" in str(line) for line in log_lines(tmp_path / "log")), "they never came"
    serving = summarise(history).serving
    assert serving is not None
    assert serving.late == 0
    again = simulate(short, ON_CORES, log=tmp_path / "log", resume=True)
    assert again.jobs == history.jobs


def test_without_replicas_on_cores_nothing_is_chosen() -> None:
    """Where a policy wants GPUs alone."""
    assert not core_stays(endpoint(), policy("best-fit"))
    assert all("instead" not in done.job for done in simulate(world(), policy("best-fit")).jobs)
