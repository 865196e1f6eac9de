"""A scenario with jobs drawn from another one: more jobs of the same kinds, on more nodes."""

from __future__ import annotations

import numpy as np

from placeopt.errors import BadInput
from placeopt.model import Cluster
from placeopt.model.base import MAX_JOBS, MAX_NODES
from placeopt.model.scenario import Scenario


def drawn_anew(scenario: Scenario, *, jobs: int, nodes: int, per_minute: float, seed: int = 0) -> Scenario:
    """
    Return a scenario of jobs drawn with replacement, arriving by a Poisson process, on nodes of the first machine.

    The ``scenario`` is the source of the jobs, each equally likely; it has no running jobs, and no job of it may name
    nodes. ``jobs`` and ``nodes`` are numbers of the result. SC'17 5.3 has 10 arrivals ``per_minute``.
    """
    if scenario.running or not scenario.arrivals or any(arrival.job.nodes_allowed for arrival in scenario.arrivals):
        raise BadInput("scenario: expected jobs, none that runs from the beginning, and none that names nodes")
    if not 1 <= jobs <= MAX_JOBS or not 1 <= nodes <= MAX_NODES or not 0 < per_minute <= 1e6:
        raise BadInput(
            f"jobs, nodes, per_minute: expected 1 to {MAX_JOBS:,}, 1 to {MAX_NODES:,}, and above 0 up to 1,000,000"
        )
    rng = np.random.default_rng(seed)
    kinds = rng.integers(len(scenario.arrivals), size=jobs).tolist()
    moments = np.floor(np.cumsum(rng.exponential(60_000 / per_minute, size=jobs))).astype(np.int64).tolist()
    arrivals = []
    for i, (kind, moment) in enumerate(zip(kinds, moments, strict=True)):
        arrival = scenario.arrivals[kind]
        job = arrival.job.model_copy(update={"id": str(i), "arrival_ms": moment})
        arrivals.append(arrival.model_copy(update={"job": job}))
    first = scenario.cluster.nodes[0]
    width = len(str(nodes - 1))
    cluster = Cluster(
        machines=scenario.cluster.machines,
        nodes=tuple(first.model_copy(update={"id": f"node-{i:0{width}}", "domain": None}) for i in range(nodes)),
    )
    update = {
        "name": f"{scenario.name}-{jobs}x{nodes}-s{seed}",
        "note": f"{jobs} jobs drawn from {scenario.name}, {per_minute:g} a minute, seed {seed}. {scenario.note}",
        "cluster": cluster,
        "arrivals": tuple(arrivals),
    }
    return scenario.model_copy(update=update)
