"""openb's pods as a scenario: shapes and run times of the trace, with arrivals compressed to a given load."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from placeopt import BadInput
from placeopt.model import Cluster, Instance
from placeopt.simulation import Arrival, Physics, Scenario

STEPS = 200
"""Bisection steps in the search for the factor."""


def read_openb_run_times(pods_csv: Path) -> dict[str, int]:
    """Return pod -> run time in ms, at least 1: from its scheduling, or else its creation, to its deletion."""
    with pods_csv.open(newline="") as file:
        return {
            row["name"]: max(
                1, round(1000 * (float(row["deletion_time"]) - float(row["scheduled_time"] or row["creation_time"])))
            )
            for row in csv.DictReader(file)
        }


def openb_scenario(
    round_: Instance, run_time_ms: Mapping[str, int], *, cluster: Cluster | None = None, load: float = 0.9
) -> Scenario:
    """
    Return a scenario of a round of openb, with arrivals divided by the factor that gives the load.

    The round has nodes and pods as ``read_openb`` gives them: arrivals are the pods' creation times. ``run_time_ms`` is
    of every pod, as ``read_openb_run_times`` gives them. ``cluster``: other nodes, fewer, say: all pods of the trace
    together request no more GPUs than it has, and most run for minutes only, so on all its nodes no pace makes a load
    of more than a tenth. ``load``: GPU time that pods would hold between the first and the last arrival if none ever
    waited / GPU time of the cluster in that time; in the trace itself it is a few thousandths. Every pod has its shape
    and its true run time; the factor stands in the note. Raises `BadInput` where even all pods at once make no such
    load on the nodes.
    """
    if not 0 < load <= 10:
        raise BadInput(f"load: {load}, expected above 0 and up to 10")
    if len(round_.jobs) < 2:
        raise BadInput(f"jobs: {len(round_.jobs)}, expected two or more")
    first = min(job.arrival_ms for job in round_.jobs)
    came = np.array([job.arrival_ms - first for job in round_.jobs], dtype=float)
    runs = np.array([run_time_ms[job.id] for job in round_.jobs], dtype=float)
    milli = np.array([job.options[0].demand.gpus * job.options[0].demand.gpu_milli for job in round_.jobs], dtype=float)
    cluster = round_.cluster if cluster is None else cluster
    gpus = sum(cluster.gpus_by_node.values())
    low, high = 1.0, max(1.0, float(came.max()))
    if _load(came, runs, milli, high, gpus) < load:
        raise BadInput(f"load: {load:g} is more than all {len(round_.jobs)} pods make at once on {gpus} GPUs")
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _load(came, runs, milli, middle, gpus) < load else (low, middle)
    arrivals = []
    for job, at in zip(round_.jobs, (came / high).tolist(), strict=True):
        option = job.options[0].model_copy(update={"run_time_ms": run_time_ms[job.id]})
        arrivals.append(Arrival(job=job.model_copy(update={"arrival_ms": int(at), "options": (option,)})))
    arrivals.sort(key=lambda arrival: (arrival.job.arrival_ms, arrival.job.id))
    return Scenario(
        name=f"{round_.name}-x{len(cluster.nodes)}-load-{100 * load:.0f}",
        note=(
            f"{round_.note} On {len(cluster.nodes)} of these nodes with {gpus} GPUs, arrivals divided by {high:,.1f} "
            f"for a load of {load:g}; run times are the trace's."
        ),
        cluster=cluster,
        physics=Physics(rule="rate", interference="worst"),
        arrivals=tuple(arrivals),
    )


def _load(came: np.ndarray, runs: np.ndarray, milli: np.ndarray, factor: float, gpus: int) -> float:
    """Return the part of the GPU time up to the last arrival that is held if no pod waits."""
    at = came / factor
    span = max(1.0, float(at.max()))
    return float((milli * np.minimum(runs, span - at)).sum() / (1000 * gpus * span))
