"""Scheduling policies on a live cluster: they decide as in a simulation, and go on from whatever a reading shows."""

import random
import threading
from typing import Any

import pytest

from helpers.live_host import Host
from helpers.night import nightly
from helpers.scenarios import policy, scenario, timed
from placeopt import BadInput, Engine, solve, violations
from placeopt.build import instance, job, machine, running
from placeopt.model import Demand, Group, Job, Option, Policy, Queue, Running
from placeopt.scheduling import LiveScheduler, Scheduling, named_policy, policy_names
from placeopt.simulation import Scenario, simulate

WATCHES = {"pab"}
"""Policies that watch how fast jobs run, which no reading shows."""
LIVE = [name for name in policy_names() if name not in WATCHES]
BY_DAY = ("rounds", "topo-aware-p", "placeopt", "fcfs", "las", "horus-f", "dynamoml", "k8s-scaling", "soda", "genie")
"""Whole rounds, and one of each kind of queue, preemption and resizing; by night all others."""
QUEUES = ["fcfs", "best-fit", "srtf", "min-min", "weighted-fair", "drf", "topo-aware", "capacity", "coda", "kelp-drf"]


def plain_scenario(seed: int, **fields: Any) -> Scenario:
    """Draw jobs that take their predicted run time wherever they run; never two events at once."""
    dice = random.Random(seed)
    times = iter(dice.sample(range(40_000), 30))
    jobs = [
        timed(
            f"j{number}",
            next(times),
            dice.randrange(1_000, 20_000),
            gpus=dice.choice([0, 1, 1, 2, 3, 4]),
            workers=dice.choice([1, 1, 2]),
            cpu_millicores=dice.choice([1000, 4000, 16_000]),
            user=dice.choice(["u", "v"]),
            queue=dice.choice(["a", "b"]),
            kind=dice.choice(["training", "inference"]),
        )
        for number in range(30)
    ]
    return scenario(jobs, nodes=3, physics={"spread_slowdown_thousandths": 0}, **fields)


def run_ms(job: Job) -> int:
    """Return how long a job runs."""
    return job.options[0].run_time_ms or 0


def lived(world: Scenario, live: LiveScheduler) -> dict[str, tuple[int, Any]]:
    """Play a scenario on a host, a turn at each arrival and end; return start and place of each job."""
    host = Host(world.cluster)
    arrivals = sorted((arrival.job for arrival in world.arrivals), key=lambda job: job.arrival_ms)
    starts: dict[str, tuple[int, Any]] = {}
    while arrivals or host.jobs:
        ends = {
            name: held.started_ms + (host.jobs[name].options[0].run_time_ms or 0) for name, held in host.running.items()
        }
        host.now_ms = min([*ends.values(), *(job.arrival_ms for job in arrivals[:1])])
        for name, at in ends.items():
            if at == host.now_ms:
                host.end(name)
        while arrivals and arrivals[0].arrival_ms == host.now_ms:
            job = arrivals.pop(0)
            host.jobs[job.id] = job
        host.turn(live)
        for name, held in host.running.items():
            starts.setdefault(name, (held.started_ms, held.assignments))
    return starts


@pytest.mark.parametrize("name", QUEUES)
def test_a_live_cluster_is_decided_on_as_in_a_simulation(name: str, engine: Engine) -> None:
    """Parts of arrays aside, which go by the jobs that are known."""
    world = plain_scenario(seed=5)
    rules = named_policy(name)
    history = simulate(world, rules)
    simulated = {job.job: (job.spans[0].start_ms, job.spans[0].placement.assignments) for job in history.jobs}
    found = lived(world, LiveScheduler(engine, rules))
    assert found.keys() == simulated.keys()
    if rules.divides is None:
        assert found == simulated


@pytest.mark.parametrize("name", nightly(LIVE, *BY_DAY))
def test_every_policy_goes_on_from_what_a_reading_shows(name: str, engine: Engine) -> None:
    """Actions fail, jobs are stopped or end by hand, nodes close: plans stay lawful, and in the end all have run."""
    dice = random.Random(name)
    world = plain_scenario(seed=7)
    host = Host(world.cluster, faults=dice)
    live = LiveScheduler(engine, named_policy(name), restart_ms=500)
    arrivals = sorted((arrival.job for arrival in world.arrivals), key=lambda job: job.arrival_ms)
    for turn in range(200):
        host.now_ms += 1000
        while arrivals and arrivals[0].arrival_ms <= host.now_ms:
            job = arrivals.pop(0)
            host.jobs[job.id] = job
        for job_id, held in list(host.running.items()):
            if host.now_ms - held.started_ms >= run_ms(host.jobs[job_id]) or dice.random() < 0.02:
                host.end(job_id)
            elif dice.random() < 0.02:
                del host.running[job_id]
        drained = dice.choice([None, *(node.id for node in world.cluster.nodes)]) if turn < 100 else None
        nodes = tuple(one.model_copy(update={"drained": one.id == drained}) for one in world.cluster.nodes)
        host.cluster = world.cluster.model_copy(update={"nodes": nodes})
        host.turn(live)
        if not arrivals and not host.jobs:
            break
        if turn == 150:
            host.faults = None
    assert not host.jobs
    assert host.counts["start"] >= len(world.arrivals) // 2


def test_what_a_policy_leaves_out_is_as_the_hosts_says(engine: Engine) -> None:
    queues = (Queue(id="a"), Queue(id="b"))
    host = Policy(order="fcfs", queues=queues)
    reading = Host(plain_scenario(1).cluster).reading().model_copy(update={"policy": host})
    live = LiveScheduler(engine, policy(policy=Policy(name="own", order="priority")))
    assert live.policy_in(reading) == Policy(name="own", order="priority", queues=queues)


@pytest.mark.parametrize("name", ["horus", "placeopt"])
def test_a_host_that_over_commits_no_gpu_is_given_one_job_a_gpu(name: str, engine: Engine) -> None:
    """Two jobs of a GPU's half each by use: on one GPU where that can be, one after the other where not."""
    jobs = {one: job(one, gpus=1, gpu_utilisation_percent=50, gpu_memory_mib=100) for one in "ab"}
    for overcommits, most in ((True, 2), (False, 1)):
        box = machine("box", gpus=1, gpu_memory_mib=16_000)
        host = Host(instance(1, [], machines=[box]).cluster, jobs=dict(jobs))
        host.turn(LiveScheduler(engine, named_policy(name), overcommits=overcommits))
        assert len(host.running) == most


@pytest.mark.parametrize("name", ["fcfs", "horus-f", "soda", "dynamoml", "las", "genie", "placeopt"])
@pytest.mark.parametrize("place", [("n0", [8]), ("n9", [0])], ids=["a GPU", "a node"])
def test_what_runs_where_nothing_is_listed_stays_and_others_start(
    name: str, place: tuple[str, list[int]], engine: Engine
) -> None:
    """Hosts show such for a while, as when a node has ended with its jobs; from the beginning, and later on."""
    jobs = [job("odd", gpus=1), job("next", gpus=1), job("cores", cpu_millicores=1000)]
    box = machine("box", gpus=8, cpu_millicores=8000)
    before = instance(1, jobs, machines=[box])
    after = instance(1, jobs, machines=[box], running=[running(jobs[0], [place], preemptible=True)])
    for readings in ((after,), (before, after), (before, after, before)):
        live = LiveScheduler(engine, named_policy(name), overcommits=False)
        for number, reading in enumerate(readings):
            live.follow(reading.model_copy(update={"now_ms": number}))
        plan = live.decide(5.0, threading.Event(), deterministic=True)
        assert {one.job for one in plan.placements} >= {"next", "cores"}
        assert not plan.preempted


def test_a_policy_that_watches_speeds_is_refused(engine: Engine) -> None:
    with pytest.raises(BadInput, match="'pab': watches how fast jobs run, which no reading shows"):
        LiveScheduler(engine, named_policy("pab"))


def test_nothing_is_decided_before_the_first_reading(engine: Engine) -> None:
    live = LiveScheduler(engine, Scheduling(name="own"))
    with pytest.raises(BadInput, match="no reading yet"):
        live.decide(1.0, threading.Event())


@pytest.mark.parametrize("name", ["dynamoml", "k8s", "placeopt", "soda"])
def test_jobs_with_groups_do_not_hold_up_a_queue(name: str) -> None:
    """A parameter server beside workers: it waits, one that runs keeps its three GPUs, and the others are placed."""
    server = Group(id="ps", demand=Demand(gpus=0, cpu_millicores=4000))
    shape = Option(groups=(server, Group(id="worker", workers=3, demand=Demand(cpu_millicores=2000))))
    waits, ran, one, two = (
        *(Job(id=name, options=(shape,)) for name in ("waits", "ran")),
        *(job(name) for name in ("one", "two")),
    )
    placed = solve(instance(1, [ran], machines=[machine(gpus=4)]), isolation="thread").placements[0]
    held = Running(job="ran", option=placed.option, assignments=placed.assignments, preemptible=True, movable=True)
    alone = instance(1, [waits, one, two], machines=[machine(gpus=4)])
    beside = instance(1, [waits, one, two, ran], machines=[machine(gpus=4)], running=[held])
    with Engine() as engine:
        live = LiveScheduler(engine, named_policy(name))
        for reading, expected in ((alone, {"one", "two"}), (beside, {"ran", "one"}), (alone, {"one", "two"})):
            live.follow(reading)
            plan = live.decide(9, threading.Event(), deterministic=True)
            assert {placement.job for placement in plan.placements} == expected
            assert violations(live.snapshot, plan) == []
            (why,) = (unplaced.detail for unplaced in plan.unplaced if unplaced.job == "waits")
            assert why == f"it has groups of workers, which policy '{name}' does not place; take one of whole rounds"
