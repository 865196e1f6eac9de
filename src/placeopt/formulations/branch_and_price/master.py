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
from placeopt.problem import IntArray
from placeopt.terms.costs.resource import ResourceCost
from placeopt.terms.objective import Weighted, cost, value, weight_of
from placeopt.terms.queue_ceilings import queue_ceilings
from placeopt.terms.rules.queue_share import option_use

BranchLimits = dict[int, tuple[int, int]]
"""Number of a count (`Master.counts`) -> least and most."""


@dataclass(frozen=True, eq=False)
class MasterModel:
    """Where columns and rows of a model are."""

    model: LinearModel
    column: IntArray  # (columns,)
    option: IntArray  # (options,)
    node: IntArray  # (N',) used nodes of each group
    extra: IntArray  # artificial ones of the relaxation
    kind_row: IntArray  # (K,)
    place_row: IntArray  # (A,)
    link_row: IntArray  # (A,) -1 where opening the node costs nothing
    count_row: IntArray  # (counts,)
    wider_row: IntArray  # (wider domains,)
    scarce_row: IntArray  # (scarce,)


class Master:
    """
    Rows and columns of a round at the cost level, at a given value.

    ``counts`` are sums of columns that are integers in every plan, worth branching on: first the nodes used of each
    group that is idle (``("node", group)``), then the idle rooms of each place that are opened (``("room", place)``).
    """

    def __init__(
        self, rooms: GpuGroups, patterns: CrossGroupPatterns, weighted: tuple[Weighted, ...], value_level: int
    ) -> None:
        self.rooms, self.patterns = rooms, patterns
        kinds, problem, state = rooms.kinds, rooms.problem, rooms.state
        self.options = np.flatnonzero(kinds.option_kind >= 0)
        waiting = [job for job in range(problem.num_jobs) if state.placements[job] is None]
        self.waiting = np.bincount(problem.job_class[waiting], minlength=len(problem.class_communication))
        self.base = cost(problem, state.allocation(), weighted)
        self.value_left = value_level - value(problem, state.allocation())
        # one row more than there are groups, for rooms that groups share
        self.size = np.array([len(group.nodes) for group in rooms.groups] + [0], dtype=np.int64)
        self.opening = np.array([group.opening for group in rooms.groups] + [0], dtype=np.int64)
        self.holds = np.zeros((len(self.size), len(rooms.places)), dtype=np.int64)  # rooms of each place on a node
        for g, group in enumerate(rooms.groups):
            np.add.at(self.holds[g], group.room, 1)
        self.wider = sorted(rooms.wider)
        self.scarce = [(g, r) for g, group in enumerate(rooms.groups) for r in group.binding]
        self.counts: list[tuple[str, int]] = [("node", int(g)) for g in np.flatnonzero(self.opening)]
        self.counts += [("room", int(a)) for a in np.flatnonzero(rooms.places.opening)]
        self._under = np.array(
            [[domain in group.wider for domain in self.wider] for group in rooms.groups] + [[False] * len(self.wider)],
            dtype=bool,
        ).reshape(len(self.size), len(self.wider))

    @property
    def leaves_out(self) -> tuple[str, ...]:
        """What the model does not charge, in words; empty where its optimum is that of the round."""
        kinds, domains = self.rooms.kinds, self.rooms.problem.topology.domain_uplink
        gangs = bool((kinds.traffic * (kinds.total - kinds.gpus)).any())
        return ("paths of gangs between domains of nodes",) if gangs and len(domains) > 1 else ()

    def uses(self, columns: Sequence[Column]) -> IntArray:
        """Shape (columns, K): bundles in each column."""
        out = np.zeros((len(columns), len(self.rooms.kinds)), dtype=np.int64)
        for i, column in enumerate(columns):
            for content in column.contents:
                out[i] += np.frombuffer(content, dtype=np.int64)
            if column.pattern >= 0:
                out[i] += self.patterns.uses[column.pattern]
        return out

    def build(
        self, columns: Sequence[Column], limits: BranchLimits, *, penalty: IntArray | None, deadline: float
    ) -> MasterModel:
        """
        Write the model of these columns.

        ``penalty``, shape (K,), prices artificial columns, one for each kind that is placed too rarely and one for too
        often: the relaxation is never empty then. ``None`` leaves them out, for an integer model; that one also says
        that no group of nodes takes more columns of whole nodes than it has, where rooms are shared by several groups.
        """
        builder = ModelBuilder(deadline)
        rooms, kinds, problem = self.rooms, self.rooms.kinds, self.rooms.problem
        place = np.array([column.place for column in columns], dtype=np.int64)
        pattern = np.array([column.pattern for column in columns], dtype=np.int64)
        cost = np.array([column.cost for column in columns], dtype=np.int64)
        alone = np.flatnonzero(place >= 0)
        whole = np.flatnonzero(place < 0)
        group = np.where(place >= 0, rooms.place_group[place], 0)
        if len(whole):
            group[whole] = self.patterns.group[pattern[whole]]
        x = builder.add_variables(0, np.where(place >= 0, rooms.place_count[place], self.size[group]))
        options = problem.options
        of_class = options.job_class[self.options]
        y = builder.add_variables(0, self.waiting[of_class])
        node = builder.add_variables(0, np.where(self.opening > 0, self.size, 0))
        wide = builder.add_variables(0, np.ones(len(self.wider), dtype=np.int64))
        k = len(kinds)
        extra = builder.add_variables(0, 0 if penalty is None else int(kinds.supply.sum()), count=2 * k)

        uses = self.uses(columns)
        at, kind = np.nonzero(uses)
        each = np.arange(k)
        kind_row = builder.add_rows(
            np.concatenate([kind, kinds.option_kind[self.options], each, each]),
            np.concatenate([x[at], y, extra[:k], extra[k:]]),
            np.concatenate(
                [uses[at, kind], -options.bundles[self.options], np.ones(k, dtype=np.int64), np.full(k, -1)]
            ),
            np.zeros(k, dtype=np.int64),
            0,
        )
        rows, cols, coefs = [place[alone]], [x[alone]], [np.ones(len(alone), dtype=np.int64)]
        at, a = np.nonzero(self.holds[group[whole]])
        rows.append(a)
        cols.append(x[whole[at]])
        coefs.append(self.holds[group[whole[at]], a])
        place_row = builder.add_rows(
            np.concatenate(rows), np.concatenate(cols), np.concatenate(coefs), NO_LOWER, rooms.place_count
        )
        link_row = np.full(len(rooms.place_group), -1, dtype=np.int64)
        linked = np.flatnonzero(self.opening[rooms.place_group] > 0)
        if len(linked):
            position = np.full(len(rooms.place_group), -1, dtype=np.int64)
            position[linked] = np.arange(len(linked))
            mine = alone[position[place[alone]] >= 0]
            link_row[linked] = builder.add_rows(
                np.concatenate([position[place[mine]], np.arange(len(linked))]),
                np.concatenate([x[mine], node[rooms.place_group[linked]]]),
                np.concatenate([np.ones(len(mine), dtype=np.int64), -self.holds[rooms.place_group[linked], linked]]),
                np.full(len(linked), NO_LOWER, dtype=np.int64),
                0,
            )
        count_row = [
            builder.add_row(
                *self._count(number, place, pattern, group, whole, x, node), *limits.get(number, (NO_LOWER, NO_UPPER))
            )
            for number in range(len(self.counts))
        ]
        wider_row = []
        for d in range(len(self.wider)):
            mine = np.flatnonzero(self._under[group, d])
            many = int(rooms.place_count[self._under[rooms.place_group, d]].sum())
            ones = np.ones(len(mine), dtype=np.int64)
            wider_row.append(builder.add_row(np.append(x[mine], wide[d]), np.append(ones, -many), NO_LOWER, 0))
        scarce_row = []
        for g, r in self.scarce:
            mine = np.flatnonzero(group == g)
            free = int(rooms.state.node_free[rooms.groups[g].nodes[0], r])
            scarce_row.append(builder.add_row(x[mine], uses[mine] @ kinds.demand[:, r], NO_LOWER, free))
        if penalty is None and len(whole):
            builder.add_rows(group[whole], x[whole], 1, np.full(len(self.size), NO_LOWER, dtype=np.int64), self.size)
        builder.add_rows(of_class, y, 1, np.full(len(self.waiting), NO_LOWER, dtype=np.int64), self.waiting)
        builder.add_row(y, options.value[self.options], self.value_left, self.value_left)
        self._add_queues(builder, y)
        resource = options.cost_milli[self.options] * weight_of(kinds.weighted, ResourceCost)
        builder.set_objective(
            np.concatenate([x, y, node, wide, extra]),
            np.concatenate(
                [
                    cost,
                    resource,
                    self.opening,
                    np.array([rooms.wider[domain] for domain in self.wider], dtype=np.int64),
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
            extra=extra,
            kind_row=kind_row,
            place_row=place_row,
            link_row=link_row,
            count_row=np.array(count_row, dtype=np.int64),
            wider_row=np.array(wider_row, dtype=np.int64),
            scarce_row=np.array(scarce_row, dtype=np.int64),
        )

    def multipliers(self, layout: MasterModel, duals: NDArray[np.float64]) -> tuple[DualPrices, NDArray[np.float64]]:
        """
        Round the duals of the relaxation to integers.

        Returns what they mean for columns, those that are not in the model included, and the duals themselves, for the
        certificate. Signs that no row bound backs count as 0.
        """
        model, rooms = layout.model, self.rooms
        per_unit = np.rint(duals / model.row_divisor)
        per_unit = np.where((per_unit < 0) & (model.row_upper == NO_UPPER), 0, per_unit)
        per_unit = np.where((per_unit > 0) & (model.row_lower == NO_LOWER), 0, per_unit).astype(np.int64)
        wide = self._under.astype(np.int64) @ per_unit[layout.wider_row]
        node_rent = -wide
        node_rent -= self.holds @ per_unit[layout.place_row]
        rent = -per_unit[layout.place_row] - wide[rooms.place_group]
        linked, room_rent = layout.link_row >= 0, np.zeros(len(rent), dtype=np.int64)
        rent[linked] -= per_unit[layout.link_row[linked]]
        for (what, which), row in zip(self.counts, layout.count_row.tolist(), strict=True):
            if what == "node":
                node_rent[which] -= per_unit[row]
            else:
                rent[which] -= per_unit[row]
                room_rent[which] -= per_unit[row]
        scarce = np.zeros((len(self.size), len(rooms.kinds)), dtype=np.int64)
        for (g, r), row in zip(self.scarce, layout.scarce_row.tolist(), strict=True):
            scarce[g] -= per_unit[row] * rooms.kinds.demand[:, r]
        return DualPrices(per_unit[layout.kind_row], rent, node_rent, room_rent, scarce), (
            per_unit * model.row_divisor
        ).astype(np.float64)

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
        place: IntArray,
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
        alone, rooms = np.flatnonzero(place == which), self.patterns.opens[pattern[whole], which]
        return (
            np.concatenate([x[alone], x[whole[rooms > 0]]]),
            np.concatenate([np.ones(len(alone), dtype=np.int64), rooms[rooms > 0]]),
        )

    def _add_queues(self, builder: ModelBuilder, y: IntArray) -> None:
        """What the jobs of each queue may hold."""
        problem, state = self.rooms.problem, self.rooms.state
        if not problem.policy.queues:
            return
        queue = problem.class_queue[problem.options.job_class[self.options]]
        mine = np.flatnonzero(queue >= 0)
        use, room = option_use(problem)[self.options], queue_ceilings(problem) - state.queue_used
        for r in range(use.shape[1]):
            builder.add_rows(
                queue[mine], y[mine], use[mine, r], np.full(len(room), NO_LOWER, dtype=np.int64), room[:, r]
            )
