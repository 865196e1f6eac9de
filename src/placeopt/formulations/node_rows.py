"""
Rows of the resources of nodes, summed over the nodes of a class: how full it is, how far needs can be packed.

What fits in aggregate to the last core fits no nodes. So the use of a resource beyond ``LOADS[0]`` has columns of its
own, piece by piece, and an objective may ask for room there. To the bound they make no difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import IntArray, Problem, State
from placeopt.problem.free_capacity import waiting_per_class

ALL = 1 << 10
"""Parts of a resource that its use is counted in."""
LOADS = tuple(ALL - left for left in (256, 128, 64, 32, 16, 0))
"""Loads between which the use of a resource has a column of its own: what is left halves from each to the next."""
PRICES = tuple(1 / 4**k for k in range(4, -1, -1))
"""
Of using a resource between these loads, in shares of what so much of it is worth: four times as much where half as
much is left, since bundles made for a fuller class find fewer nodes. Of 15 halves and thirds of openb's lists, 11 come
nearer to their bounds by these than by eight loads and prices measured on the whole lists, and two end farther away.
"""
AMPLE = 1 << 43
"""More of a resource than any node states, and little enough to be summed over all nodes in 64 bits."""
SMALL_NODE = 4
"""GPUs of a node up to which dual feasible functions bound what it takes: on larger ones sums say as much of openb."""
SCARCE = 0.9
"""Of a resource of all nodes: where jobs ask for less, 0.68 on openb, the rows gain nothing and delay first plans."""
DUAL_FEASIBLE = (1, 2, 3, 4, 5)
"""Parameters k of these functions: 1 is about bundles of more than half of a node."""
RANGE = 2.0**23
"""Largest coefficient of the objective with prices: enough for them to count, far from where float tolerances hurt."""


@dataclass(frozen=True, eq=False)
class Loads:
    """Columns that take the use of a resource of a class of nodes beyond ``LOADS[0]``, in parts of all of it."""

    column: IntArray  # (L,)
    piece: IntArray  # (L,) the one between ``LOADS[piece]`` and ``LOADS[piece + 1]``
    node_class: IntArray  # (L,)
    share: np.ndarray  # (L,) of what all classes have of the resource


def add_node_rows(
    builder: ModelBuilder, state: State, option: IntArray, column: IntArray, node_class: IntArray
) -> Loads:
    """
    Add a row a resource and class of nodes: what bundles need is at most what there is.

    ``option``, ``column``, ``node_class``: Shape (P,) each: the columns that count bundles of an option on the nodes of
    a class.
    """
    problem, options = state.problem, state.problem.options
    classes, pieces = int(problem.node_class.max()) + 1, np.diff(LOADS)
    none = np.zeros(0, dtype=np.int64)
    columns, numbers, where, shares = [none], [none], [none], [np.zeros(0)]
    for r in range(options.demand.shape[1]):
        need = (options.demand[:, r] * options.bundle_workers)[option]
        free = np.zeros(classes, dtype=np.int64)
        np.add.at(free, problem.node_class, np.clip(state.node_free[:, r], 0, AMPLE))
        uses = need > 0
        used = np.bincount(node_class[uses], minlength=classes) > 0
        priced = np.flatnonzero(used & (free < AMPLE) & (free >= ALL))
        at, unit = np.repeat(priced, len(pieces)), free // ALL
        most = np.tile(pieces, len(priced))
        load = builder.add_variables(0, most, count=len(most))
        limit = np.where(free >= AMPLE, NO_UPPER, free)
        np.subtract.at(limit, at, unit[at] * most)
        builder.add_parts(NO_LOWER, limit, (node_class[uses], column[uses], need[uses]), (at, load, -unit[at]))
        columns.append(load)
        numbers.append(np.tile(np.arange(len(pieces)), len(priced)))
        where.append(at)
        shares.append(free[at] / max(int(free[priced].sum()), 1))
    return Loads(np.concatenate(columns), np.concatenate(numbers), np.concatenate(where), np.concatenate(shares))


def add_whole_node_rows(
    builder: ModelBuilder, state: State, option: IntArray, column: IntArray, node_class: IntArray
) -> None:
    """
    Add rows for what the other GPU bundles need beside bundles that hold all GPUs of a node; arguments as above.

    No other bundle with GPUs runs on such a node, so of each resource they have what all nodes of the class have, less
    the least that is free on a node whose GPUs are all idle, for every such bundle. Without these rows, jobs of whole
    nodes leave CPU to GPUs that are not there.
    """
    problem, options = state.problem, state.problem.options
    if not problem.shares_bind:
        return
    gpus = (options.gpus * options.bundle_workers)[option]
    on_node = np.diff(problem.node_gpu_start)
    idle = np.bincount(problem.gpu_node[state.gpu_free_milli >= 1000], minlength=problem.num_nodes)
    free = np.clip(state.node_free, 0, AMPLE)
    most = np.zeros(int(problem.node_class.max()) + 1, dtype=np.int64)
    np.maximum.at(most, problem.node_class, on_node)
    needs = (options.demand * options.bundle_workers[:, None])[option]  # (P, R)
    fills = (gpus > 0) & (gpus == most[node_class]) & (options.milli[option] == 1000)
    for c in np.unique(node_class[fills]).tolist():
        nodes = np.flatnonzero(problem.node_class == c)
        hosts = nodes[(on_node[nodes] == most[c]) & (idle[nodes] == most[c])]
        whole, others = np.flatnonzero(fills & (node_class == c)), (node_class == c) & (gpus > 0) & ~fills
        for r in range(free.shape[1]):
            need = needs[:, r]
            least, uses = int(free[hosts, r].min(initial=AMPLE)), np.flatnonzero(others & (need > 0))
            if not len(hosts) or not len(uses) or not 0 < least < AMPLE:
                continue
            columns = np.concatenate((column[uses], column[whole]))
            coefficients = np.concatenate((need[uses], np.full(len(whole), least)))
            builder.add_row(columns, coefficients, NO_LOWER, int(free[nodes, r].sum()))


def add_dual_feasible_rows(
    builder: ModelBuilder, state: State, option: IntArray, column: IntArray, node_class: IntArray
) -> None:
    """
    Add rows for how few bundles of a half, third, ... of a small node's resources fit there; arguments as above.

    Sums over nodes let one and a half jobs of 10 cores run on each node of 16. A dual feasible function u keeps
    ``sum u(x) <= 1`` wherever ``sum x <= 1``, so a node's bundles keep it with x their part of the node, the largest of
    its class: u(x) is floor((k + 1) x) / k, but x itself where (k + 1) x is whole (Fekete and Schepers 2001,
    https://doi.org/10.1007/s101070100243). A row for each k that says more than the sum does of some bundle.
    """
    problem, options = state.problem, state.problem.options
    needs = (options.demand * options.bundle_workers[:, None])[option]  # (P, R)
    free = np.clip(state.node_free, 0, AMPLE)
    gpus = np.diff(problem.node_gpu_start)
    classes, first = problem.first_options
    jobs = waiting_per_class(state)[classes] * options.workers[first]
    scarce = jobs @ options.demand[first] >= SCARCE * free.sum(axis=0)
    for c in np.unique(node_class).tolist() if scarce.any() else ():
        nodes, here = np.flatnonzero(problem.node_class == c), np.flatnonzero(node_class == c)
        if int(gpus[nodes].max()) > SMALL_NODE:
            continue
        for r in range(free.shape[1]):
            whole, need = int(free[nodes, r].max()), needs[here, r]
            if not scarce[r] or not 0 < whole < AMPLE or not need.any():
                continue
            at_most = int((free[nodes, r] > 0).sum())
            for k in DUAL_FEASIBLE:
                parts, rest = np.divmod((k + 1) * need, whole)
                taken = np.where(rest == 0, k * need, parts * whole)  # u, times k and the node
                if (taken > k * need).any():
                    uses = np.flatnonzero(taken)
                    builder.add_row(column[here[uses]], taken[uses], NO_LOWER, at_most * k * whole)


def price_full_nodes(model: LinearModel, loads: Loads, problem: Problem) -> IntArray:
    """Return the objective of the model less a price for classes of nodes that are full; it means nothing else."""
    total = float(np.maximum(model.objective * model.upper, 0).sum())
    gpus = np.bincount(problem.node_class[problem.gpu_node], minlength=int(problem.node_class.max()) + 1) / max(
        problem.num_gpus, 1
    )
    worth = np.maximum(gpus[loads.node_class], loads.share) * total / ALL  # of a part of the class
    scale = RANGE / max(float(np.abs(model.objective).max(initial=1)), 1.0)
    objective: IntArray = np.rint(model.objective * scale).astype(np.int64)
    price = np.array(PRICES)[loads.piece] * worth * scale
    objective[loads.column] -= np.maximum(np.rint(price), 1).astype(np.int64)
    return objective
