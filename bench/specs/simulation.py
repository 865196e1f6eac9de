"""Jobs that arrive over time under scheduling policies, by ``placeopt simulate``: what waits, and what a job costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from command import placeopt_json
from rounds import INSTANCES
from spec import BenchSpec, Row

PEERS = ("fcfs", "best-fit", "srtf-preemptive")


class Trace(NamedTuple):
    """A stored scenario, and the policies that play it."""

    scenario: str
    policies: tuple[str, ...]


def play(asked: Trace) -> Iterator[Row]:
    """Yield a row for each policy."""
    path = INSTANCES / "papers" / asked.scenario
    for policy in asked.policies:
        (told,) = placeopt_json("simulate", str(path), "--policy", policy)
        yield {
            "method": policy,
            "jobs": told["jobs"],
            "ended": told["ended"],
            "wait_s": mean(told["wait_s"]),
            "completion_s": mean(told["completion_s"]),
            "makespan_s": round(told["makespan_s"], 1),
            "stops": told["stops"],
            "slowed": told["slowed"],
            "gpus_held_percent": round(100 * told["gpus"]["allocation"], 1),
            "decision_cpu_ms_a_job": round(1000 * told["decision_cpu_s"] / told["jobs"], 3),
        }


def mean(spread: Row | None) -> float | None:
    """Return the mean of a figure's spread over the jobs; None if no job has it."""
    return None if spread is None else round(spread["mean"], 1)


SPEC = BenchSpec(
    name="simulation",
    question="How long do jobs take from arrival to end under placeopt's policies, beside others'?",
    rounds={
        "sc17-workloads-5": Trace("sc17-workloads-5.json", ("placeopt", *PEERS[:2])),
        "philly-40+1-x44": Trace("philly-40+1-x44-s0.json.gz", ("placeopt", "placeopt-queue", *PEERS)),
        "openb-x77-load-90": Trace("openb-x77-load-90.json.gz", ("placeopt-queue", *PEERS[:2])),
        "sc17-10000x1000": Trace("sc17-10000x1000-s0.json.gz", ("placeopt-queue", *PEERS[:2])),
    },
    run=play,
    columns=(
        *("round", "method", "jobs", "ended", "wait_s", "completion_s", "makespan_s", "stops", "slowed"),
        *("gpus_held_percent", "decision_cpu_ms_a_job", "load"),
    ),
    minutes=5,
)
