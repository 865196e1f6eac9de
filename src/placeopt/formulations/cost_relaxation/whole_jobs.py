"""The bound made sharper: what whole jobs cost at given prices, where their bundles lie as they must."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from placeopt.formulations.cost_relaxation.cost_lower_bounds import (
    FAR,
    BundleGroup,
    CostLowerBounds,
    OnNodes,
    per_domain,
)
from placeopt.formulations.cost_relaxation.model import CostRelaxation
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import IntArray
from placeopt.problem.classes import group_by_key

MOST_BUNDLES = 128
"""Bundles of a job up to which it is looked at as a whole; larger ones stay relaxation."""
MOST_PRICE = 2.0**50
"""Prices beyond this are no suggestion, but an accident."""


@dataclass(frozen=True, eq=False)
class WholeJobs:
    """What whole jobs cost at given prices."""

    model: LinearModel
    multipliers: NDArray[np.float64]
    """
    ``model``, ``multipliers``: Their certificate (``solvers/certify.py``) is a bound on the cost, though no plan is a
    solution of the model.
    """
    raised_costs: LinearModel
    """
    The relaxation with the cost of each job raised by what whole jobs cost beyond it: its duals are better prices.
    """


def with_whole_jobs(
    relaxation: CostRelaxation, duals: NDArray[np.float64], deadline: float = float("inf")
) -> WholeJobs:
    """
    Price whole jobs instead of their relaxation.

    ``duals``: Shape (m,), of its rows, as its solver states them; they are rounded to integers.

    Flows let a gang of 16 lie in parts of 7, 7 and 2 at the price of sixteen sevenths of a part of 7. At given prices
    of all rows but those that tie the bundles of a bundle group to its jobs, jobs have nothing to do with each other,
    and what the cheapest one of a bundle group costs is found by dynamic programming: over the nodes of a domain, for
    every number of bundles, then over domains. Divided by its bundles and rounded down that is a lawful price for the
    bundle group's row, once its columns are fixed to 0, for each of its jobs pays as much or more wherever it is.
    Any prices prove something. What jobs cost beyond what they are worth follows: duals of a solver leave it open for
    bundle groups of which no job is chosen.
    """
    model, clock = relaxation.model, ModelBuilder(deadline)
    prices = np.rint(np.where(np.abs(duals) < MOST_PRICE, duals, 0.0)).astype(np.int64)
    prices[(prices > 0) & (model.row_lower == NO_LOWER)] = 0  # the certificate leaves them out, so they are not charged
    prices[(prices < 0) & (model.row_upper == NO_UPPER)] = 0
    paid = np.zeros(model.num_variables, dtype=np.int64)
    np.add.at(paid, model.columns, -model.coefficients * prices[model.row_of_nonzero])
    upper, raised_costs = model.upper.copy(), model.objective.copy()
    lower_bounds, place = CostLowerBounds(relaxation.node_classes), relaxation.node_classes.place
    for bundle_column in relaxation.bundle_columns:
        bundle_group = bundle_column.bundle_group
        if not len(bundle_column.columns):
            continue
        rent = np.full(relaxation.node_classes.count + 1, FAR, dtype=np.int64)  # the last is of nodes without a class
        rent[bundle_column.place] = paid[bundle_column.columns] + prices[bundle_column.row]
        relaxed_cost = int((model.objective[bundle_column.columns] + rent[bundle_column.place]).min())
        prices[bundle_column.row] = relaxed_cost
        if bundle_group.weight == 0 or not 1 < bundle_group.bundles <= MOST_BUNDLES:
            continue
        clock.check_time()
        least = _least(relaxation, bundle_group, lower_bounds.on_nodes(bundle_group), rent[place])
        if least < FAR:
            raised_costs[bundle_column.jobs] += max(least - relaxed_cost * bundle_group.bundles, 0)
            upper[bundle_column.columns] = 0
            prices[bundle_column.row] = least // bundle_group.bundles
    certificate, raised = replace(model, upper=upper), replace(model, objective=raised_costs)
    return WholeJobs(certificate, prices.astype(np.float64), raised)


def _least(relaxation: CostRelaxation, bundle_group: BundleGroup, on: OnNodes, rent: IntArray) -> int:
    """Return what a job of the bundle group costs at least with rents (N,) of its bundles; ``FAR`` without room."""
    problem, own = relaxation.node_classes.problem, relaxation.node_classes.own
    scale = bundle_group.weight * relaxation.path_price
    able = np.flatnonzero((on.room > 0) & (rent < FAR))
    if not len(able):
        return FAR
    j = np.arange(on.path.shape[1])
    inside = np.where(on.path[able] < FAR, scale * (on.path[able] + on.higher[able][:, None] * j), FAR)
    cost = np.where(inside < FAR, inside + rent[able][:, None] * j, FAR)
    parts = _least_of_parts(relaxation, able, cost, bundle_group)
    for split in bundle_group.splits:
        if len(bundle_group.splits) > 1 or not np.array_equal(problem.split_domain[split.level], own):
            break
        fewest, most = per_domain(bundle_group, split, int(problem.options.bundle_workers[bundle_group.option]))
        if fewest == most:  # all parts are alike
            return min(FAR, int(parts[most]) * split.domains)
    least = np.full(len(parts), FAR, dtype=np.int64)  # of each number of bundles, dealt out to domains
    least[0] = 0
    for b in range(1, len(parts)):
        least[b] = min(FAR, int((least[b - 1 :: -1] + parts[1 : b + 1]).min()))
    return int(least[-1])


def _least_of_parts(relaxation: CostRelaxation, nodes: IntArray, cost: IntArray, bundle_group: BundleGroup) -> IntArray:
    """
    Shape (bundles + 1,): least cost of each number of bundles in one ``own`` domain; ``FAR`` if none takes them.

    ``cost``: Of each number of bundles on each of ``nodes``.
    """
    problem, node_classes = relaxation.node_classes.problem, relaxation.node_classes
    topology, bundles = problem.topology, bundle_group.bundles
    apart = len(topology.domain_parent) + np.arange(problem.num_nodes)  # a node without a domain is one by itself
    domain = np.where(node_classes.own[nodes] >= 0, node_classes.own[nodes], apart[nodes])
    order = np.lexsort((node_classes.place[nodes], domain))  # nodes of a class cost the same, or nearly always
    domain, cost = domain[order], cost[order]
    names, start, row = np.unique(domain, return_index=True, return_inverse=True)
    turn = np.arange(len(row)) - start[row]
    table = np.full((len(names), int(turn.max()) + 1, cost.shape[1]), FAR, dtype=np.int64)
    table[:, :, 0] = 0
    table[row, turn] = cost
    edge = np.append(topology.domain_uplink, np.zeros(problem.num_nodes, dtype=np.int64))[names]
    keys = np.column_stack((edge, table.reshape(len(names), -1)))
    unlike = group_by_key(key.tobytes() for key in keys)[1]  # domains of equal nodes need to be looked at once
    table, edge = table[unlike], edge[unlike]
    best = np.full((len(table), bundles + 1), FAR, dtype=np.int64)
    best[:, 0] = 0
    for p in range(table.shape[1]):
        with_it = best.copy()
        for j in range(1, min(table.shape[2] - 1, bundles) + 1):
            with_it[:, j:] = np.minimum(with_it[:, j:], best[:, :-j] + table[:, p, j][:, None])
        best = np.minimum(with_it, FAR)
    k = bundle_group.gpus * np.arange(bundles + 1)
    scale = bundle_group.weight * relaxation.path_price
    crossed = np.where(best < FAR, best + scale * edge[:, None] * (k * (k[-1] - k)), FAR)
    least: IntArray = np.minimum(crossed.min(axis=0), FAR)
    return least
