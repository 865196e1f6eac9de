"""The master: which column each room or node takes, such that the jobs chosen are placed and their value is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placeopt.formulations.branch_and_price.cross_group_jobs import CrossGroupPatterns
from placeopt.formulations.branch_and_price.gpu_groups import GpuGroups
from placeopt.formulations.branch_and_price.pricing import Column, DualPrices
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import Allocation, IntArray
from placeopt.problem.free_capacity import waiting_per_class
from placeopt.terms.costs.resource import ResourceCost
from placeopt.terms.objective import Weighted, cost, value, weight_of
from placeopt.terms.rules.queue_share import add_queue_limits

BranchLimits = dict[int, tuple[int, int]]
"""Number of a count (`ColumnMaster.counts`) -> least and most."""


@dataclass(frozen=True, eq=False)
class MasterModel:
    """Where columns and rows of a model are."""

    model: LinearModel
    column: IntArray  # (columns,)
    option: IntArray  # (options,)
    node: IntArray  # (N',) used nodes of each group
    wide: IntArray  # (wider domains,) whether each is opened
    extra: IntArray  # artificial ones of the relaxation
    bundle_group_row: IntArray  # (K,)
    group_row: IntArray  # (A,)
    link_row: IntArray  # (A,) -1 where opening the node costs nothing
    count_row: IntArray  # (counts,)
    wider_row: IntArray  # (wider domains,)
    scarce_row: IntArray  # (scarce,)


class ColumnMaster:
    """
    Rows and columns of a round at the cost level, at a given value.

    ``counts`` are sums of columns that are integers in every plan, worth branching on: first the nodes used of each
    group that is idle (``("node", group)``), then the idle GPU groups of each GPU group that are opened (``("room", GPU
    group)``).
    """

    def __init__(
        self, gpu_groups: GpuGroups, patterns: CrossGroupPatterns, weighted: tuple[Weighted, ...], value_level: int
    ) -> None:
        self.gpu_groups, self.patterns = gpu_groups, patterns
        bundle_groups, problem, state = gpu_groups.bundle_groups, gpu_groups.problem, gpu_groups.state
        self.options = np.flatnonzero(bundle_groups.option_bundle_group >= 0)
        self.waiting = waiting_per_class(state)
        self.base = cost(problem, state.allocation(), weighted)
        self.value_left = value_level - value(problem, state.allocation())
        # one row more than there are node_groups, for GPU groups that node_groups share
        self.size = np.array([len(group.nodes) for group in gpu_groups.node_groups] + [0], dtype=np.int64)
        self.opening = np.array([group.opening for group in gpu_groups.node_groups] + [0], dtype=np.int64)
        self.holds = np.zeros(
            (len(self.size), len(gpu_groups.open_groups)), dtype=np.int64
        )  # GPU groups of each GPU group on a node
        for g, group in enumerate(gpu_groups.node_groups):
            np.add.at(self.holds[g], group.room, 1)
        self.wider = sorted(gpu_groups.wider)
        self.scarce = [(g, r) for g, group in enumerate(gpu_groups.node_groups) for r in group.binding]
        self.counts: list[tuple[str, int]] = [("node", int(g)) for g in np.flatnonzero(self.opening)]
        self.counts += [("room", int(a)) for a in np.flatnonzero(gpu_groups.open_groups.opening)]
        self._under = np.array(
            [[domain in group.wider for domain in self.wider] for group in gpu_groups.node_groups]
            + [[False] * len(self.wider)],
            dtype=bool,
        ).reshape(len(self.size), len(self.wider))

    @property
    def leaves_out(self) -> tuple[str, ...]:
        """What the model does not charge, in words; empty where its optimum is that of the round."""
        bundle_groups, domains = self.gpu_groups.bundle_groups, self.gpu_groups.problem.topology.domain_uplink
        gangs = bool((bundle_groups.traffic * (bundle_groups.total - bundle_groups.gpus)).any())
        return ("paths of gangs between domains of nodes",) if gangs and len(domains) > 1 else ()

    def uses(self, columns: Sequence[Column]) -> IntArray:
        """Shape (columns, K): bundles in each column."""
        out = np.zeros((len(columns), len(self.gpu_groups.bundle_groups)), dtype=np.int64)
        for i, column in enumerate(columns):
            for pattern_counts in column.group_counts:
                out[i] += np.frombuffer(pattern_counts, dtype=np.int64)
            if column.pattern >= 0:
                out[i] += self.patterns.uses[column.pattern]
        return out

    def build(
        self, columns: Sequence[Column], limits: BranchLimits, *, penalty: IntArray | None, deadline: float
    ) -> MasterModel:
        """
        Write the model of these columns.

        ``penalty``, shape (K,), prices artificial columns, one for each bundle group that is placed too rarely and one
        for too often: the relaxation is never empty then. ``None`` leaves them out, for an integer model; that one also
        says that no group of nodes takes more columns of whole nodes than it has, where GPU groups are shared by
        several groups.
        """
        builder = ModelBuilder(deadline)
        gpu_groups, bundle_groups, problem = self.gpu_groups, self.gpu_groups.bundle_groups, self.gpu_groups.problem
        open_group = np.array([column.open_group for column in columns], dtype=np.int64)
        pattern = np.array([column.pattern for column in columns], dtype=np.int64)
        cost = np.array([column.cost for column in columns], dtype=np.int64)
        alone = np.flatnonzero(open_group >= 0)
        whole = np.flatnonzero(open_group < 0)
        group = np.where(open_group >= 0, gpu_groups.node_group_of[open_group], 0)
        if len(whole):
            group[whole] = self.patterns.group[pattern[whole]]
        x = builder.add_variables(0, np.where(open_group >= 0, gpu_groups.multiplicity[open_group], self.size[group]))
        options = problem.options
        of_class = options.job_class[self.options]
        y = builder.add_variables(0, self.waiting[of_class])
        node = builder.add_variables(0, np.where(self.opening > 0, self.size, 0))
        wide = builder.add_variables(0, np.ones(len(self.wider), dtype=np.int64))
        k = len(bundle_groups)
        extra = builder.add_variables(0, 0 if penalty is None else int(bundle_groups.supply.sum()), count=2 * k)

        uses = self.uses(columns)
        at, bundle_group = np.nonzero(uses)
        each = np.arange(k)
        placed = (bundle_group, x[at], uses[at, bundle_group])
        started = (bundle_groups.option_bundle_group[self.options], y, -options.bundles[self.options])
        bundle_group_row = builder.add_parts(
            0, 0, placed, started, (each, extra[:k], 1), (each, extra[k:], -1), count=k
        )
        at, a = np.nonzero(self.holds[group[whole]])
        in_whole_nodes = (a, x[whole[at]], self.holds[group[whole[at]], a])
        group_row = builder.add_parts(
            NO_LOWER, gpu_groups.multiplicity, (open_group[alone], x[alone], 1), in_whole_nodes
        )
        link_row = np.full(len(gpu_groups.node_group_of), -1, dtype=np.int64)
        linked = np.flatnonzero(self.opening[gpu_groups.node_group_of] > 0)
        if len(linked):
            position = np.full(len(gpu_groups.node_group_of), -1, dtype=np.int64)
            position[linked] = np.arange(len(linked))
            selected = alone[position[open_group[alone]] >= 0]
            owner = gpu_groups.node_group_of[linked]
            nodes = (np.arange(len(linked)), node[owner], -self.holds[owner, linked])
            filled = (position[open_group[selected]], x[selected], 1)
            link_row[linked] = builder.add_parts(NO_LOWER, 0, filled, nodes, count=len(linked))
        count_row = [
            builder.add_row(
                *self._count(number, open_group, pattern, group, whole, x, node),
                *limits.get(number, (NO_LOWER, NO_UPPER)),
            )
            for number in range(len(self.counts))
        ]
        wider_row = []
        for d in range(len(self.wider)):
            selected = np.flatnonzero(self._under[group, d])
            many = int(gpu_groups.multiplicity[self._under[gpu_groups.node_group_of, d]].sum())
            ones = np.ones(len(selected), dtype=np.int64)
            wider_row.append(builder.add_row(np.append(x[selected], wide[d]), np.append(ones, -many), NO_LOWER, 0))
        scarce_row = []
        for g, r in self.scarce:
            selected = np.flatnonzero(group == g)
            free = int(gpu_groups.state.node_free[gpu_groups.node_groups[g].nodes[0], r])
            scarce_row.append(builder.add_row(x[selected], uses[selected] @ bundle_groups.demand[:, r], NO_LOWER, free))
        if penalty is None and len(whole):
            builder.add_rows(group[whole], x[whole], 1, NO_LOWER, self.size)
        builder.add_rows(of_class, y, 1, NO_LOWER, self.waiting)
        builder.add_row(y, options.value[self.options], self.value_left, self.value_left)
        add_queue_limits(builder, gpu_groups.state, y, self.options)
        resource = options.cost_milli[self.options] * weight_of(bundle_groups.weighted, ResourceCost)
        builder.set_objective(
            np.concatenate([x, y, node, wide, extra]),
            np.concatenate(
                [
                    cost,
                    resource,
                    self.opening,
                    np.array([gpu_groups.wider[domain] for domain in self.wider], dtype=np.int64),
                    np.zeros(2 * k, dtype=np.int64) if penalty is None else np.tile(penalty, 2),
                ]
            ),
            "min",
            self.base,
        )
        return MasterModel(
            model=builder.build(),
            column=x,
            option=y,
            node=node,
            wide=wide,
            extra=extra,
            bundle_group_row=bundle_group_row,
            group_row=group_row,
            link_row=link_row,
            count_row=np.array(count_row, dtype=np.int64),
            wider_row=np.array(wider_row, dtype=np.int64),
            scarce_row=np.array(scarce_row, dtype=np.int64),
        )

    def values_of(
        self, layout: MasterModel, columns: Sequence[Column], held: Sequence[Column], allocation: Allocation
    ) -> IntArray | None:
        """
        Return the values, shape (n,), of an allocation in the model of ``columns``; ``held`` are its columns.

        ``None`` if one of them is not in the model, or the values break it, as where a branch excludes the allocation.
        """
        number = {column: i for i, column in enumerate(columns)}
        if any(column not in number for column in held):
            return None
        values = np.zeros(layout.model.num_variables, dtype=np.int64)
        np.add.at(values, layout.column[[number[column] for column in held]], 1)
        state, at = self.gpu_groups.state, {o: i for i, o in enumerate(self.options.tolist())}
        for job, placement in enumerate(allocation):
            if placement is not None and state.placements[job] is None:
                if placement.option not in at:
                    return None
                values[layout.option[at[placement.option]]] += 1
        open_group = [column.open_group for column in held if column.open_group >= 0]
        filled = np.bincount(np.array(open_group, dtype=np.int64), minlength=len(self.gpu_groups.node_group_of))
        per_node = np.where(self.opening[:, None] > 0, self.holds, 0)
        values[layout.node] = np.where(per_node > 0, -(-filled // np.maximum(per_node, 1)), 0).max(axis=1, initial=0)
        groups = [self._node_group(column) for column in held]
        values[layout.wide] = self._under[groups].any(axis=0)
        return values if layout.model.is_feasible(values) else None

    def _node_group(self, column: Column) -> int:
        """Number of the node group that a column is counted in."""
        if column.open_group >= 0:
            return int(self.gpu_groups.node_group_of[column.open_group])
        return int(self.patterns.group[column.pattern])

    def multipliers(self, layout: MasterModel, duals: NDArray[np.float64]) -> tuple[DualPrices, NDArray[np.float64]]:
        """
        Round the duals of the relaxation to integers.

        Returns what they mean for columns, those that are not in the model included, and the duals themselves, for the
        certificate. Signs that no row bound backs count as 0.
        """
        model, gpu_groups = layout.model, self.gpu_groups
        per_unit = np.rint(duals / model.row_divisor)
        per_unit = np.where((per_unit < 0) & (model.row_upper == NO_UPPER), 0, per_unit)
        per_unit = np.where((per_unit > 0) & (model.row_lower == NO_LOWER), 0, per_unit).astype(np.int64)
        wide = self._under.astype(np.int64) @ per_unit[layout.wider_row]
        node_reservation_price = -wide
        node_reservation_price -= self.holds @ per_unit[layout.group_row]
        reservation_price = -per_unit[layout.group_row] - wide[gpu_groups.node_group_of]
        linked, opening_price = layout.link_row >= 0, np.zeros(len(reservation_price), dtype=np.int64)
        reservation_price[linked] -= per_unit[layout.link_row[linked]]
        for (what, which), row in zip(self.counts, layout.count_row.tolist(), strict=True):
            if what == "node":
                node_reservation_price[which] -= per_unit[row]
            else:
                reservation_price[which] -= per_unit[row]
                opening_price[which] -= per_unit[row]
        scarce = np.zeros((len(self.size), len(gpu_groups.bundle_groups)), dtype=np.int64)
        for (g, r), row in zip(self.scarce, layout.scarce_row.tolist(), strict=True):
            scarce[g] -= per_unit[row] * gpu_groups.bundle_groups.demand[:, r]
        return DualPrices(
            per_unit[layout.bundle_group_row], reservation_price, node_reservation_price, opening_price, scarce
        ), (per_unit * model.row_divisor).astype(np.float64)

    def count_values(self, layout: MasterModel, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Value of every count in a solution of the relaxation."""
        model = layout.model
        out = np.zeros(len(self.counts))
        for i, row in enumerate(layout.count_row.tolist()):
            part = slice(int(model.row_start[row]), int(model.row_start[row + 1]))
            out[i] = (model.coefficients[part] * values[model.columns[part]]).sum() * model.row_divisor[row]
        return out

    def _count(
        self,
        number: int,
        open_group: IntArray,
        pattern: IntArray,
        group: IntArray,
        whole: IntArray,
        x: IntArray,
        node: IntArray,
    ) -> tuple[IntArray, IntArray]:
        what, which = self.counts[number]
        if what == "node":
            columns = np.append(x[whole[group[whole] == which]], node[which])
            return columns, np.ones(len(columns), dtype=np.int64)
        alone, gpu_groups = np.flatnonzero(open_group == which), self.patterns.opens[pattern[whole], which]
        return (
            np.concatenate([x[alone], x[whole[gpu_groups > 0]]]),
            np.concatenate([np.ones(len(alone), dtype=np.int64), gpu_groups[gpu_groups > 0]]),
        )
