"""
The settings of GENIE's evaluation as scenarios: tasks of six models with options by shape, in three classes of users.

What the paper does not give, and what is taken instead, stands in ``papers/README.md``.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

from placeopt import BadInput
from placeopt.generators import equal_nodes
from placeopt.model import Communication, Demand, Gpu, Job, Machine, Option, Part
from placeopt.predict import relative_errors
from placeopt.simulation import Arrival, Estimate, Physics, Scenario
from placeopt.systems.factors import UNCHANGED, Factors, scaled
from placeopt.systems.genie.profiles import lightweight
from placeopt.systems.genie.rate import LEAST_RATE, ProfiledRun, RateModel, fit_rate
from placeopt.systems.genie.step import StepModel, fit_step

PAPER = (
    "Chen et al., Deep Learning Research and Development Platform: Characterizing and Scheduling with QoS Guarantees "
    "on GPU Clusters (GENIE, TPDS 2020)"
)
RECURRENT = ("lstm", "seq2seq")
"""Of model type RNN (table 3), the others of CNN: queues of the scenario."""
BATCHES = {
    "alexnet": (128, 256, 512, 1024),
    "googlenet": (32, 64, 128, 256),
    "resnet-50": (16, 32, 64, 128),
    "inception-v3": (32, 64, 128, 256),
    "lstm": (20, 40, 80, 160),
    "seq2seq": (32, 64, 128, 256),
}
"""Models of table 3 and their global batches, of which each is as likely; the paper does not give any."""
SHAPES = ((1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 4), (4, 1), (4, 2), (4, 4))
"""Nodes and GPUs of each that a task may run on, unless it may in every placement of `placements`."""
GPUS_PER_NODE = 4
TRAINING_H = (0.5, 9.5)
"""Hours that a training task takes on one GPU, uniform: then 20 tasks an hour keep 16 GPUs busy for some 100 hours."""
INFERENCE_SPEED = 3
"""An iteration of inference is a forward pass, about a third of an iteration of training."""
CLASSES = (5, 35, 60)
"""Percent of urgent, prior and normal users (7.1)."""
VALUE = 1000

PHILLY_GPUS = {1: 76_627, 2: 1_818, 4: 1_870, 8: 1_643, 16: 199}
"""GPUs -> jobs that ask for them, of Philly's published trace (Jeon et al., ATC'19), but for 90 of other numbers."""


@cache
def genie_models() -> dict[str, StepModel]:
    """
    Fit rates by placement and batch to ``genie_rates.csv``, whose comment lines state the sources.

    By the time of a step: GENIE's own formula, a loss of the same part at every batch, misses these rates by up to 48 %
    on average (lstm), this one by up to 6.
    """
    return {name: fit_step(name, some, source="genie_rates.csv") for name, some in genie_runs().items()}


@cache
def genie_runs() -> dict[str, list[ProfiledRun]]:
    """Return the published rates on K80 by model."""
    text = files("placeopt.systems.genie").joinpath("rates.csv").read_text(encoding="utf-8")
    runs: dict[str, list[ProfiledRun]] = {}
    for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        run = ProfiledRun(int(row["nodes"]), int(row["gpus"]), int(row["batch"]), float(row["rate"]))
        runs.setdefault(row["model"], []).append(run)
    return runs


@cache
def genie_structures() -> dict[str, dict[str, float]]:
    """Return the published structures of the models, by which an unseen one finds the most similar."""
    text = files("placeopt.systems.genie").joinpath("structures.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {row.pop("model"): {name: float(cell) for name, cell in row.items()} for row in rows}


def formula_error(models: Literal["all", "cnn"], part: Literal["mean", "p95"]) -> float:
    """
    Return the relative error of GENIE's formula (eq. 5 to 8) over all runs of all models, or of CNNs, in percent.

    Each model is fitted to the runs of the lightweight profiling (5.1.5) and compared with all of its runs.
    """
    predicted: list[float] = []
    measured: list[float] = []
    for name, runs in genie_runs().items():
        if models == "all" or name not in RECURRENT:
            model = genie_formulas()[name]
            predicted += [model.rate(run.nodes, run.gpus, run.batch) for run in runs]
            measured += [run.rate for run in runs]
    errors = relative_errors(predicted, measured)
    return 100 * (errors.mean if part == "mean" else errors.p95)


def genie_tasks(
    seed: int,
    *,
    per_hour: float = 10,
    hours: float = 24,
    nodes: int = 4,
    classes: Sequence[int] = CLASSES,
    factors: Factors = UNCHANGED,
    every_placement: bool = False,
    predicted: bool = False,
    requested: bool = False,
) -> Scenario:
    """
    Draw tasks that arrive at random on nodes of 4 K80 (7.1, 7.2, 7.3).

    Parameters
    ----------
    per_hour, hours
        Density and duration of the arrivals.
    nodes
        4 in the paper's cluster; 4 to 32 in its simulation.
    classes
        Percent of urgent, prior and normal users.
    factors
        Factor on ``TRAINING_H``.
    every_placement
        Whether tasks have every placement of algorithm 1, line 3, as an option; else those of ``SHAPES``.
    predicted
        Whether policies see rates and latencies as eq. 4 to 8 predict them, instead of the true ones.
    requested
        Whether the owner of each task asks for one of its shapes, drawn, which then is the most valuable: to schedulers
        for which tasks are black boxes (7.1) it is the only one, by ``choice`` ``valued``.

    Returns
    -------
    Scenario
        Half of the tasks train, half infer. An option a shape; its value is the speed-up over one GPU, its run time
        that of the fitted rate.

    Raises
    ------
    BadInput
        If a number is out of range.
    """
    if not 0 < per_hour <= 10_000 or not 0 < hours <= 1_000 or nodes < 1 or sum(classes) != 100 or min(classes) < 0:
        raise BadInput("per_hour, hours: above 0; nodes: 1 or more; classes: three percentages that sum to 100")
    dice, owners = random.Random(seed), random.Random(f"{seed} owners")
    shapes = placements(nodes) if every_placement else SHAPES
    clock = dice.expovariate(per_hour)
    arrivals: list[Arrival] = []
    while clock < hours or not arrivals:
        model = dice.choice(sorted(BATCHES))
        batch = dice.choice(BATCHES[model])
        trains = dice.random() < 0.5
        alone_h = scaled(dice.uniform(*TRAINING_H), "TRAINING_H", factors)
        alone_s = 3600 * alone_h / (1 if trains else INFERENCE_SPEED)
        priority = dice.choices((2, 1, 0), classes)[0]
        arrival_ms = int(3_600_000 * clock)
        options = task_options(genie_models()[model], batch, alone_s, nodes, trains=trains, shapes=shapes)
        arrivals.append(
            Arrival(
                job=Job(
                    id=f"task-{len(arrivals):04}",
                    kind="training" if trains else "inference",
                    user=model,
                    queue="rnn" if model in RECURRENT else "cnn",
                    profile=model,
                    priority=priority,
                    arrival_ms=arrival_ms,
                    expected_completion_ms=arrival_ms + (2 - priority) * round(1000 * alone_s),  # eq. 9
                    options=with_request(options, owners) if requested else options,
                    communication=Communication(spread_slowdown_thousandths=0),
                ),
                estimates=task_estimates(model, batch, alone_s, nodes, trains=trains) if predicted else (),
            )
        )
        clock += dice.expovariate(per_hour)
    machine = Machine(
        id="k80-4",
        cpu_millicores=20_000,
        memory_mib=64 * 1024,
        parts=(Part(id="socket-0", level="socket"), Part(id="socket-1", level="socket")),
        gpus=tuple(Gpu(model="K80", memory_mib=12 * 1024, part=f"socket-{gpu // 2}") for gpu in range(4)),
        source=f"{PAPER}, table 1",
    )
    mix = "-".join(map(str, classes))
    return Scenario(
        name=f"genie-{per_hour:g}x{hours:g}h-{4 * nodes}gpus-{mix}-s{seed}"
        + "-placements" * every_placement
        + "-requests" * requested,
        note=(
            f"After {PAPER}, 7: {per_hour:g} tasks an hour for {hours:g} h, Poisson, on {nodes} nodes of 4 K80; "
            f"urgent, prior, normal {mix} %; six models, half of the tasks training. Rates: fitted to published "
            "measurements on K80 (genie_rates.csv). On one GPU a training task takes 0.5 to 9.5 h, uniform; inference "
            "a third."
        ),
        cluster=equal_nodes(machine, nodes, digits=2),
        physics=Physics(rule="rate", interference="worst", spread_slowdown_thousandths=0),
        arrivals=tuple(arrivals),
    )


def with_request(options: tuple[Option, ...], owners: random.Random) -> tuple[Option, ...]:
    """
    Return options of which one, drawn, is worth more than all others: the one that the owner asks for.

    GPUs are drawn as jobs of Philly ask for them, on the fewest nodes; the largest shape stands for more.
    """
    gpus = owners.choices(list(PHILLY_GPUS), list(PHILLY_GPUS.values()))[0]
    fitting = [option for option in options if option.workers * option.demand.gpus <= gpus]
    asked = max(fitting, key=lambda option: (option.workers * option.demand.gpus, -option.workers))
    most = max(option.value for option in options)
    return tuple(option.model_copy(update={"value": most + 1}) if option is asked else option for option in options)


def placements(nodes: int) -> tuple[tuple[int, int], ...]:
    """Return all placements: 1 <= d_node <= N nodes and 1 <= d_g/n <= G GPUs of each (5.3; algorithm 1, line 3)."""
    return tuple((n, g) for n in range(1, nodes + 1) for g in range(1, GPUS_PER_NODE + 1))


def task_options(
    model: StepModel,
    batch: int,
    alone_s: float,
    nodes: int,
    *,
    trains: bool,
    shapes: Sequence[tuple[int, int]] = SHAPES,
) -> tuple[Option, ...]:
    """
    Return the shapes in which a task may run, one GPU first.

    ``alone_s``: what it takes on one GPU, which says how many iterations it has.
    """
    speed = 1 if trains else INFERENCE_SPEED
    single = model.rate(1, 1, batch) * speed
    options = []
    for n, g in shapes:
        if n > nodes or n * g > batch:
            continue
        rate = speed * model.rate(n, g, batch, synchronises=trains)
        latency = max(1, round(1000 * alone_s * single / rate))
        options.append(
            Option(
                id=f"{n}x{g}",
                workers=n,
                workers_per_node_max=1,
                demand=Demand(gpus=g),
                value=max(1, round(VALUE * rate / single)),
                run_time_ms=latency,
                latency_ms=latency,
                rate_milli=max(1, round(1000 * rate)),
            )
        )
    return tuple(options)


@cache
def genie_formulas() -> dict[str, RateModel]:
    """Return GENIE's formula of each model, fitted to the runs of its lightweight profiling (5.1.5)."""
    return {name: fit_rate(name, lightweight(runs), source="genie_rates.csv") for name, runs in genie_runs().items()}


def task_estimates(name: str, batch: int, alone_s: float, nodes: int, *, trains: bool) -> tuple[Estimate, ...]:
    """Return rate and latency that eq. 4 to 8 predict for every shape of a task, in the order of `task_options`."""
    speed, formula, truth = 1 if trains else INFERENCE_SPEED, genie_formulas()[name], genie_models()[name]
    if not trains:
        formula = formula.model_copy(update={"across": 0.0, "inside": 0.0})
    samples = alone_s * speed * truth.rate(1, 1, batch)
    estimates = []
    for n, g in SHAPES:
        if n > nodes or n * g > batch:
            continue
        rate = max(LEAST_RATE, speed * formula.rate(n, g, batch))
        latency = max(1, round(1000 * samples / rate))
        estimates.append(Estimate(run_time_ms=latency, latency_ms=latency, rate_milli=round(1000 * rate)))
    return tuple(estimates)
