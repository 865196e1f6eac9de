"""SODA on a cluster of several GPU types: arrays for each of them, and jobs on any go where GPUs are most idle."""

import threading
from typing import Any

import pytest

from helpers.scenarios import timed
from placeopt import Engine
from placeopt.build import cluster, machine, nodes, running, scenario
from placeopt.model import Cluster, Instance, Job
from placeopt.scheduling import LiveScheduler, named_policy, plan_round, setting_of
from placeopt.simulation import Scenario, simulate
from placeopt.systems.soda import ArrayDivision, Arrays

SODA = named_policy("soda")
ARRAYS = Arrays(rule="arrays", by="size", parts="demand", per_node=True)
MACHINES = [machine(name, gpus=4, model=name) for name in ("V100", "P100", "K80")]


def of_types(**counts: int) -> Cluster:
    """Build nodes v0, v1, ... of the type V100, p0, ... of P100 and k0, ... of K80, of four GPUs each."""
    made = [node for box in MACHINES for node in nodes(counts.get(box.id, 0), box.id, prefix=box.id[0].lower())]
    return cluster(made, machines=MACHINES)


def asks(name: str, *models: str, gpus: int = 1, at_ms: int = 0, run_ms: int = 1000, **fields: Any) -> Job:
    """Build a training job that states GPU models, or none."""
    return timed(name, at_ms, run_ms, gpus=gpus, gpu_models=models, **{"kind": "training", **fields})


STATED = [asks("sv", "V100"), asks("lv", "V100", gpus=4), asks("sp", "P100"), asks("any", gpus=2)]


def test_each_gpu_type_is_divided_between_its_own_arrays() -> None:
    """
    By GPU time: of V100 the small job asks for 1, the large for 4, and that on any type for half of its 2.

    So V100 is divided 1 : 4 : 1 and P100 1 : 1; the array of jobs on any type has 8/6 + 8/2 GPUs.
    """
    now = Instance(cluster=of_types(V100=2, P100=2), jobs=tuple(STATED))
    parts = ArrayDivision(setting_of(now), ARRAYS).by_jobs
    assert {key: mine[0] for key, mine in parts.items()} == {
        ("small", ("V100",)): 1334,
        ("large", ("V100",)): 5334,
        ("small", ("P100",)): 4000,
        ("small", ("V100", "P100")): 1334 + 4000,
    }


def everywhere(world: Scenario, engine: Engine) -> list[dict[str, str]]:
    """Return where the jobs of one moment start in a simulation, in one round, and on a live cluster."""
    now = Instance(cluster=world.cluster, jobs=tuple(one.job for one in world.arrivals), running=world.running)
    live = LiveScheduler(engine, SODA)
    live.follow(now)
    plans = plan_round(now, SODA), live.decide(5.0, threading.Event(), deterministic=True)
    history = simulate(world, SODA)
    assert all(job.start_ms == 0 and not job.stops for job in history.jobs)
    held = {one.job for one in world.running}
    found = [[job.spans[0].placement for job in history.jobs], *(plan.placements for plan in plans)]
    return [{one.job: one.assignments[0].node for one in placed if one.job not in held} for placed in found]


def test_a_job_that_states_a_type_is_placed_in_the_arrays_of_that_type(engine: Engine) -> None:
    """
    Of the two V100 nodes the last is the large job's; of the P100 nodes, without a large job, both are small ones'.

    The job on any type is tried when five of eight V100 and one of eight P100 are held.
    """
    world = scenario(of_types(V100=2, P100=2), STATED)
    expected = {"sv": "v0", "lv": "v1", "sp": "p0", "any": "p0"}
    assert everywhere(world, engine) == [expected] * 3


HELD = {
    "v4": (asks("v4", "V100", gpus=4), [("v2", [0, 1, 2, 3])]),
    "v2": (asks("v2", "V100", gpus=2), [("v0", [0, 1])]),
    "p1": (asks("p1", "P100"), [("p0", [0])]),
}
PLACES: dict[str, tuple[Job, str]] = {
    "the least part is held": (asks("s", kind="inference"), "k0"),
    "of the types on which it may run": (asks("s", "V100", "P100", kind="inference"), "p0"),
    "one type": (asks("s", "V100", kind="inference"), "v0"),
    "no room on the most idle type": (asks("s", "V100", "P100", gpus=4, kind="inference"), "v1"),
    "a training job": (asks("s", "V100", "P100"), "p0"),
}


@pytest.mark.parametrize(("service", "node"), PLACES.values(), ids=PLACES)
def test_a_service_goes_to_the_most_idle_gpu_type(service: Job, node: str, engine: Engine) -> None:
    """Held are six of twelve V100, one of four P100, a smaller part though fewer are idle, and none of four K80."""
    held = tuple(running(job, where, preemptible=True) for job, where in HELD.values())
    jobs = [*(job for job, _ in HELD.values()), service]
    world = scenario(of_types(V100=3, P100=1, K80=1), jobs, running=held)
    assert everywhere(world, engine) == [{"s": node}] * 3
