"""
Cost relaxation as a linear model: jobs chosen, bundles of bundle groups to classes of nodes, GPUs that become busy.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.cost_relaxation.cost_lower_bounds import (
    BundleGroup,
    BundleGroups,
    CostLowerBounds,
    make_bundle_groups,
)
from placeopt.formulations.cost_relaxation.node_classes import NodeClasses, make_node_classes, used_idle
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import IntArray, Problem, State
from placeopt.terms.costs.communication import Communication
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.costs.interference import Interference
from placeopt.terms.costs.resource import ResourceCost
from placeopt.terms.objective import Weighted, fixed_cost, last_name_first, value, weight_of
from placeopt.terms.protocols import Cost

MOST_COLUMNS = 1 << 16
"""Columns of bundles beyond which the relaxation is no longer a matter of a second."""
OMITTED: dict[type[Cost], str | None] = {
    Communication: None,
    ResourceCost: None,
    Fragmentation: "free GPUs in domains that are idle now",
    Interference: "what jobs that start do to others and to each other",
}
"""What is left out of the costs that are charged; the others are left out as a whole."""


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
    value_rows: tuple[int, ...]  # rows that hold for every set of jobs that is worth enough, wherever these are
    relaxes: tuple[str, ...]


def build_cost_relaxation(
    state: State,
    weighted: tuple[Weighted, ...],
    least: int,
    deadline: float = float("inf"),
    *,
    cut: CapacityCut | None = None,
    most_busy: IntArray | None = None,
) -> CostRelaxation:
    """
    Write the relaxation of the cost level among plans worth ``least`` or more.

    - ``state``: The running jobs, all of which stay, and nothing else.
    - ``least``: Net value.
    - ``cut``: What fillings of nodes have proven of room.
    - ``most_busy``: Shape (N,): GPUs of each node that jobs that start can make busy, at most; None: all that are idle.

    Raises ``Unsupported`` if running jobs may be changed, or the relaxation would be too large.
    """
    problem = state.problem
    if problem.changeable:
        raise Unsupported("the cost relaxation takes rounds in which running jobs stay as they are")
    builder = ModelBuilder(deadline)
    bundle_groups, node_classes = make_bundle_groups(state), make_node_classes(state, builder.check_time)
    chosen = builder.add_variables(0, bundle_groups.jobs)
    _add_choices(builder, problem, bundle_groups, chosen)
    held = value(problem, state.allocation())
    value_rows: tuple[int, ...] = ()
    if least > held:
        worth = problem.options.value[bundle_groups.option]
        value_rows = (builder.add_row(chosen, worth, least - held, NO_UPPER),)
    if cut is not None:
        cut.add_to(builder, chosen, bundle_groups.option)
    path_price = weight_of(weighted, Communication)
    bundles, bundle_columns = _add_bundles(builder, bundle_groups, node_classes, chosen, path_price)
    _add_room(builder, node_classes, bundles)
    busy = _add_busy(builder, node_classes, bundles, weight_of(weighted, Fragmentation), most_busy)
    resource = problem.options.cost_milli[bundle_groups.option] * weight_of(weighted, ResourceCost)
    columns = np.concatenate([chosen, bundles.column, busy.column])
    costs = np.concatenate([resource, bundles.cost, busy.cost])
    builder.set_objective(columns, costs, "min", busy.constant + fixed_cost(state, weighted))
    return CostRelaxation(
        builder.build(),
        bundle_groups.option,
        node_classes,
        bundle_columns,
        path_price,
        value_rows,
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
    builder: ModelBuilder,
    bundle_groups: BundleGroups,
    node_classes: NodeClasses,
    chosen: IntArray,
    path_price: int,
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
            raise Unsupported(f"the cost relaxation would have more than {MOST_COLUMNS} columns of bundles")
        asked = int(bundle_groups.jobs[selected].sum()) * bundle_group.bundles
        column = builder.add_variables(0, asked, count=len(place))
        row = builder.add_parts(0, 0, (0, column, 1), (0, chosen[selected], -bundle_group.bundles))
        bundle_columns.append(BundleColumns(bundle_group, chosen[selected], column, place, int(row[0])))
        alike = (np.full(len(place), number) for number in (bundle_group.gpus, bundle_group.milli))
        parts.append((column, lower_bound.cost[place] * path_price, place, *alike))
    empty = (np.zeros(0, dtype=np.int64),) * len(fields(_Bundles))
    return _Bundles(
        *(np.concatenate(part).astype(np.int64) for part in zip(empty, *parts, strict=True))
    ), bundle_columns


def _add_room(builder: ModelBuilder, node_classes: NodeClasses, b: _Bundles) -> None:
    """GPUs are held once: share, whole GPUs, and of bundles larger than half of a node's idle GPUs one a node."""
    if not node_classes.problem.shares_bind:
        return
    builder.add_rows(b.place, b.column, b.gpus * b.milli, NO_LOWER, node_classes.summed(node_classes.free_milli))
    whole = b.milli == 1000
    builder.add_rows(b.place[whole], b.column[whole], b.gpus[whole], NO_LOWER, node_classes.summed(node_classes.idle))
    large = whole & (2 * b.gpus > node_classes.most_idle[b.place])
    nodes = node_classes.summed(np.ones(node_classes.problem.num_nodes, dtype=np.int64))
    builder.add_rows(b.place[large], b.column[large], 1, NO_LOWER, nodes)


def _add_busy(
    builder: ModelBuilder, node_classes: NodeClasses, b: _Bundles, weight: int, most_busy: IntArray | None
) -> _Busy:
    """
    Free GPUs of used domains are those of now less those that become busy: at most one a GPU of each bundle.

    No more than ``most_busy`` become so on a node.
    """
    state, problem, constant = node_classes.state, node_classes.problem, 0
    columns, costs = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for level, free in zip(problem.levels if weight else (), state.level_free, strict=bool(weight)):
        idle = used_idle(state, level, free)
        constant += level.weight * weight * int(idle.sum())
        most = node_classes.summed(idle if most_busy is None else np.minimum(idle, most_busy))
        place = np.flatnonzero(most)
        column = builder.add_variables(0, most[place])
        here = np.isin(b.place, place)
        bundles = (np.searchsorted(place, b.place[here]), b.column[here], -b.gpus[here])
        builder.add_parts(NO_LOWER, 0, (np.arange(len(place)), column, 1), bundles, count=len(place))
        columns.append(column)
        costs.append(np.full(len(place), -level.weight * weight, dtype=np.int64))
    return _Busy(np.concatenate(columns), np.concatenate(costs), constant)


def _relaxes(problem: Problem, weighted: tuple[Weighted, ...]) -> tuple[str, ...]:
    """Return what the bound leaves out."""
    out = ["which nodes a job's bundles share: each costs what it costs where most of its job find room"]
    out.append("CPU, memory, bandwidths and queues")
    omitted = (OMITTED.get(type(w.cost), f"the cost {w.cost.name!r}") for w in last_name_first(weighted))
    out.extend(what for what in omitted if what is not None)
    if any(communication.edges for communication in problem.class_communication):
        out.append("traffic graphs")
    return tuple(out)


FINENESS = 1000
"""Parts of a unit of value in which a cut is stated."""


@dataclass(frozen=True, eq=False)
class CapacityCut:
    """
    What fillings of nodes say of room, in one row: it knows that CPU is short on one node and GPUs on another.

    The same prices bound the value (`fillings.Master.value_bound`). Added to a relaxation without nodes, the row makes
    plans that are worth nearly as much as that bound as rare as they are.
    """

    pays: IntArray  # (O,) what a job pays in each option, rounded down
    most: int  # what all nodes can be paid, rounded up; both in 1 / FINENESS of a value

    @classmethod
    def of_prices(cls, price: IntArray, best: IntArray, count: IntArray, scale: int) -> CapacityCut:
        """
        Return the cut.

        - ``price``: Shape (O,): what all bundles of a job pay in each option, in 1 / ``scale`` of a value.
        - ``best``: Shape (S,): no filling of a state of nodes pays more, in the same parts.
        - ``count``: Shape (S,): nodes in each state.
        """
        unit = max(scale // FINENESS, 1)
        total = sum(each * nodes for each, nodes in zip(best.tolist(), count.tolist(), strict=True))
        return cls(price // unit, -(-total // unit))

    def add_to(self, builder: ModelBuilder, chosen: IntArray, option: IntArray) -> None:
        """Add the row: ``chosen`` are columns that count the jobs that start in each ``option``."""
        builder.add_row(chosen, self.pays[option], NO_LOWER, self.most)
