"""
The settings of Horus's evaluation as scenarios: W-Small and W-Large on 12 GPUs, and 398 jobs on 128 nodes.

The traces are not published; what the paper states, what is inferred from its figures, and what is chosen here stands
in ``papers/README.md``.
"""

from __future__ import annotations

import math
import random

from placeopt import BadInput
from placeopt.generators import equal_nodes
from placeopt.model import MAX_JOBS, Demand, Gpu, Job, Machine, Option, SlowdownCurve
from placeopt.simulation import Arrival, Physics, Scenario
from placeopt.systems.factors import UNCHANGED, Factors, scaled

PAPER = "Yeung et al., Horus: Interference-Aware and Prediction-Based Scheduling in Deep Learning Systems (TPDS 2022)"
VALUE_PER_GPU = 1000
CURVE = Physics(rule="rate", interference="curve", curve="rtx-2080")
LINEAR = SlowdownCurve(square_millionths=0, linear_millionths=163_660, constant_millionths=1_000_000)
"""Slowdown linear in the joint utilisation (6.2): the line of RTX 2080 below full use, 0.16366, goes on above it."""
SHORTEST_S, SHORT_S, LONGEST_S = 180, 800, 7200
"""3 minutes to 2 hours; up to 800 s a job is short (5.2)."""
SHORT_PART = {"small": 0.57, "large": 0.46}
"""Part of short jobs: chosen so that FIFO comes near its published makespan; the paper does not tell."""
LIGHT_PART = 0.6
"""Part of jobs of up to 60 % utilisation; with the ranges below the mean is 51.5 %, the paper's 51 (figure 1)."""
LIGHT_PERCENT, HEAVY_PERCENT = (5, 60), (60, 100)
MEMORY_MIB, MEMORY_OF_FULL_MIB, MEMORY_EITHER_WAY_MIB = 1024, 6656, 1024
"""
GPU memory of a job: a start-up overhead, and what grows with its utilisation, since batch and activations drive both
(table 3, eq. 2); give or take. So few pairs that together use more than a GPU fit into its 8 GiB: the paper, which
gives no memory, saw jobs slowed by 8 to 30 % only.
"""
GPU_MIB = 8 * 1024
MEDIAN_MIN, MEAN_MIN = 300, 500
"""Run times of the production trace (2.1): half of the jobs up to 300 minutes, 500 on average."""
SIZES = ((8, 30), (16, 30), (32, 25), (64, 15))
"""
GPUs of a job of the trace, in percent of the jobs: chosen, 24.8 on average, so that as under the paper's FIFO most jobs
wait and waits are spread evenly; the paper does not tell.
"""


def horus_testbed(
    seed: int, workload: str = "large", *, jobs: int = 100, nodes: int = 3, factors: Factors = UNCHANGED
) -> Scenario:
    """
    Draw single-GPU jobs that are all submitted at once onto nodes of 4 RTX 2080 (5.1, 5.2, 6.1).

    ``factors``: on ``SHORT_PART`` and ``MEMORY_OF_FULL_MIB``.
    """
    if workload not in SHORT_PART or not 1 <= jobs <= MAX_JOBS or nodes < 1:
        raise BadInput(f"workload: {workload!r}, expected small or large; jobs: 1 to {MAX_JOBS}; nodes: 1 or more")
    dice = random.Random(seed)
    arrivals = []
    for i in range(jobs):
        short = dice.random() < scaled(SHORT_PART[workload], "SHORT_PART", factors, most=1)
        low, high = (SHORTEST_S, SHORT_S) if short else (SHORT_S, LONGEST_S)
        seconds = math.exp(dice.uniform(math.log(low), math.log(high)))
        arrivals.append(_arrival(f"job-{i:03}", round(1000 * seconds), 1, dice, 4, factors))
    note = (
        f"After {PAPER}, 5.2: W-{workload.title()}, {jobs} single-GPU jobs of 3 minutes to 2 hours, log-uniform among "
        f"the short (up to 800 s, {100 * SHORT_PART[workload]:.0f} %) and the long ones, all submitted at once. "
        f"Utilisation: {100 * LIGHT_PART:.0f} % light (5 to 60), else 60 to 100 %. GPU memory: "
        "1 GiB + 6.5 GiB x utilisation, 1 GiB either way."
    )
    machine = _machine(4, cpu_millicores=24_000, memory_gib=128)
    return _scenario(f"horus-w-{workload}-s{seed}", note, machine, nodes, arrivals)


def horus_trace(
    seed: int, *, jobs: int = 398, nodes: int = 128, linear: bool = False, factors: Factors = UNCHANGED
) -> Scenario:
    """
    Draw jobs in the shape of the production trace, all submitted at once, onto nodes of 8 GPUs (5.1, 6.2).

    A step of the paper's simulation is read as a minute. ``linear``: slowdown as in 6.2. ``factors``: on ``SIZES`` and
    ``MEMORY_OF_FULL_MIB``.
    """
    if not 1 <= jobs <= MAX_JOBS or nodes < 2:
        raise BadInput(f"jobs: 1 to {MAX_JOBS}; nodes: 2 or more")
    dice = random.Random(seed)
    sigma = math.sqrt(2 * math.log(MEAN_MIN / MEDIAN_MIN))
    arrivals = []
    for i in range(jobs):
        minutes = max(1.0, dice.lognormvariate(math.log(MEDIAN_MIN), sigma))
        size = dice.choices([size for size, _ in SIZES], [part for _, part in SIZES])[0]
        gpus = round(scaled(size, "SIZES", factors))
        arrivals.append(_arrival(f"job-{i:03}", round(60_000 * minutes), gpus, dice, 8, factors))
    note = (
        f"After {PAPER}, 6.2: {jobs} jobs on {nodes} nodes of 8 GPUs, all submitted at once. Run times log-normal with "
        f"median {MEDIAN_MIN} and mean {MEAN_MIN} minutes (figure 1); sizes 8 to 64 GPUs, 24.8 on average, chosen. "
        "Utilisation and GPU memory as in W-Small and W-Large."
    )
    machine = _machine(8, cpu_millicores=128_000, memory_gib=512)
    made = _scenario(f"horus-trace-s{seed}", note, machine, nodes, arrivals)
    if linear:
        made = made.model_copy(
            update={
                "name": f"horus-trace-linear-s{seed}",
                "physics": CURVE.model_copy(update={"curve": LINEAR}),
            }
        )
    return made


def _machine(gpus: int, *, cpu_millicores: int, memory_gib: int) -> Machine:
    return Machine(
        id=f"rtx-2080-{gpus}",
        cpu_millicores=cpu_millicores,
        memory_mib=memory_gib * 1024,
        gpus=(Gpu(model="RTX 2080", memory_mib=GPU_MIB),) * gpus,
        source=f"{PAPER}, 5.1",
    )


def _arrival(name: str, run_time_ms: int, gpus: int, dice: random.Random, node_gpus: int, factors: Factors) -> Arrival:
    percent = dice.randint(*(LIGHT_PERCENT if dice.random() < LIGHT_PART else HEAVY_PERCENT))
    of_full = int(scaled(MEMORY_OF_FULL_MIB, "MEMORY_OF_FULL_MIB", factors))
    memory = MEMORY_MIB + of_full * percent // 100
    memory = max(1, memory + dice.randint(-MEMORY_EITHER_WAY_MIB, MEMORY_EITHER_WAY_MIB))
    demand = Demand(
        gpus=min(gpus, node_gpus),
        gpu_memory_mib=min(memory, GPU_MIB),
        gpu_utilisation_percent=percent,
    )
    workers = -(-gpus // node_gpus)
    option = Option(workers=workers, demand=demand, value=VALUE_PER_GPU * gpus, run_time_ms=run_time_ms)
    return Arrival(job=Job(id=name, options=(option,)))


def _scenario(name: str, note: str, machine: Machine, nodes: int, arrivals: list[Arrival]) -> Scenario:
    return Scenario(
        name=name,
        note=note,
        cluster=equal_nodes(machine, nodes),
        physics=CURVE,
        arrivals=tuple(arrivals),
    )
