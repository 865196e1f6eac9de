"""
Utilisation as Horus's regressor predicts it, for scenarios of the paper: what policies then see of the same jobs.

Horus predicts GPU utilisation from features of a network's graph. No measurement of utilisation is public, so the
utilisation of a network is modelled here, by its operators' work on the paper's GPU; the regressor sees the features of
table 3 alone, and is fitted to other
networks than it predicts.
"""

from __future__ import annotations

import math
import random
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Literal

from placeopt import Unsupported
from placeopt.simulation import Arrival, Estimate, Scenario
from placeopt.systems.horus.networks import Graph, networks
from placeopt.systems.horus.onnx_file import onnx_features
from placeopt.systems.horus.regressor import fit_regressor
from placeopt.systems.horus.scenarios import horus_testbed

BATCHES = (8, 32, 128)
FLOPS_PER_S, BYTES_PER_S = 10.1e12, 448e9
"""Peaks of the RTX 2080 in single precision, by its maker."""
REACHED = 0.5
"""Part of a peak that operators reach. Ours, as all that follows."""
PASSES = 3
"""Forward, and backward by activations and by weights."""
LAUNCH_S, STEP_S, PIXEL_S = 8e-6, 3e-3, 1e-8
"""Of the host: to launch an operator, beside the GPU; a step, and an element of a sample, while the GPU waits."""
NOISE = 0.05
"""Standard deviation of the logarithm of a measurement."""
FOLDS, NEAREST = 5, 8
TARGET = "gpu_utilisation_percent"


Kind = Literal["linear", "forest", "boosting"]
"""Of regressors, as `REGRESSORS` lists them."""
Unseen = Literal["configuration", "family"]
"""What the regressor has not seen of what it predicts: that depth, size and batch, or any network of its family."""


@dataclass(frozen=True)
class HeldOut:
    """The utilisation of a network with a batch, and what a regressor predicts that did not see it."""

    name: str
    percent: float
    predicted: float


def modelled_percent(graph: Graph) -> float:
    """Return the part of a training step in which the GPU computes, in percent."""
    gpu_s = PASSES * sum(max(w.flops / (REACHED * FLOPS_PER_S), w.bytes / (REACHED * BYTES_PER_S)) for w in graph.work)
    launch_s = PASSES * LAUNCH_S * len(graph.work)
    samples = sum(math.prod(x.shape) for x in graph.inputs)
    return 100 * gpu_s / (max(gpu_s, launch_s) + STEP_S + PIXEL_S * samples)


@cache
def _measured() -> tuple[tuple[str, str, dict[str, float]], ...]:
    """Return family, name, and features with the measured utilisation, of every network and batch."""
    dice = random.Random(0)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        for network in networks():
            for batch in BATCHES:
                graph = network.graph(batch)
                graph.save(path)
                measured = min(100.0, modelled_percent(graph) * math.exp(dice.gauss(0, NOISE)))
                features = onnx_features(path, batch=batch) | {TARGET: measured}
                rows.append((network.family, f"{network.name} x {batch}", features))
    return tuple(rows)


@cache
def held_out(kind: Kind = "boosting", unseen: Unseen = "configuration") -> tuple[HeldOut, ...]:
    """Return every network and batch with its prediction by a regressor that was fitted to others (Horus 4.1.1)."""
    measured = _measured()
    order = random.Random(1).sample(range(len(measured)), len(measured))
    part = {row: place % FOLDS for place, row in enumerate(order)}
    group = [family if unseen == "family" else part[i] for i, (family, _, _) in enumerate(measured)]
    predicted = [0.0] * len(measured)
    for one in dict.fromkeys(group):
        left = [i for i, mine in enumerate(group) if mine == one]
        others = [measured[i][2] for i, mine in enumerate(group) if mine != one]
        model = fit_regressor(kind, others, TARGET, source="networks.py")
        for i, percent in zip(left, model.predict([measured[i][2] for i in left]), strict=True):
            predicted[i] = float(percent)
    return tuple(HeldOut(name, row[TARGET], p) for (_, name, row), p in zip(measured, predicted, strict=True))


def with_regressor(scenario: Scenario, unseen: Unseen = "configuration", kind: Kind = "boosting") -> Scenario:
    """
    Return a scenario in which policies see the utilisation that a regressor predicts.

    A job is taken for a network of about its utilisation, one of the ``NEAREST`` by turns, and its estimate is off as
    the prediction of that network is.
    """
    found = sorted(held_out(kind, unseen), key=lambda one: one.percent)
    turns = count()

    def believed(percent: int) -> int:
        nearest = sorted(found, key=lambda one: abs(one.percent - percent))[:NEAREST]
        one = nearest[next(turns) % NEAREST]
        return min(100, max(1, round(percent * one.predicted / one.percent)))

    def predicted(arrival: Arrival) -> Arrival:
        options = arrival.job.options
        percents = (option.demand.gpu_utilisation_percent for option in options)
        return arrival.model_copy(
            update={"estimates": tuple(Estimate(gpu_utilisation_percent=believed(percent)) for percent in percents)}
        )

    return scenario.model_copy(update={"arrivals": tuple(map(predicted, scenario.arrivals))})


def predicted_testbed(seed: int, workload: str) -> Scenario:
    """Return Horus's testbed with the utilisation that a regressor predicts; needs the extra predict."""
    if missing := [name for name in ("onnx", "sklearn") if find_spec(name) is None]:
        raise Unsupported(f"{', '.join(missing)}: not installed; pip install 'placeopt[predict]'")
    return with_regressor(horus_testbed(seed, workload))
