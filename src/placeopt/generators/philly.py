"""Philly's arrivals on an assumed cluster, as a scenario to simulate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta

import numpy as np

from placeopt.errors import BadArgument, BadInput
from placeopt.formats.traces import PhillyJob
from placeopt.generators.assumed_interference import Assumed, assumed_kind, assumed_slowdowns
from placeopt.generators.job_kinds import PROFILES
from placeopt.generators.shared import equal_nodes
from placeopt.generators.sia import RESTART_MS, VALUE_PER_GPU
from placeopt.model import Demand, Job, Option
from placeopt.model.base import MAX_MS, MAX_NODES
from placeopt.model.scenario import Arrival, Physics, Scenario
from placeopt.topology.builders import pcie_box

MAX_DAYS = 100_000


def philly_scenario(
    jobs: Sequence[PhillyJob],
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
    for name, value, low, high in (
        ("from_day", from_day, 0, MAX_DAYS),
        ("days", 1 if days is None else days, 1, MAX_DAYS),
        ("load", load, 0.001, 10),
        ("prediction_error", prediction_error, 0, 5),
    ):
        if not low <= value <= high:
            raise BadArgument(f"{name}: {value}, expected {low} to {high:,}")
    if node_gpus < 2:
        raise BadArgument(f"node_gpus: {node_gpus}, expected 2 or more")
    begin = min((job.submitted for job in jobs), default=None)
    if begin is None:
        raise BadInput("jobs: none")
    try:
        begin += timedelta(days=from_day)
        end = None if days is None else begin + timedelta(days=days)
    except OverflowError:
        raise BadInput("from_day, days: the window ends after the year 9999") from None
    chosen = [job for job in jobs if job.submitted >= begin and (end is None or job.submitted < end)]
    if len(chosen) < 2:
        raise BadInput(f"from_day, days: {len(chosen)} jobs were submitted in that window; expected 2 or more")
    first = chosen[0].submitted
    span_ms = max(1, _ms(chosen[-1].submitted - first))
    if span_ms > MAX_MS:
        raise BadInput(
            f"from_day, days: submissions over {span_ms // 86_400_000:,} days, expected fewer; name a window"
        )
    asked_ms = sum(job.gpus * max(1, job.duration_ms) for job in chosen)
    nodes = max(math.ceil(asked_ms / span_ms / load / node_gpus), *(-(-job.gpus // node_gpus) for job in chosen))
    if nodes > MAX_NODES:
        raise BadInput(
            f"load: {load:g} takes {nodes:,} nodes, at most {MAX_NODES:,}; take a longer window, or more load"
        )
    rng = np.random.default_rng(seed)
    kinds = rng.integers(len(PROFILES), size=len(chosen))
    factors = np.exp(rng.normal(0.0, 1.0, size=len(chosen)) * prediction_error)
    machine = pcie_box(node_gpus, gpu_model="P100")
    options: dict[tuple[int, int], Option] = {}
    arrivals = []
    for job, kind, factor in zip(chosen, kinds.tolist(), factors.tolist(), strict=True):
        actual = max(1, job.duration_ms)
        profile, communication = assumed_kind(interference, kind, job.gpus)
        arrivals.append(
            Arrival(
                job=Job(
                    id=f"philly-{job.line}",
                    user=job.virtual_cluster,
                    arrival_ms=_ms(job.submitted - first),
                    options=(_option(job.gpus, node_gpus, max(1, round(actual * factor)), options),),
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


def _ms(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)
