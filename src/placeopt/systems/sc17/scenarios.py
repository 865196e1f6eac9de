"""
The settings of SC'17's evaluation as scenarios: table 1, pairs of AlexNet, and drawn workloads of any size.

What the paper does not give, and what is taken instead, stands in ``papers/README.md``.
"""

from __future__ import annotations

import random

from placeopt import BadInput
from placeopt.generators import equal_nodes
from placeopt.model import Assignment, Communication, Demand, Gpu, Job, Machine, Option, Part, Running, WorkerGpus
from placeopt.simulation import Arrival, Physics, Scenario
from placeopt.systems.sc17.times import sc17_times

PAPER = "Amaral et al., Topology-Aware GPU Scheduling for Learning Workloads in Cloud Environments (SC'17)"
TIMES = "Times: profiles/prof_from_experiments.json of HiEST/gpu-topo-aware, commit 8125c2875ad9, Apache-2.0."
VALUE_PER_GPU = 1000
RATE = Physics(rule="rate", interference="worst")
BATCHES = ("1", "4", "64", "128")
"""Tiny, small, medium, big, as the artifact measured them."""
BATCH_WEIGHTS = {"1": 4, "4": 3, "64": 2, "128": 1}
"""Weight of the edges of a job's graph (5.1): 4 for the smallest batch, 1 for the largest."""
TABLE_1 = (  # network, batch, GPUs, minimal utility, arrival in ms
    ("alexnet", "1", 1, 300, 510),
    ("googlenet", "4", 1, 300, 15_030),
    ("alexnet", "1", 1, 300, 24_360),
    ("alexnet", "4", 2, 500, 25_330),
    ("alexnet", "1", 2, 500, 29_330),
    ("alexnet", "1", 2, 500, 29_890),  # CaffeRef in the paper
)
SMALL_MIX = (  # kinds of the artifact's workloads-100 and how many of its jobs
    ("alexnet-1-2", 32),
    ("alexnet-1-1", 25),
    ("alexnet-4-2", 10),
    ("googlenet-1-2", 9),
    ("googlenet-1-1", 9),
    ("alexnet-4-1", 6),
    ("alexnet-1-3", 6),
    ("googlenet-4-1", 1),
    ("googlenet-4-2", 1),
    ("alexnet-4-3", 1),
)
GPUS = ((1, 383), (2, 470), (3, 147))
"""GPUs of a job and how many jobs of the artifact's workloads-1000 ask for them; the paper does not tell."""
UTILITY = (300, 520)
"""Range of the artifact's minimal utilities, which look uniform."""
PER_MINUTE = 10
"""Arrivals (5.3)."""


def table_1() -> Scenario:
    """Return the six jobs of the paper's table 1 on one Minsky; CaffeRef, never measured, takes AlexNet's times."""
    arrivals = [
        _arrival(str(i), f"{network}-{batch}-{gpus}", arrival, utility)
        for i, (network, batch, gpus, utility, arrival) in enumerate(TABLE_1)
    ]
    return _scenario("sc17-table-1", f"{PAPER}, table 1; CaffeRef with AlexNet's times. {TIMES}", 1, arrivals, RATE)


def pair(batch: str, *, apart: bool, beside: str | None = None) -> Scenario:
    """
    Return one AlexNet job of 2 GPUs that runs from the beginning: in one socket, or across both, alone or not.

    Parameters
    ----------
    batch
        One of ``BATCHES``.
    apart
        Whether it has a GPU of each socket.
    beside
        Batch of another such job on the two other GPUs, also across the sockets: so the artifact measured pairs. The
        run time is then the measured one (rule ``sc17``), which includes the way across.
    """
    if batch not in BATCHES or (beside is not None and beside not in BATCHES):
        raise BadInput(f"batch: expected one of {', '.join(BATCHES)}")
    kinds = [f"alexnet-{batch}-2"] + ([] if beside is None else [f"alexnet-{beside}-2"])
    arrivals = [_arrival(str(i), kind, 0, 0) for i, kind in enumerate(kinds)]
    places = ((0, 2), (1, 3)) if apart or beside is not None else ((0, 1), (2, 3))
    running = tuple(
        Running(
            job=str(i),
            option="default",
            assignments=(
                Assignment(
                    node="minsky-0",
                    gpus={str(gpu): 1000 for gpu in gpus},
                    workers=(WorkerGpus(rank=0, gpus=gpus),),
                ),
            ),
        )
        for i, gpus in zip(range(len(kinds)), places, strict=False)
    )
    name = f"sc17-alexnet-{batch}-{'spread' if apart else 'pack'}{'' if beside is None else f'-beside-{beside}'}"
    note = f"{PAPER}, figures 4 and 6. {TIMES}"
    made = _scenario(name, note, 1, arrivals, Physics(rule="sc17", interference="worst"))
    return made.model_copy(update={"running": running})


def small_jobs(seed: int, *, jobs: int = 100, machines: int = 5, weighted: bool = False) -> Scenario:
    """
    Draw jobs of the kinds of the artifact's workloads-100 (5.5.1), arriving at random, ten a minute.

    ``weighted``: with ``BATCH_WEIGHTS``, which the artifact's lists do not state, instead of 1.
    """
    dice = random.Random(seed)
    kinds = [kind for kind, _ in SMALL_MIX]
    drawn = dice.choices(kinds, [number for _, number in SMALL_MIX], k=jobs)
    note = (
        f"After {PAPER}, 5.5.1: {jobs} jobs on {machines} machines, Poisson, ten a minute. Kinds of jobs in the "
        f"proportions of the artifact's workloads-100, minimal utilities uniform 0.30 to 0.52. {TIMES}"
    )
    made = _drawn(f"sc17-{jobs}x{machines}-s{seed}", note, dice, drawn, machines, 60_000 / PER_MINUTE)
    if not weighted:
        return made
    arrivals = tuple(_weighted(arrival) for arrival in made.arrivals)
    return made.model_copy(update={"name": f"sc17-{jobs}x{machines}-weights-s{seed}", "arrivals": arrivals})


def _weighted(arrival: Arrival) -> Arrival:
    """Return a job with the weight of its batch, where its GPUs communicate at all."""
    job = arrival.job
    batch = (job.profile or "").split("-")[1]
    weight = BATCH_WEIGHTS[batch] if job.communication.weight else 0
    update = {"communication": job.communication.model_copy(update={"weight": weight})}
    return arrival.model_copy(update={"job": job.model_copy(update=update)})


def mixed_jobs(seed: int, *, jobs: int = 10_000, machines: int = 1_000, load: float | None = None) -> Scenario:
    """
    Draw jobs of all batches and networks by the paper's binomials (5.3, 5.5.2).

    Parameters
    ----------
    jobs, machines
        The paper's 10,000 on 1,000; with fewer machines arrivals are as much rarer, so that the load stays.
    load
        GPU time asked for / GPU time of the cluster while jobs arrive; left out, the paper's ten arrivals a minute on
        1,000 machines, under which hardly 7 % of the GPUs are ever in use and no job waits.
    """
    dice = random.Random(seed)
    drawn = []
    for _ in range(jobs):
        batch = BATCHES[sum(dice.random() < 0.5 for _ in range(3))]
        network = ("alexnet", "alexnet", "googlenet")[sum(dice.random() < 0.5 for _ in range(2))]
        gpus = dice.choices([g for g, _ in GPUS], [number for _, number in GPUS])[0]
        drawn.append(f"{network}-{batch}-{gpus}")
    gap_ms = 60_000 / PER_MINUTE * 1_000 / machines
    if load is not None:
        times = sc17_times().run_time_ms
        gap_ms = sum(times[kind] * int(kind.rpartition("-")[2]) for kind in drawn) / jobs / (4 * machines * load)
    pace = "ten a minute for 1,000 machines" if load is None else f"for a load of {load:g}"
    note = (
        f"After {PAPER}, 5.3 and 5.5.2: {jobs} jobs on {machines} machines, Poisson, {pace}; batch and network by the "
        "binomials of 5.3 (p = 1/2, not given), CaffeRef as AlexNet, GPUs in the proportions of the artifact's "
        f"workloads-1000, minimal utilities uniform 0.30 to 0.52. {TIMES}"
    )
    name = f"sc17-{jobs}x{machines}{'' if load is None else f'-load-{100 * load:.0f}'}-s{seed}"
    return _drawn(name, note, dice, drawn, machines, gap_ms)


def _drawn(name: str, note: str, dice: random.Random, kinds: list[str], machines: int, mean_gap_ms: float) -> Scenario:
    clock, arrivals = 0.0, []
    for i, kind in enumerate(kinds):
        clock += dice.expovariate(1 / mean_gap_ms)
        arrivals.append(_arrival(str(i), kind, int(clock), dice.randint(*UTILITY)))
    return _scenario(name, note, machines, arrivals, RATE)


def _arrival(name: str, kind: str, arrival_ms: int, utility: int) -> Arrival:
    times, gpus = sc17_times(), int(kind.rpartition("-")[2])
    return Arrival(
        job=Job(
            id=name,
            arrival_ms=arrival_ms,
            options=(
                Option(demand=Demand(gpus=gpus), value=VALUE_PER_GPU * gpus, run_time_ms=times.run_time_ms[kind]),
            ),
            communication=Communication(
                weight=1 if gpus > 1 else 0,
                spread_slowdown_thousandths=times.spread_thousandths[kind] if gpus > 1 else None,
            ),
            profile=kind,
            utility_min_thousandths=utility,
        )
    )


def _scenario(name: str, note: str, machines: int, arrivals: list[Arrival], physics: Physics) -> Scenario:
    machine = minsky()
    kinds = {arrival.job.profile for arrival in arrivals if arrival.job.profile is not None}
    return Scenario(
        name=name,
        note=note,
        cluster=equal_nodes(machine, machines, prefix="minsky", digits=1),
        physics=physics,
        slowdowns=sc17_times().among(kinds),
        arrivals=tuple(arrivals),
    )


def minsky() -> Machine:
    """Return the machine of the artifact's infra-1m.json: GPUs 1 apart in a socket, 20 across."""
    return Machine(
        id="minsky",
        cpu_millicores=12_000,
        memory_mib=512 * 1024,
        parts=(Part(id="socket-0", level="socket"), Part(id="socket-1", level="socket")),
        gpus=tuple(Gpu(model="P100", memory_mib=16 * 1024, part=f"socket-{gpu // 2}") for gpu in range(4)),
        gpu_distance_matrix=((0, 1, 20, 20), (1, 0, 20, 20), (20, 20, 0, 1), (20, 20, 1, 0)),
        source="infra-1m.json of SC'17's artifact",
    )
