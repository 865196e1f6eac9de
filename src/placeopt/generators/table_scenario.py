"""Jobs of a table on a given cluster, as a scenario."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from placeopt.errors import BadInput
from placeopt.formats.import_notes import ImportNotes
from placeopt.formats.job_table.read import TableJob
from placeopt.generators.assumed_interference import Assumed, assumed_kind, assumed_slowdowns
from placeopt.generators.job_kinds import PROFILES
from placeopt.generators.sia import VALUE_PER_GPU
from placeopt.model import Cluster, Communication, Demand, Job, Option, Slowdown
from placeopt.model.base import MAX_MS, MAX_VALUE
from placeopt.model.scenario import Arrival, Physics, Scenario

MAX_WORKER_GPUS = 1024


def table_scenario(
    jobs: Sequence[TableJob],
    cluster: Cluster,
    notes: ImportNotes,
    *,
    name: str,
    interference: Assumed | Sequence[Slowdown] = "none",
    seed: int = 0,
) -> Scenario:
    """
    Return the jobs, in the order of submission, on a cluster.

    Times count from the first submission. A job of neither workers nor nodes is one worker where its GPUs fit on the
    largest node, else a gang of whole nodes where they divide, else of single GPUs. ``interference``: what is assumed
    of the jobs, or stated slowdowns between the profiles that they name; ``seed`` draws kinds of SC'17. ``notes`` gets
    what is left out here: jobs that have no such form. Raises `BadInput` if none is left.
    """
    stated = interference if not isinstance(interference, str) else None
    assumed: Assumed = interference if isinstance(interference, str) else "none"
    kinds = np.random.default_rng(seed).integers(len(PROFILES), size=len(jobs)).tolist()
    largest = _largest_nodes(cluster)
    first = jobs[0].submit_ms if jobs else 0
    options: dict[tuple[object, ...], Option] = {}
    arrivals = []
    for job, kind in zip(jobs, kinds, strict=True):
        try:
            option = _option(
                job,
                max((largest.get(model, 0) for model in job.models), default=max(largest.values(), default=0)),
                options,
            )
            if job.submit_ms - first > MAX_MS:
                raise ValueError("it comes more than 300 years after the first; is the unit right?")
        except ValueError as error:
            notes.leave_out(str(error), job.id)
            continue
        demand = option.demand
        profile, communication = job.profile, Communication()
        if stated is None:
            profile = None
            if demand.gpus and demand.gpu_milli == 1000:
                profile, communication = assumed_kind(assumed, kind, option.workers * demand.gpus)
        arrivals.append(
            Arrival(
                job=Job(
                    id=job.id,
                    kind="training" if demand.gpus else "cpu",
                    user=job.user,
                    queue=job.queue,
                    priority=job.priority,
                    arrival_ms=job.submit_ms - first,
                    options=(option,),
                    profile=profile,
                    communication=communication,
                ),
                actual_run_time_ms=max(1, job.duration_ms),
            )
        )
    if not arrivals:
        raise BadInput(f"jobs: none is left. {notes.text()}".replace("\n", " "))
    return Scenario(
        name=name,
        cluster=cluster,
        physics=Physics() if assumed == "sc17" else Physics(spread_slowdown_thousandths=0),
        slowdowns=assumed_slowdowns(assumed) if stated is None else tuple(stated),
        arrivals=tuple(arrivals),
    )


def _largest_nodes(cluster: Cluster) -> dict[str, int]:
    """Return the most GPUs of a node, by model."""
    used = {node.machine for node in cluster.nodes}
    largest: dict[str, int] = {}
    for machine in cluster.machines:
        if machine.id in used:
            for gpu in machine.gpus:
                largest[gpu.model] = max(largest.get(gpu.model, 0), len(machine.gpus))
    return largest


def _option(job: TableJob, largest: int, known: dict[tuple[object, ...], Option]) -> Option:
    """Return how a job runs; raises `ValueError` with the reason where its GPUs make no equal workers."""
    key = (job.gpus, job.cpu, job.memory, job.workers, job.nodes, job.models, largest)
    if key not in known:
        workers, gpus = _workers(job, largest)
        parts = 1 if job.workers else workers  # with workers, all amounts are of one
        demand = Demand(
            gpus=math.ceil(gpus),
            gpu_milli=max(1, math.ceil(1000 * gpus)) if 0 < gpus < 1 else 1000,
            gpu_models=job.models,
            cpu_millicores=math.ceil(1000 * job.cpu / parts),
            memory_mib=math.ceil(job.memory / parts),
        )
        value = max(1, round(VALUE_PER_GPU * gpus * workers), round(job.cpu / parts * workers) if not gpus else 0)
        known[key] = Option(
            workers=workers,
            demand=demand,
            value=min(value, MAX_VALUE),
            workers_per_node_max=1 if job.nodes and workers > 1 else None,
        )
    option = known[key]
    return option if job.estimate_ms is None else option.model_copy(update={"run_time_ms": job.estimate_ms})


def _workers(job: TableJob, largest: int) -> tuple[int, Fraction]:
    """Return the number of workers, and the GPUs of each."""
    gpus = job.gpus
    if job.workers:
        workers = job.workers
    elif job.nodes:
        workers, gpus = job.nodes, job.gpus / job.nodes
        if gpus.denominator != 1 and workers > 1:
            raise ValueError("its GPUs do not divide over its nodes")
    elif gpus <= largest or gpus <= 1:
        workers = 1
    elif largest and gpus % largest == 0:
        workers, gpus = int(gpus / largest), Fraction(largest)
    else:
        workers, gpus = int(gpus), Fraction(1)
    if gpus > MAX_WORKER_GPUS:
        raise ValueError(f"more than {MAX_WORKER_GPUS:,} GPUs in one worker")
    return workers, gpus
