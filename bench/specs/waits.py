"""Streams of jobs that fill a cluster for ever, and one job that finds no room of its own: how long it waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from placeopt.build import job, machine, node
from placeopt.model import Cluster, Job
from placeopt.scheduling import named_policy, policy_names
from placeopt.simulation import Arrival, Physics, Scenario, simulate
from spec import BenchSpec, Row

RUN_MS = 100_000
RUNS = 40
"""Run times that a stream lasts; a job that has not started within half of them starves."""
NODES, GPUS, CORES = 2, 2, 32

Fields = dict[str, Any]


def stream(victim: Fields, others: Fields, at_once: int) -> Callable[[], Scenario]:
    """Return what makes a scenario in which so many other jobs run at any time: as one ends the next one comes."""

    def made() -> Scenario:
        each_ms = RUN_MS // at_once
        jobs = [timed(f"j{i}", i * each_ms, others) for i in range(RUNS * at_once)]
        jobs.append(timed("victim", 2 * RUN_MS + 1, victim))
        box = machine(gpus=GPUS, cpu_millicores=1000 * CORES)
        return Scenario(
            name="stream",
            cluster=Cluster(machines=(box,), nodes=tuple(node(f"n{i}") for i in range(NODES))),
            physics=Physics(spread_slowdown_thousandths=0),
            arrivals=tuple(Arrival(job=one) for one in sorted(jobs, key=lambda one: one.arrival_ms)),
        )

    return made


def timed(name: str, arrival_ms: int, fields: Fields) -> Job:
    """Return a job that takes ``RUN_MS`` unless its fields say otherwise."""
    return job(
        name,
        **{
            "arrival_ms": arrival_ms,
            "run_time_ms": RUN_MS,
            "cpu_millicores": 1000,
            "gpu_utilisation_percent": 100,
            **fields,
        },
    )


SMALL: Fields = {"gpus": 1}
STREAMS = {
    "two GPUs of a node": stream({"gpus": 2}, SMALL, 4),
    "a gang of two nodes": stream({"gpus": 2, "workers": 2}, SMALL, 4),
    "a long job": stream({"gpus": 1, "run_time_ms": 10 * RUN_MS}, SMALL, 4),
    "a low priority": stream({"gpus": 2, "priority": 0}, {"gpus": 1, "priority": 5}, 4),
    "another user": stream({"gpus": 2, "user": "b", "queue": "b"}, {"gpus": 1, "user": "a", "queue": "a"}, 4),
    "cores": stream({"gpus": 1, "cpu_millicores": 24_000}, {"gpus": 0, "cpu_millicores": 16_000}, 4),
    "whole GPUs": stream({"gpus": 2}, {"gpus": 1, "gpu_milli": 500, "gpu_utilisation_percent": 50}, 8),
    "training": stream({"gpus": 2, "kind": "training"}, {"gpus": 1, "kind": "inference"}, 4),
}
"""By what the job that waits is, or asks for."""


def wait(policy: str) -> Iterator[Row]:
    """Yield a row for each stream, with waits in mean run times."""
    for name, made in STREAMS.items():
        world = made()
        mean_ms = sum(arrival.job.options[0].run_time_ms or 0 for arrival in world.arrivals) / len(world.arrivals)
        history = simulate(world, named_policy(policy))
        starts = {one.job: RUNS * RUN_MS if one.start_ms is None else one.start_ms for one in history.jobs}
        waits = {one.job: round((starts[one.job] - one.arrival_ms) / mean_ms, 1) for one in history.jobs}
        yield {"stream": name, "victim_wait_runs": waits["victim"], "worst_wait_runs": max(waits.values())}


SPEC = BenchSpec(
    name="waits",
    question="How long does a job wait behind a stream that fills the cluster, under each scheduling policy?",
    rounds={name: name for name in policy_names()},
    run=wait,
    columns=("round", "stream", "victim_wait_runs", "worst_wait_runs", "load"),
    minutes=5,
)
