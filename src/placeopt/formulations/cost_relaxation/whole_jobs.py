"""The bound made sharper: what whole jobs cost at given prices, where their bundles lie as they must."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from placeopt.formulations.cost_relaxation.bundle_groups import BundleGroup
from placeopt.formulations.cost_relaxation.cost_lower_bounds import FAR, CostLowerBounds, OnNodes, per_domain
from placeopt.formulations.cost_relaxation.model import CostRelaxation
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import IntArray, Problem

MOST_BUNDLES = 128
"""Bundles of a job up to which it is looked at as a whole; larger ones stay flows."""
MOST_PRICE = 2.0**50
"""Prices beyond this are no suggestion, but an accident."""


@dataclass(frozen=True, eq=False)
class WholeJobs:
    """
    What whole jobs cost at given prices.

    Attributes
    ----------
    model, multipliers
        Their certificate (``solvers/certify.py``) is a bound on the cost, though no plan is a solution of the model.
    dearer
        The relaxation with jobs that cost so much more as whole jobs do than their flows: its duals are better prices.
    """

    model: LinearModel
    multipliers: NDArray[np.float64]
    dearer: LinearModel


def with_whole_jobs(flows: CostRelaxation, duals: NDArray[np.float64], deadline: float = float("inf")) -> WholeJobs:
    """
    Price whole jobs instead of their flows.

    Parameters
    ----------
    flows
        The relaxation.
    duals
        Shape (m,), of its rows, as its solver states them; they are rounded to integers.
    deadline
        Of ``time.monotonic()``.

    Raises
    ------
    OutOfTime
        At the deadline.

    Notes
    -----
    Flows let a gang of 16 lie in parts of 7, 7 and 2 at the price of sixteen sevenths of a part of 7. At given prices
    of all rows but those that tie the bundles of a kind to its jobs, jobs have nothing to do with each other, and what
    the cheapest one of a kind costs is found by dynamic programming: over the nodes of a domain, for every number of
    bundles, then over domains. Divided by its bundles and rounded down that is a lawful price for the kind's row, once
    its flows are fixed to 0, for each of its jobs pays as much or more wherever it is. Any prices prove something. What
    jobs cost beyond what they are worth follows: duals of a solver leave it open for kinds of which no job is chosen.
    """
    model, clock = flows.model, ModelBuilder(deadline)
    prices = np.rint(np.where(np.abs(duals) < MOST_PRICE, duals, 0.0)).astype(np.int64)
    prices[(prices > 0) & (model.row_lower == NO_LOWER)] = 0  # the certificate leaves them out, so nobody pays them
    prices[(prices < 0) & (model.row_upper == NO_UPPER)] = 0
    paid = np.zeros(model.num_variables, dtype=np.int64)
    np.add.at(paid, model.columns, -model.coefficients * prices[model.row_of_nonzero])
    upper, dearer = model.upper.copy(), model.objective.copy()
    fares, place = CostLowerBounds(flows.grounds), flows.grounds.place
    for stream in flows.streams:
        kind = stream.kind
        if not len(stream.columns):
            continue
        rent = np.full(flows.grounds.count + 1, FAR, dtype=np.int64)  # the last is of nodes without a class
        rent[stream.place] = paid[stream.columns] + prices[stream.row]
        flowing = int((model.objective[stream.columns] + rent[stream.place]).min())
        prices[stream.row] = flowing
        if kind.weight == 0 or not 1 < kind.bundles <= MOST_BUNDLES:
            continue
        clock.check_time()
        least = _cheapest(flows, kind, fares.on_nodes(kind), rent[place])
        if least < FAR:
            dearer[stream.jobs] += max(least - flowing * kind.bundles, 0)
            upper[stream.columns] = 0
            prices[stream.row] = least // kind.bundles
    return WholeJobs(replace(model, upper=upper), prices.astype(np.float64), replace(model, objective=dearer))


def _cheapest(flows: CostRelaxation, kind: BundleGroup, on: OnNodes, rent: IntArray) -> int:
    """What a job of the kind costs at least, rents (N,) of its bundles included; ``FAR`` where it finds no room."""
    problem = flows.grounds.problem
    scale = kind.weight * flows.path_price
    able = np.flatnonzero((on.room > 0) & (rent < FAR))
    if not len(able):
        return FAR
    j = np.arange(on.path.shape[1])
    inside = np.where(on.path[able] < FAR, scale * (on.path[able] + on.higher[able][:, None] * j), FAR)
    cost = np.where(inside < FAR, inside + rent[able][:, None] * j, FAR)
    own = flows.grounds.own
    parts = _parts(problem, able, cost, kind, scale, own)
    for split in kind.splits:
        if len(kind.splits) > 1 or not np.array_equal(problem.split_domain[split.level], own):
            break
        fewest, most = per_domain(kind, split, int(problem.options.bundle_workers[kind.option]))
        if fewest == most:  # all parts are alike
            return min(split.domains * int(parts[most]), FAR)
    return _dealt(parts)


def _parts(problem: Problem, nodes: IntArray, cost: IntArray, kind: BundleGroup, scale: int, own: IntArray) -> IntArray:
    """Shape (bundles + 1,): what so many bundles cost in the ``own`` domain that is cheapest; ``FAR``: in none."""
    topology, bundles = problem.topology, kind.bundles
    apart = len(topology.domain_parent) + np.arange(problem.num_nodes)  # a node without a domain is one by itself
    domain = np.where(own[nodes] >= 0, own[nodes], apart[nodes])
    order = np.lexsort((*cost.T, domain))
    domain, cost = domain[order], cost[order]
    names, start, row = np.unique(domain, return_index=True, return_inverse=True)
    turn = np.arange(len(row)) - start[row]
    table = np.full((len(names), int(turn.max()) + 1, cost.shape[1]), FAR, dtype=np.int64)
    table[:, :, 0] = 0
    table[row, turn] = cost
    edge = np.append(topology.domain_uplink, np.zeros(problem.num_nodes, dtype=np.int64))[names]
    k = kind.gpus * np.arange(bundles + 1)
    keys = np.column_stack((edge, table.reshape(len(names), -1)))  # domains of equal nodes need to be looked at once
    unlike = np.unique(keys, axis=0, return_index=True)[1]
    table, edge = table[unlike], edge[unlike]
    best = np.full((len(table), bundles + 1), FAR, dtype=np.int64)
    best[:, 0] = 0
    for p in range(table.shape[1]):
        with_it = best.copy()
        for j in range(1, min(table.shape[2] - 1, bundles) + 1):
            with_it[:, j:] = np.minimum(with_it[:, j:], best[:, :-j] + table[:, p, j][:, None])
        best = np.minimum(with_it, FAR)
    crossed = best + scale * edge[:, None] * (k * (k[-1] - k))
    least: IntArray = np.where(best < FAR, crossed, FAR).min(axis=0)
    return np.minimum(least, FAR)


def _dealt(parts: IntArray) -> int:
    """Return the least sum of ``parts`` over all ways to deal the bundles out to domains."""
    cost = np.full(len(parts), FAR, dtype=np.int64)
    cost[0] = 0
    for b in range(1, len(parts)):
        cost[b] = min(FAR, int((cost[b - 1 :: -1] + parts[1 : b + 1]).min()))
    return int(cost[-1])
