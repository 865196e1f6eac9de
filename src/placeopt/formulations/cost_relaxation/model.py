"""
Cost relaxation as a linear model: jobs chosen, bundles of bundle groups to classes of nodes, GPUs that become busy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.cost_relaxation.bundle_groups import BundleGroup, BundleGroups, make_bundle_groups
from placeopt.formulations.cost_relaxation.cost_lower_bounds import CostLowerBounds
from placeopt.formulations.cost_relaxation.node_classes import NodeClasses, make_node_classes, used_idle
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import IntArray, Problem, State
from placeopt.terms.costs.communication import Communication
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.costs.resource import ResourceCost
from placeopt.terms.objective import Weighted, last_name_first, value, weight_of

MOST_COLUMNS = 60_000
"""Columns of bundles beyond which the relaxation is no longer a matter of a second."""


@dataclass(frozen=True, eq=False)
class BundleColumns:
    """
    Bundles of one bundle group: its jobs' columns, theirs, the class of nodes of each, and the row that ties them.
    """

    bundle_group: BundleGroup
    jobs: IntArray
    columns: IntArray
    place: IntArray
    row: int


@dataclass(frozen=True, eq=False)
class CostRelaxation:
    """The relaxation, and what its columns mean."""

    model: LinearModel
    option: IntArray  # (Y,) option of each of the first Y columns, which count jobs
    node_classes: NodeClasses
    bundle_columns: list[BundleColumns]
    path_price: int  # cost of a unit of weighted path
    capacity_rows: tuple[IntArray, IntArray, IntArray]  # rows by class of nodes: GPU share, whole GPUs, large bundles
    relaxes: tuple[str, ...]


def build_cost_relaxation(
    state: State, weighted: tuple[Weighted, ...], least: int, deadline: float = float("inf")
) -> CostRelaxation:
    """
    Write the relaxation of the cost level among plans worth ``least`` or more.

    Parameters
    ----------
    state
        The running jobs, all of which stay, and nothing else.
    weighted
        The costs that count.
    least
        Net value.
    deadline
        Of ``time.monotonic()``.

    Raises
    ------
    Unsupported
        If running jobs may be changed, or the relaxation would be too large.
    OutOfTime
        At the deadline.
    """
    problem = state.problem
    if problem.changeable:
        raise Unsupported("flows take rounds in which running jobs stay as they are")
    builder = ModelBuilder(deadline)
    bundle_groups, node_classes = make_bundle_groups(state), make_node_classes(state, builder.check_time)
    chosen = builder.add_variables(np.zeros(len(bundle_groups.option), dtype=np.int64), bundle_groups.jobs)
    _add_choices(builder, problem, bundle_groups, chosen)
    held = value(problem, state.allocation())
    if least > held:
        row = np.zeros(len(chosen), dtype=np.int64)
        builder.add_rows(row, chosen, problem.options.value[bundle_groups.option], np.array([least - held]), NO_UPPER)
    path_price = weight_of(weighted, Communication)
    bundles, bundle_columns = _add_bundles(builder, bundle_groups, node_classes, chosen, path_price)
    capacity_rows = _add_room(builder, node_classes, bundles)
    busy = _add_busy(builder, node_classes, bundles, weight_of(weighted, Fragmentation))
    resource = problem.options.cost_milli[bundle_groups.option] * weight_of(weighted, ResourceCost)
    columns = np.concatenate([chosen, bundles.column, busy.column])
    costs = np.concatenate([resource, bundles.cost, busy.cost])
    builder.set_objective(columns, costs, "min", busy.constant + _fixed(state, weighted))
    return CostRelaxation(
        builder.build(),
        bundle_groups.option,
        node_classes,
        bundle_columns,
        path_price,
        capacity_rows,
        _relaxes(problem, weighted),
    )


@dataclass(frozen=True, eq=False)
class _Bundles:
    """B columns, each bundles of one bundle group on one class of nodes."""

    column: IntArray
    cost: IntArray
    place: IntArray  # class of nodes
    gpus: IntArray  # of one bundle
    milli: IntArray  # of each GPU


@dataclass(frozen=True, eq=False)
class _Busy:
    """Columns of GPUs that become busy in used domains, with what that saves, and the cost if none did."""

    column: IntArray
    cost: IntArray
    constant: int


def _add_choices(builder: ModelBuilder, problem: Problem, bundle_groups: BundleGroups, chosen: IntArray) -> None:
    """A job runs in one option at most."""
    _, row, counts = np.unique(problem.options.job_class[bundle_groups.option], return_inverse=True, return_counts=True)
    several = np.flatnonzero(counts[row] > 1)
    if len(several):
        rows, first = np.unique(row[several], return_index=True)
        builder.add_rows(
            np.searchsorted(rows, row[several]), chosen[several], 1, NO_LOWER, bundle_groups.jobs[several[first]]
        )


def _add_bundles(
    builder: ModelBuilder, bundle_groups: BundleGroups, node_classes: NodeClasses, chosen: IntArray, path_price: int
) -> tuple[_Bundles, list[BundleColumns]]:
    """Every bundle of a chosen job goes to some class of nodes with room for it."""
    lower_bounds, size = CostLowerBounds(node_classes), 0
    parts: list[tuple[IntArray, ...]] = []
    bundle_columns: list[BundleColumns] = []
    for q, bundle_group in enumerate(bundle_groups.bundle_groups):
        builder.check_time()
        lower_bound, selected = lower_bounds.of(bundle_group), np.flatnonzero(bundle_groups.bundle_group == q)
        place = np.flatnonzero(lower_bound.open)
        size += len(place)
        if size > MOST_COLUMNS:
            raise Unsupported(f"flows would have more than {MOST_COLUMNS} columns of bundles")
        asked = int(bundle_groups.jobs[selected].sum()) * bundle_group.bundles
        column = builder.add_variables(np.zeros(len(place), np.int64), np.full(len(place), asked))
        row = builder.add_rows(
            np.zeros(len(column) + len(selected), dtype=np.int64),
            np.concatenate([column, chosen[selected]]),
            np.concatenate([np.ones(len(column), np.int64), np.full(len(selected), -bundle_group.bundles, np.int64)]),
            np.zeros(1, dtype=np.int64),
            0,
        )
        bundle_columns.append(BundleColumns(bundle_group, chosen[selected], column, place, int(row[0])))
        cost = lower_bound.cost[place] * path_price
        parts.append(
            (column, cost, place, np.full(len(place), bundle_group.gpus), np.full(len(place), bundle_group.milli))
        )
    empty = (np.zeros(0, dtype=np.int64),) * 5
    return _Bundles(
        *(np.concatenate(part).astype(np.int64) for part in zip(empty, *parts, strict=True))
    ), bundle_columns


def _add_room(builder: ModelBuilder, node_classes: NodeClasses, b: _Bundles) -> tuple[IntArray, IntArray, IntArray]:
    """
    GPUs are held once: share, whole GPUs, and of bundles larger than half of a node's idle GPUs one a node.

    Returns the rows by class of nodes; none where shares do not bind.
    """
    none = np.zeros(0, dtype=np.int64)
    if not node_classes.problem.shares_bind:
        return none, none, none
    share = builder.add_rows(
        b.place, b.column, b.gpus * b.milli, NO_LOWER, node_classes.summed(node_classes.free_milli)
    )
    whole = b.milli == 1000
    gpus = builder.add_rows(
        b.place[whole], b.column[whole], b.gpus[whole], NO_LOWER, node_classes.summed(node_classes.idle)
    )
    large = whole & (2 * b.gpus > node_classes.most_idle[b.place])
    nodes = node_classes.summed(np.ones(node_classes.problem.num_nodes, dtype=np.int64))
    return share, gpus, builder.add_rows(b.place[large], b.column[large], 1, NO_LOWER, nodes)


def _add_busy(builder: ModelBuilder, node_classes: NodeClasses, b: _Bundles, weight: int) -> _Busy:
    """Free GPUs of used domains are those of now less those that become busy: at most one a GPU of each bundle."""
    state, problem, constant = node_classes.state, node_classes.problem, 0
    columns, costs = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for level, free in zip(problem.levels if weight else (), state.level_free, strict=bool(weight)):
        idle = used_idle(state, level, free)
        constant += level.weight * weight * int(idle.sum())
        most = node_classes.summed(idle)
        place = np.flatnonzero(most)
        column = builder.add_variables(np.zeros(len(place), dtype=np.int64), most[place])
        here = np.isin(b.place, place)
        builder.add_rows(
            np.concatenate([np.arange(len(place)), np.searchsorted(place, b.place[here])]),
            np.concatenate([column, b.column[here]]),
            np.concatenate([np.ones(len(place), dtype=np.int64), -b.gpus[here]]),
            NO_LOWER,
            np.zeros(len(place), dtype=np.int64),
        )
        columns.append(column)
        costs.append(np.full(len(place), -level.weight * weight, dtype=np.int64))
    return _Busy(np.concatenate(columns), np.concatenate(costs), constant)


def _fixed(state: State, weighted: tuple[Weighted, ...]) -> int:
    """Return the cost of the running jobs where they are, of terms that starts never lower."""
    allocation = state.allocation()
    return sum(w.weight * w.cost.score(state.problem, allocation) for w in weighted if w.cost.never_lowered_by_starts)


def _relaxes(problem: Problem, weighted: tuple[Weighted, ...]) -> tuple[str, ...]:
    """Return what the bound leaves out."""
    out = ["which nodes a job's bundles share: each costs what it costs where most of its job find room"]
    out.append("CPU, memory, bandwidths and queues")
    omitted = (w.cost.omitted_by_cost_relaxation(problem) for w in last_name_first(weighted))
    out.extend(text for text in omitted if text is not None)
    if any(communication.edges for communication in problem.class_communication):
        out.append("traffic graphs")
    return tuple(out)
