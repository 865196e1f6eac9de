"""What of a round the local search cannot handle, by name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placeopt.problem import Problem
from placeopt.search.hardware import MOST_GPUS
from placeopt.terms import Weighted
from placeopt.terms.costs.communication import Communication
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.costs.interference import Interference
from placeopt.terms.costs.resource import ResourceCost

COVERED = (Communication, Interference, Fragmentation, ResourceCost)
"""The costs of which the state has exact differences."""
MOST_SUM = 1 << 62
"""Sums of the state are integers of 64 bits, and stay below this."""


def what_is_missing(problem: Problem, weighted: tuple[Weighted, ...]) -> str | None:
    """Return the first thing in a round that the local search cannot handle; None where it handles all."""
    return next(_missing(problem, weighted), None)


def _missing(problem: Problem, weighted: tuple[Weighted, ...]) -> Iterator[str]:
    options, running = problem.options, problem.running
    of_cost = {type(w.cost) for w in weighted}
    yield from (
        f"cost {w.cost.name!r} in form {type(w.cost).__name__}" for w in weighted if type(w.cost) not in COVERED
    )
    if Interference in of_cost and problem.policy.interference.model != "pairwise":
        yield f"interference model {problem.policy.interference.model!r}"
    graphs = np.array([bool(traffic.edges) for traffic in problem.class_communication], dtype=bool)
    if Communication in of_cost and (graphs[options.job_class] & (options.workers > 1)).any():
        yield "traffic graphs between workers"
    if np.diff(problem.node_gpu_start).max(initial=0) > MOST_GPUS:
        yield f"nodes of more than {MOST_GPUS} GPUs"
    if problem.trees:
        yield "jobs that are trees"
    if any(options.spread):
        yield "spread over domains"
    if any(len(splits) > 1 for splits in options.splits):
        yield "several splits of one option"
    if any(options.part_level):
        yield "jobs inside one part of a machine"
    if problem.has_geometry:
        yield "profiles of GPUs"
    if any(relation.weight is None for job in problem.class_member for relation in job.relations):
        yield "relations that have to hold"
    if problem.policy.queues:
        yield "queues"
    if problem.places:
        yield "amounts of domains, of the cluster, or beside holds"
    if problem.policy.postpone.rule == "utility":
        yield "minimal utility"
    if problem.base_load is not None and any(problem.base_load.tenants):
        yield "co-runners that the round does not list"
    if problem.policy.priorities != "price":
        yield "strict priorities"
    held = [options.job_class[placement.option] for placement in running.values()]
    most = problem.most_of_class(options.value)
    if (
        int(most[problem.job_class].sum()) + int(most[held].sum()) + sum(w.weight * w.worst for w in weighted)
        > MOST_SUM
    ):
        yield "sums beyond 2^62"
