"""
Philly's arrivals on an assumed cluster: as many nodes as give a load.

The trace is msr-fiddle/philly-traces (CC-BY-4.0; Jeon et al., ATC'19) as siasosp23/artifacts keeps it in
sia-simulator/traces/philly.csv. It has no CPU, memory or user column, and nothing about what the jobs computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from placeopt import BadInput
from placeopt.generators import equal_nodes
from placeopt.generators.job_kinds import PROFILES
from placeopt.importers.job_table import TableJob, read_jobs
from placeopt.model import Demand, Job, Option
from placeopt.simulation import Arrival, Physics, Scenario
from placeopt.simulation.assumed_interference import Assumed, assumed_kind, assumed_slowdowns
from placeopt.topology import pcie_box
from placeopt_papers.traces.sia import RESTART_MS, VALUE_PER_GPU

DAY_MS = 86_400_000


def read_philly(path: str | Path) -> list[TableJob]:
    """Return the jobs in the order of submission; a job is called by its line, ``job-2`` and so on."""
    jobs, notes = read_jobs(path, "philly-csv")
    if notes.names:
        raise BadInput(f"{path}: not all jobs can be read. {notes.text()}")
    return jobs


def philly_scenario(
    jobs: Sequence[TableJob],
    *,
    from_day: int = 0,
    days: int | None = None,
    load: float = 0.9,
    node_gpus: int = 8,
    seed: int = 0,
    prediction_error: float = 0.0,
    interference: Assumed = "none",
) -> Scenario:
    """
    Return a scenario of the jobs submitted in a window of days, on as many nodes as give the load.

    ``from_day`` and ``days`` count from the first submission; None: all that follow. ``load``: GPU time that the jobs
    request / GPU time of the cluster between the first and the last submission; the number of nodes is rounded up, and
    is at least what the largest job needs. A node has two sockets and PCIe switches. ``interference``: what the trace
    does not state; with ``sc17`` each job is one of six kinds of SC'17, all as likely, with their slowdowns by
    neighbours and by distance. ``seed`` draws these, and the errors of prediction: ``prediction_error`` is the standard
    deviation of the logarithm of predicted / actual run time; 0: predictions are exact.

    Jobs up to a node are one worker, larger ones gangs of whole nodes where they divide, else of single GPUs. Users are
    virtual clusters.
    """
    if not jobs or load <= 0:
        raise BadInput(f"jobs: {len(jobs)}, load: {load:g}; expected jobs, and a load above 0")
    begin = jobs[0].submit_ms + from_day * DAY_MS
    end = math.inf if days is None else begin + days * DAY_MS
    chosen = [job for job in jobs if begin <= job.submit_ms < end]
    if len(chosen) < 2:
        raise BadInput(f"from_day, days: {len(chosen)} jobs were submitted in that window; expected 2 or more")
    first = chosen[0].submit_ms
    span_ms = max(1, chosen[-1].submit_ms - first)
    asked_ms = sum(int(job.gpus) * max(1, job.duration_ms or 0) for job in chosen)
    nodes = max(math.ceil(asked_ms / span_ms / load / node_gpus), *(-(-int(job.gpus) // node_gpus) for job in chosen))
    rng = np.random.default_rng(seed)
    kinds = rng.integers(len(PROFILES), size=len(chosen))
    factors = np.exp(rng.normal(0.0, 1.0, size=len(chosen)) * prediction_error)
    machine = pcie_box(node_gpus, gpu_model="P100")
    options: dict[tuple[int, int], Option] = {}
    arrivals = []
    for job, kind, factor in zip(chosen, kinds.tolist(), factors.tolist(), strict=True):
        actual, gpus = max(1, job.duration_ms or 0), int(job.gpus)
        profile, communication = assumed_kind(interference, kind, gpus)
        arrivals.append(
            Arrival(
                job=Job(
                    id=job.id.replace("job", "philly"),
                    user=job.user,
                    arrival_ms=job.submit_ms - first,
                    options=(_option(gpus, node_gpus, max(1, round(actual * factor)), options),),
                    profile=profile,
                    communication=communication,
                ),
                actual_run_time_ms=actual,
            )
        )
    drawn = f"Profiles drawn by seed {seed} from the kinds of SC'17. "
    profiles = drawn if interference == "sc17" else "No job slows another. "
    physics = Physics(restart_ms=RESTART_MS)
    if interference == "none":
        physics = physics.model_copy(update={"spread_slowdown_thousandths": 0})
    return Scenario(
        name=f"philly-{from_day}+{'all' if days is None else days}-x{nodes}-s{seed}",
        note=(
            f"Philly (msr-fiddle/philly-traces, CC-BY-4.0), jobs submitted from day {from_day} on"
            f"{'' if days is None else f' for {days} days'}, on nodes of ours for a load of {load:g}. {profiles}"
            f"Prediction error {prediction_error:g}. A shared GPU is divided in time, and a restart takes 30 s."
        ),
        cluster=equal_nodes(machine, nodes),
        physics=physics,
        slowdowns=assumed_slowdowns(interference),
        arrivals=tuple(arrivals),
    )


def _option(gpus: int, node_gpus: int, predicted_ms: int, known: dict[tuple[int, int], Option]) -> Option:
    if gpus <= node_gpus:
        workers, each = 1, gpus
    elif gpus % node_gpus == 0:
        workers, each = gpus // node_gpus, node_gpus
    else:
        workers, each = gpus, 1
    if (workers, each) not in known:
        known[workers, each] = Option(workers=workers, demand=Demand(gpus=each), value=VALUE_PER_GPU * gpus)
    return known[workers, each].model_copy(update={"run_time_ms": predicted_ms})
