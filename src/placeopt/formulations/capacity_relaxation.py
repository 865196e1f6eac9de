"""Which jobs run: a small model of a whole round that counts room instead of nodes, and so bounds the value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.linear import NO_LOWER, LinearModel, ModelBuilder
from placeopt.model import Split
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.problem.free_capacity import startable_options

MOST_SIZES = 32
"""Sizes of bundles that get a row of their own, the largest first."""
RELAXES = (
    "which nodes and GPUs jobs have: only how many bundles of each size there is room for, in all and in domains",
    "node resources but for their sums, and GPU memory, queues and uplinks",
)
"""What a bound on value by a capacity relaxation leaves out."""
FINE = 1 << 20
"""Units that the largest of the second level's prices is cut into."""


@dataclass(frozen=True)
class CapacityRelaxation:
    """How many waiting jobs of each class run, and in which option."""

    problem: Problem
    option: IntArray
    jobs: IntArray
    """
    ``option``, ``jobs``: Shape (Y,): the options that waiting jobs have, and how many jobs of its class wait: one
    column for each.
    """
    _state: State

    def model(
        self,
        option_cost: np.ndarray | None = None,
        least_value: int = 0,
        deadline: float = float("inf"),
        *,
        fine: int = FINE,
    ) -> LinearModel:
        """
        Return the model of the most valuable set of jobs.

        With ``option_cost`` that of the cheapest set worth ``least_value``.

        A node with k idle GPUs has room for ``floor(k / s)`` bundles of ``s`` GPUs, and a bundle of b takes the room of
        ``floor(b / s)`` of them, since floors of parts never exceed the floor of their sum. The sum over all nodes
        is a row for every size; likewise over domains, for the parts of jobs that a split keeps inside one. Every plan
        keeps these rows, so the most valuable set bounds the value of what can be placed.

        ``option_cost``: shape (O,), what a job in the option costs; may be negative; rounded to a ``fine``-th of the
        largest.
        """
        options = self.problem.options
        builder = ModelBuilder(deadline)
        columns = builder.add_variables(0, self.jobs)
        classes, row = np.unique(options.job_class[self.option], return_inverse=True)
        size = np.zeros(len(classes), dtype=np.int64)
        size[row] = self.jobs
        builder.add_rows(row.reshape(-1), columns, 1, NO_LOWER, size)
        self._add_nodes(builder, columns)
        self._add_bundles(builder, columns)
        self._add_parts(builder, columns)
        value = options.value[self.option]
        if option_cost is None:
            builder.set_objective(columns, value, "max")
            return builder.build()
        builder.add_row(columns, value, least_value, int((value * self.jobs).clip(0).sum()))
        price = option_cost[self.option]
        largest = float(np.abs(price).max(initial=0.0)) or 1.0
        scaled = np.rint(price / largest * fine).astype(np.int64)
        builder.set_objective(columns, scaled, "min")
        return builder.build()

    def _add_nodes(self, builder: ModelBuilder, columns: IntArray) -> None:
        """CPU and memory of all nodes together."""
        options, asked = self.problem.options, self.option
        demand = options.demand[asked] * options.workers[asked][:, None]
        for r in range(demand.shape[1]):
            if demand[:, r].any():
                room = int(np.maximum(self._state.node_free[:, r], 0).sum())
                builder.add_row(columns, demand[:, r], NO_LOWER, room)

    def _add_bundles(self, builder: ModelBuilder, columns: IntArray) -> None:
        """Room for bundles of every size on nodes, and for shares on GPUs."""
        gpus, milli = self._sizes()
        bundles = self.problem.options.bundles[self.option]
        shares = np.maximum(self._state.gpu_free_milli, 0)
        for share in _largest(milli[(milli < 1000) & (gpus > 0)]):
            taken = bundles * gpus * (milli // share)
            builder.add_row(columns, taken, NO_LOWER, int((shares // share).sum()))
        idle, whole = self._idle(), np.where(milli == 1000, gpus, 0)
        for count in _largest(whole[whole > 0]):
            builder.add_row(columns, bundles * (whole // count), NO_LOWER, int((idle // count).sum()))

    def _add_parts(self, builder: ModelBuilder, columns: IntArray) -> None:
        """Room in domains for the parts of jobs that a split keeps together, of bundles of some size and larger."""
        gpus, milli = self._sizes()
        whole, idle = np.where(milli == 1000, gpus, 0), self._idle()
        total = whole * self.problem.options.bundles[self.option]
        splits = [self.problem.options.splits[o] for o in self.option.tolist()]
        for level in sorted({split.level for own in splits for split in own}):
            domain = self.problem.split_domain[level]
            inside = domain >= 0
            parts, even = _parts(splits, level)
            each = np.where(parts > 0, total // np.maximum(parts, 1), 0)
            for count in _largest(whole[each > 0]):
                larger = (whole >= count) & (each > 0)
                usable = (
                    idle // count * count if not (whole[larger] % count).any() else np.where(idle >= count, idle, 0)
                )
                room = np.bincount(domain[inside], usable[inside]).astype(np.int64)
                for part in _largest(each[larger]):
                    # parts that need not be even lose at most one unit each but the last by rounding
                    taken = np.where(even, parts * (each // part), np.maximum(total // part - (parts - 1), 0))
                    builder.add_row(columns, taken * larger, NO_LOWER, int((room // part).sum()))

    def _sizes(self) -> tuple[IntArray, IntArray]:
        """GPUs of a bundle, and thousandths of each."""
        options = self.problem.options
        gpus = options.gpus[self.option] * options.bundle_workers[self.option]
        milli = np.where(self.problem.jobs_per_gpu == 1, 1000, options.milli[self.option])
        return gpus, milli

    def _idle(self) -> IntArray:
        """Shape (N,): GPUs that no job holds."""
        free = self._state.gpu_free_milli == 1000
        return np.bincount(self.problem.gpu_node[free], minlength=self.problem.num_nodes)


def build_capacity_relaxation(state: State) -> CapacityRelaxation:
    """Return the relaxation over all jobs that are not placed in ``state``."""
    return CapacityRelaxation(state.problem, *startable_options(state), state)


def _parts(splits: list[tuple[Split, ...]], level: str) -> tuple[IntArray, BoolArray]:
    """Return the number of domains of the level over which each option spreads, 0 if open, and whether evenly."""
    stated = [next((split for split in own if split.level == level), None) for own in splits]
    parts = np.array([0 if split is None else split.domains for split in stated], dtype=np.int64)
    even = np.array([split is not None and (split.domains == 1 or split.workers is not None) for split in stated])
    return parts, even


def _largest(sizes: IntArray) -> list[int]:
    largest: list[int] = np.unique(sizes)[::-1][:MOST_SIZES].tolist()
    return largest
