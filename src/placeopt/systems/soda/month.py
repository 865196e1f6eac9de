"""
SODA's month, made anew from what its paper publishes: CPU jobs and training jobs that share the nodes of a GPU cluster.

Published (Zhao et al., IEEE TC 2023), and used as it stands: 80 nodes of two 14-core CPUs with 400 GPUs (1080 Ti), 70
GB/s of memory bandwidth (IV-E); 75,000 CPU jobs and 25,000 training jobs in a month, of five owners (III-A, VI-A); of
the training jobs 68.5 % last longer than one hour and 39.6 % than two (VI-H), most are of language and speech; one or
two cores, a GPU, are asked for by 76.1 % (III-B, VI-D), more than ten by 15.3 %; 0.5 % of the CPU jobs use much memory
bandwidth (VI-G); CPU jobs come by day more than by night, in a burst on Wednesday (figure 2).

Not published, and ours: everything else, each with its figure below. Above all the core curves, which stand in the
conference's version of the paper, the GPUs that jobs ask for, how long CPU jobs run on how many cores, and the load of
the twelve services, whose replicas are the other 5,000 GPU jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt import BadInput
from placeopt.generators import equal_nodes
from placeopt.model import Communication, Demand, Gpu, Job, Machine, Option
from placeopt.problem import IntArray
from placeopt.scheduling import CoreCurve
from placeopt.simulation import Arrival, Endpoint, LoadStep, Physics, Replica, Scenario
from placeopt.systems.factors import UNCHANGED, Factors, scaled
from placeopt.systems.soda.core_search import best_fit_cores, first_cores

NODES, DAYS = 80, 30
GPUS_PER_NODE = 5
"""400 on 80 nodes; how many stand in which is not published."""
CPU_JOBS, TRAINING_JOBS = 75_000, 25_000
OWNERS = 5
OWNER_SHARES = (0.4, 0.25, 0.15, 0.12, 0.08)
"""Of all jobs; ours."""
LOG_HOURS_MEAN, LOG_HOURS_DEVIATION = 0.448, 0.929
"""Logarithm of a training job's hours with the cores that it asks for: normal, through both published points."""
TRAINING_GPUS = {1: 0.25, 2: 0.15, 4: 0.35, 8: 0.25}
"""Ours: with them GPUs are held 90 % of the time under FIFO, as published (VI-B). Eight are two workers of four."""
FEW_CORES, MANY_CORES = 0.761, 0.153
"""One or two a GPU, each as often; 11 to 20 a worker; the rest asks for 3 to 10 a worker, all as likely."""
GPU_PERCENT = 70
"""Utilisation at full speed; ours, near what SODA reaches."""
CPU_JOB_CORES = {1: 0.3, 2: 0.25, 4: 0.25, 8: 0.15, 16: 0.05}
CPU_LOG_MINUTES_MEAN, CPU_LOG_MINUTES_DEVIATION = 3.0, 1.48
"""A median of 20 minutes, a mean of an hour; with the cores above 396 cores are in use on average. Ours."""
HUNGRY_SHARE = 0.005
HUNGRY_MBPS, MODEST_MBPS = 45_000, 500
"""Memory bandwidth of a hungry CPU job, and of a core of any other; ours."""
SERVICES_PER_GPU = 3
"""Of three to four under ABACUS (VI)."""
SERVICES = 12
"""Published (III-B); each serves the next model of table I."""
CPU_JOB_NODE_CORES = 16
"""Cores of a node that GPU jobs leave (IV-E); the batch grows with them (figure 9), in proportion as taken here."""
CPU_BATCH = {"alexnet": 16, "resnet50": 4, "inception3": 2, "vgg16": 1, "bi-att-flow": 1, "transformer": 8}
CPU_MBPS = {
    "alexnet": 25_700,
    "resnet50": 26_900,
    "inception3": 27_000,
    "vgg16": 40_300,
    "bi-att-flow": 29_500,
    "transformer": 26_300,
}
"""Largest batch in time on 16 cores, and the bandwidth that it uses (tables III and IV); other models have none."""
BATCH_MS, TARGET_MS = 100, 200
"""Computation of a batch, and the target (VI-E)."""
GPU_BATCHES = 4
"""Batch of a GPU, in batches of 16 cores; models that cores cannot serve as if those served one. Ours."""
PEAK_GPUS = (1.5, 5.0)
"""Load of a service at its peak in GPUs, all as likely; a tenth of it at night. Ours: some 5,000 replicas a month."""
HOST_PART = 0.3
"""Part of an iteration that is the CPU's at the best number of cores: a curve by Amdahl's law up to there. Ours."""


@dataclass(frozen=True)
class Kind:
    """A model of the paper's table I: category, best number of cores a GPU, MB/s of memory a GPU, and how often."""

    category: str
    cores: int
    mbps: int
    share: float


KINDS = {
    "alexnet": Kind("vision", 4, 6000, 0.05),
    "vgg16": Kind("vision", 2, 3000, 0.05),
    "inception3": Kind("vision", 3, 3000, 0.05),
    "resnet50": Kind("vision", 3, 4500, 0.05),
    "bi-att-flow": Kind("language", 4, 800, 0.2),
    "transformer": Kind("language", 5, 800, 0.2),
    "wavenet": Kind("speech", 5, 2500, 0.2),
    "deepspeech": Kind("speech", 5, 4000, 0.2),
}
"""
Cores: the paper's first guesses of a category (V-B), less one for many weights, one more for heavy pre-processing, one
less for the language model that took four steps (table V). Bandwidth: only its order is published (IV-C). Ours.
"""


def best_cores(name: str, gpu_job_cores: int | None = None) -> int:
    """
    Return the best number of cores a GPU of a model.

    ``gpu_job_cores``: As many as all GPUs of a node hold together in the mean, in the proportions of ``KINDS``. The
    paper chooses 12 of 28 (IV-E 1: "we choose 12 CPU cores to represent the CPU cores occupied by GPU jobs"). None:
    those of ``KINDS`` themselves, of which five GPUs hold 22: two readings of one paper.
    """
    cores = KINDS[name].cores
    if gpu_job_cores is None:
        return cores
    of_node = GPUS_PER_NODE * sum(kind.cores * kind.share for kind in KINDS.values())
    return max(1, round(cores * gpu_job_cores / of_node))


def soda_month(
    *,
    seed: int = 0,
    nodes: int = NODES,
    days: int = DAYS,
    gpu_job_cores: int | None = None,
    factors: Factors = UNCHANGED,
) -> Scenario:
    """
    Make SODA's month, or a smaller cluster for fewer days under the same load.

    Parameters
    ----------
    seed
        Of everything that is drawn.
    nodes, days
        The number of jobs goes with their product.
    gpu_job_cores
        Of `best_cores`.
    factors
        Factors on ``GPU_PERCENT``, ``HOST_PART``, and of ``TRAINING_GPUS`` on the shares of 4 and 8 GPUs.

    Returns
    -------
    Scenario
        With core curves, and 75 % of the memory bandwidth usable.

    Raises
    ------
    BadInput
        If a number is out of range.
    """
    if not 2 <= nodes <= 10_000 or not 1 <= days <= 365:
        raise BadInput(f"nodes: {nodes}, days: {days}; expected 2 to 10000 and 1 to 365")
    rng = np.random.default_rng(seed)
    part = nodes * days / (NODES * DAYS)
    curves = tuple(core_curve(name, factors, gpu_job_cores) for name in KINDS)
    arrivals = [
        *_training_jobs(rng, round(TRAINING_JOBS * part), days, curves, factors),
        *_cpu_jobs(rng, round(CPU_JOBS * part), days),
    ]
    arrivals.sort(key=lambda arrival: (arrival.job.arrival_ms, arrival.job.id))
    machine = Machine(
        id="1080ti-x5",
        cpu_millicores=28_000,
        memory_mib=262_144,
        memory_bandwidth_mbps=70_000,
        gpus=(Gpu(model="GTX-1080Ti", memory_mib=11_264),) * GPUS_PER_NODE,
    )
    return Scenario(
        name=f"soda-{days}d-x{nodes}-s{seed}" + ("" if gpu_job_cores is None else f"-{gpu_job_cores}-cores"),
        note=(
            "SODA's month (Zhao et al., IEEE TC 2023), made anew from its published statistics; what is not published "
            f"is ours, see placeopt.generators.soda_month. Seed {seed}."  # former place: stored scenarios hold it
        ),
        cluster=equal_nodes(machine, nodes),
        physics=Physics(memory_bandwidth_percent=75),
        core_curves=curves,
        arrivals=tuple(arrivals),
        endpoints=tuple(_endpoint(rng, i, days, factors) for i in range(max(1, round(SERVICES * nodes / NODES)))),
    )


def abacus_month(*, seed: int = 0, nodes: int = NODES, days: int = DAYS, factors: Factors = UNCHANGED) -> Scenario:
    """Return `soda_month` with services that share GPUs (VI-E)."""
    return services_that_share(soda_month(seed=seed, nodes=nodes, days=days, factors=factors))


def services_that_share(scenario: Scenario) -> Scenario:
    """Return a scenario whose services take a third of a GPU each, without a loss, as under ABACUS (figure 17)."""
    endpoints = tuple(
        endpoint.model_copy(
            update={
                "gpu": endpoint.gpu.model_copy(
                    update={"demand": endpoint.gpu.demand.model_copy(update={"gpu_milli": 1000 // SERVICES_PER_GPU})}
                )
            }
        )
        for endpoint in scenario.endpoints
    )
    return scenario.model_copy(update={"endpoints": endpoints, "name": f"{scenario.name}-abacus"})


def core_curve(name: str, factors: Factors = UNCHANGED, gpu_job_cores: int | None = None) -> CoreCurve:
    """Return the curve of a kind: its CPU part shrinks with the cores, up to the best number of them."""
    kind, best = KINDS[name], best_cores(name, gpu_job_cores)
    host = scaled(HOST_PART, "HOST_PART", factors, most=1)
    times = [1 - host + host * best / cores for cores in range(1, best + 1)]
    return CoreCurve.model_validate(
        {
            "profile": name,
            "category": kind.category,
            "speed_thousandths": tuple(round(1000 / time) for time in times),
        }
    )


NETWORK_PERCENT = {
    "alexnet": 67.1,
    "resnet50": 63.4,
    "inception3": 23.2,
    "vgg16": 26.9,
    "bi-att-flow": 17.7,
    "transformer": 35.7,
    "deepspeech": 36.1,
    "wavenet": 8.4,
}
"""Part of a node's network that a job of 2 nodes x 2 GPUs uses, default batch (table II)."""


def offline_profile(largest_batch: Callable[[int], int], most: int) -> tuple[int, int] | None:
    """
    Return the batch and the cores with which a service runs on CPU cores (V-D 2); None: cores cannot serve it.

    Parameters
    ----------
    largest_batch
        Measures the largest batch that a number of cores computes in time.
    most
        Cores of a node that are the CPU jobs'; the batch is the one that they support.

    Returns
    -------
    tuple of int
        That batch, and the fewest cores that support it.
    """
    batch = largest_batch(most)
    if batch < 1:
        return None
    return batch, next(cores for cores in range(1, most + 1) if largest_batch(cores) >= batch)


def network_loss_percent(of_cpu_jobs: float) -> float:
    """
    Return how much of their pace the eight models of table II lose in the mean beside CPU jobs, in percent.

    ``of_cpu_jobs``: percent of a node's network that these take: 80 in the experiment of IV-C, 25 where SODA limits
    them (V-E). Where all together would use more than the network has, each gets its part of it, the rule that the
    simulation has for memory bandwidth.
    """
    used = [percent + of_cpu_jobs for percent in NETWORK_PERCENT.values()]
    return sum(100 - 100 * min(1.0, 100 / together) for together in used) / len(used)


def search_steps(name: str) -> float:
    """Return the steps of SODA's search (V-B) for a model, from the first guess of its category, on our curve."""
    curve = core_curve(name)
    start = first_cores(curve.category)
    _, steps = best_fit_cores(lambda cores: curve.speed(1000 * cores), start, most=28)
    return float(steps)


def _endpoint(rng: np.random.Generator, number: int, days: int, factors: Factors) -> Endpoint:
    """Make a service whose load follows the day, with some noise, hour by hour."""
    model = list(KINDS)[number % len(KINDS)]
    per_batch = 1_000_000 // BATCH_MS  # thousandths of requests a second
    gpu_rate = GPU_BATCHES * CPU_BATCH.get(model, 1) * per_batch
    hour = np.arange(24 * days)
    shape = (0.55 + 0.45 * np.cos(2 * np.pi * (hour % 24 - 15) / 24)) * np.exp(rng.normal(0.0, 0.15, size=len(hour)))
    rates = rng.uniform(*PEAK_GPUS) * gpu_rate * shape
    cpu, on_most = None, CPU_BATCH.get(model, 0)
    profile = offline_profile(lambda cores: on_most * cores // CPU_JOB_NODE_CORES, CPU_JOB_NODE_CORES)
    if profile is not None:
        batch, cores = profile
        demand = Demand(gpus=0, cpu_millicores=1000 * cores, memory_bandwidth_mbps=CPU_MBPS[model])
        cpu = Replica(demand=demand, rate_milli=batch * per_batch, latency_ms=BATCH_MS)
    return Endpoint(
        id=f"service-{number}",
        gpu=Replica(
            demand=Demand(gpus=1, gpu_utilisation_percent=_gpu_percent(factors), cpu_millicores=2000),
            rate_milli=gpu_rate,
            latency_ms=BATCH_MS,
        ),
        cpu=cpu,
        latency_target_ms=TARGET_MS,
        load=tuple(
            LoadStep(from_ms=int(h) * 3_600_000, rate_milli=int(rate)) for h, rate in zip(hour, rates, strict=True)
        ),
        until_ms=days * 86_400_000,
    )


def _gpu_percent(factors: Factors) -> int:
    return round(scaled(GPU_PERCENT, "GPU_PERCENT", factors, most=100))


def _training_jobs(
    rng: np.random.Generator, count: int, days: int, curves: Sequence[CoreCurve], factors: Factors
) -> list[Arrival]:
    when = _moments(rng, count, np.ones(24 * days))
    weights = {
        gpus: scaled(share, "TRAINING_GPUS", factors) if gpus >= 4 else share for gpus, share in TRAINING_GPUS.items()
    }
    total = sum(weights.values())
    gpus = _draw(rng, {gpus: weight / total for gpus, weight in weights.items()}, count)
    names = list(KINDS)
    kinds = rng.choice(len(names), size=count, p=[kind.share for kind in KINDS.values()])
    hours = np.exp(rng.normal(LOG_HOURS_MEAN, LOG_HOURS_DEVIATION, size=count))
    habit, few, some, many = rng.random(count), rng.integers(1, 3, count), *_between(rng, count)
    owners = rng.choice(OWNERS, size=count, p=OWNER_SHARES)
    known: dict[tuple[int, int, int], Option] = {}
    still = Communication(spread_slowdown_thousandths=0)
    out = []
    for i in range(count):
        each = min(4, int(gpus[i]))
        cores = int(few[i]) * each if habit[i] < FEW_CORES else int(many[i] if habit[i] > 1 - MANY_CORES else some[i])
        key = int(gpus[i]), cores, int(kinds[i])
        if key not in known:
            known[key] = Option(
                workers=int(gpus[i]) // each,
                demand=Demand(
                    gpus=each,
                    gpu_utilisation_percent=_gpu_percent(factors),
                    cpu_millicores=1000 * cores,
                    memory_bandwidth_mbps=KINDS[names[kinds[i]]].mbps * each,
                ),
                value=1000 * int(gpus[i]),
            )
        asked = curves[kinds[i]].speed(1000 * cores // each)
        job = Job(
            id=f"train-{i}",
            user=f"owner-{owners[i]}",
            arrival_ms=int(when[i]),
            options=(known[key],),
            communication=still,
            profile=names[kinds[i]],
        )
        out.append(Arrival(job=job, actual_run_time_ms=max(1, int(hours[i] * 3_600_000 * asked / 1000))))
    return out


def _cpu_jobs(rng: np.random.Generator, count: int, days: int) -> list[Arrival]:
    hour = np.arange(24 * days)
    rate = 1 + 0.6 * np.cos(2 * np.pi * (hour % 24 - 14) / 24)
    rate[(hour // 24 % 7 == 2) & (hour % 24 >= 12) & (hour % 24 < 18)] *= 4  # the month begins on a Monday
    when = _moments(rng, count, rate)
    cores = _draw(rng, CPU_JOB_CORES, count)
    minutes = np.exp(rng.normal(CPU_LOG_MINUTES_MEAN, CPU_LOG_MINUTES_DEVIATION, size=count))
    hungry = rng.random(count) < HUNGRY_SHARE
    owners = rng.choice(OWNERS, size=count, p=OWNER_SHARES)
    known: dict[tuple[int, bool], Option] = {}
    out = []
    for i in range(count):
        key = int(cores[i]), bool(hungry[i])
        if key not in known:
            mbps = HUNGRY_MBPS if hungry[i] else MODEST_MBPS * int(cores[i])
            demand = Demand(gpus=0, cpu_millicores=1000 * int(cores[i]), memory_bandwidth_mbps=mbps)
            known[key] = Option(demand=demand)
        job = Job(id=f"cpu-{i}", kind="cpu", user=f"owner-{owners[i]}", arrival_ms=int(when[i]), options=(known[key],))
        out.append(Arrival(job=job, actual_run_time_ms=max(1, int(minutes[i] * 60_000))))
    return out


def _moments(rng: np.random.Generator, count: int, hourly: Sequence[float] | np.ndarray) -> IntArray:
    """Draw moments in milliseconds, in order, by the weights of the hours."""
    weights = np.asarray(hourly) / np.sum(hourly)
    hours = rng.choice(len(weights), size=count, p=weights)
    return np.sort(((hours + rng.random(count)) * 3_600_000).astype(np.int64))


def _draw(rng: np.random.Generator, shares: dict[int, float], count: int) -> IntArray:
    return np.array(list(shares), dtype=np.int64)[rng.choice(len(shares), size=count, p=list(shares.values()))]


def _between(rng: np.random.Generator, count: int) -> tuple[IntArray, IntArray]:
    return rng.integers(3, 11, count), rng.integers(11, 21, count)
