"""What stage ``node-patterns`` charges jobs for their cost, so that among jobs of equal worth the cheaper ones run."""

from __future__ import annotations

import numpy as np

from placeopt.formulations.node_patterns import MergedBundles
from placeopt.formulations.node_patterns.groups import CHARGES
from placeopt.problem import IntArray
from placeopt.solving.context import SolveContext
from placeopt.terms.costs.communication import Communication, close_path, close_path_of_parts
from placeopt.terms.objective import cost_alone, weight_of

SMALL_NODES = 256
"""Nodes up to which charges are small, and no bundles are merged: one job is worth more than ``COST_SHARE`` there."""
COST_SHARE, SMALL_SHARE = 1e-4, 1e-5
"""Part of the value that may be lost for jobs that cost less. At 40 nodes the larger one loses 1 % in rounding."""


def charges_of(context: SolveContext, merged: MergedBundles) -> IntArray | None:
    """
    Return what the mix charges a job for its least cost, shape (O + M,); None where nothing costs.

    In each option, with bundles of gangs on a node each where they may be merged; then in each of ``merged``.
    All jobs of the best plan together, as close as they may be, are charged ``COST_SHARE`` of its value, or
    ``SMALL_SHARE``.
    """
    problem, best = context.problem, context.incumbent
    cost = cost_alone(problem, context.weighted)
    options = [p.option for job, p in enumerate(best.allocation) if p is not None and job not in problem.running]
    total = int(cost[options].sum())
    if not total:
        return None
    gangs, each = np.concatenate([np.unique(merged.option), merged.option]), merged.together
    together = np.concatenate([np.ones(len(gangs) - len(each), dtype=np.int64), each])
    further = close_path_of_parts(problem, gangs, together) - close_path(problem)[gangs]
    cost_apart = cost[gangs] + weight_of(context.weighted, Communication) * further
    cost[gangs[: len(gangs) - len(each)]] = cost_apart[: len(gangs) - len(each)]
    cost = np.concatenate([cost, cost_apart[len(gangs) - len(each) :]])
    share = SMALL_SHARE if problem.num_nodes <= SMALL_NODES else COST_SHARE
    charges: IntArray = np.floor(cost * (share * CHARGES * max(best.value, 0) / total)).astype(np.int64)
    return charges
