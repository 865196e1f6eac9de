"""Jobs of a table on a given cluster, as a scenario."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from placeopt.errors import BadInput
from placeopt.generators.job_kinds import PROFILES
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.job_table.read import TableJob
from placeopt.model import Cluster, Communication, Demand, Job, Option, Slowdown
from placeopt.model.base import MAX_MS, MAX_VALUE
from placeopt.simulation.assumed_interference import Assumed, assumed_kind, assumed_slowdowns
from placeopt.simulation.records.scenario import Arrival, Physics, Scenario

VALUE_PER_GPU = 1000
MAX_WORKER_GPUS = 1024
DAY_MS = 86_400_000


def table_scenario(
    jobs: Sequence[TableJob],
    cluster: Cluster,
    notes: ImportNotes,
    *,
    name: str,
    interference: Assumed | Sequence[Slowdown] = "none",
    seed: int = 0,
    from_day: int = 0,
    days: int | None = None,
    load: float | None = None,
) -> Scenario:
    """
    Return the jobs, in the order of submission, on a cluster.

    Times count from the first submission; ``from_day`` and ``days`` take the jobs submitted in a window (None: all that
    follow), and times then count from the first of these. ``load``: arrivals are moved together or apart until the GPU
    time that all jobs take is this part of that of the cluster up to the last arrival; None: they stay as they are.

    A job of neither workers nor nodes is one worker where its GPUs fit on the largest node, else a gang of whole nodes
    where they divide, else of single GPUs. ``interference``: what is assumed of the jobs, or stated slowdowns between
    the profiles that they name; ``seed`` draws kinds of SC'17. ``notes`` gets what is left out here: jobs that have no
    such form. Raises `BadInput` if none is left, or they make no such load.
    """
    stated = interference if not isinstance(interference, str) else None
    assumed: Assumed = interference if isinstance(interference, str) else "none"
    largest = _largest_nodes(cluster)
    jobs = _window(jobs, from_day, days)
    first = jobs[0].submit_ms if jobs else 0
    kinds = np.random.default_rng(seed).integers(len(PROFILES), size=len(jobs)).tolist()
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
                actual_run_time_ms=max(1, job.duration_ms or 0),
            )
        )
    if not arrivals:
        raise BadInput(f"jobs: none is left. {notes.text()}".replace("\n", " "))
    if load is not None:
        arrivals = _at_load(arrivals, cluster, load)
    return Scenario(
        name=name,
        cluster=cluster,
        physics=Physics() if assumed == "sc17" else Physics(spread_slowdown_thousandths=0),
        slowdowns=assumed_slowdowns(assumed) if stated is None else tuple(stated),
        arrivals=tuple(arrivals),
    )


def _window(jobs: Sequence[TableJob], from_day: int, days: int | None) -> Sequence[TableJob]:
    """Return the jobs submitted on these days, counted from the first submission."""
    begin = (jobs[0].submit_ms if jobs else 0) + from_day * DAY_MS
    chosen = [job for job in jobs if begin <= job.submit_ms and (days is None or job.submit_ms < begin + days * DAY_MS)]
    if not chosen:
        raise BadInput("from_day, days: no job was submitted in that window")
    return chosen


def _at_load(arrivals: list[Arrival], cluster: Cluster, load: float) -> list[Arrival]:
    """Return the arrivals at moments that give the load."""
    gpus = sum(cluster.gpus_by_node.values())
    asked = sum(
        option.workers * option.demand.gpus * option.demand.gpu_milli * (arrival.actual_run_time_ms or 0)
        for arrival in arrivals
        for option in arrival.job.options
    )
    last = max(arrival.job.arrival_ms for arrival in arrivals)
    wanted = asked / (1000 * gpus * load) if gpus and load > 0 else 0.0
    if not wanted or not last or wanted > MAX_MS:
        raise BadInput(f"load: {load:g} cannot be made of jobs that come in {last / 1000:g} s, on {gpus} GPUs")
    return [
        arrival.model_copy(
            update={"job": arrival.job.model_copy(update={"arrival_ms": round(arrival.job.arrival_ms * wanted / last)})}
        )
        for arrival in arrivals
    ]


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
