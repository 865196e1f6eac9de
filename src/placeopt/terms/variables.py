"""
The columns that a formulation offers to rules and costs.

A *unit* is a set of alike jobs counted together (often one job). A *start* column counts the jobs of a unit that run in
an option; a *bundle* column how many of the option's bundles are on a node; a *grant* column how many GPUs of a *cell*
those bundles hold. A cell is a set of alike GPUs of one node, often a single one. ``assignment`` has units of one job
and cells of one GPU; ``counts`` folds what is alike; so rules and costs are written once.

A running job that may be changed is a unit of its own. Its starts say what becomes of it: it stays (bundles and grants
just where it is), shrinks, or moves (like a waiting job); without any it is preempted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, ModelBuilder
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.terms.standing import Excess, excess_of

NEW, STAY, SHRINK, MOVE = range(4)
"""What a start does: begins a waiting job; or keeps, shrinks or moves a running one."""


@dataclass(frozen=True, eq=False)
class RankVariables:
    """Who of a job's workers holds what, for a start: the number of a grant's GPUs that a rank has. (z,) each."""

    column: IntArray
    rank: IntArray
    grant: IntArray  # position


@dataclass(frozen=True, eq=False)
class Variables:
    """Columns with what they stand for. U units, S starts, B bundles, Q grants, C cells."""

    problem: Problem
    state: State
    """Holds the running jobs that must stay as they are only: what is free to the others."""
    unit_jobs: tuple[tuple[int, ...], ...]  # (U,) the jobs of each unit, waiting or one that may be changed
    unit_least: IntArray  # (U,) jobs of the unit that must run: 1 where a running one may not be preempted
    start: IntArray  # (S,) columns
    start_unit: IntArray  # (S,)
    start_option: IntArray  # (S,)
    start_kind: IntArray  # (S,) NEW, STAY, SHRINK or MOVE
    start_value: IntArray  # (S,) net value, to be added to that of ``state``
    bundle: IntArray  # (B,) columns
    bundle_start: IntArray  # (B,) position in ``start``
    bundle_node: IntArray  # (B,)
    bundle_most: IntArray  # (B,) upper bounds
    grant: IntArray  # (Q,) columns
    grant_bundle: IntArray  # (Q,) position in ``bundle``
    grant_cell: IntArray  # (Q,)
    grant_most: IntArray  # (Q,) upper bounds
    grant_milli: IntArray  # (Q,) share of each GPU: the request, or what a running job holds where it stays
    cell_gpus: tuple[tuple[int, ...], ...]  # (C,)
    gpu_to_cell: IntArray  # (G,) -1 where no option may hold the GPU
    rank_columns: dict[int, RankVariables] = field(default_factory=dict)
    """By start; only where a cost depends on which rank holds which GPU. Other workers are placed in order."""
    _made: dict[str, IntArray] = field(default_factory=dict, repr=False)
    """Columns that several terms use, by name, once they are added."""

    @cached_property
    def unit_size(self) -> IntArray:
        """Shape (U,): jobs in each unit."""
        return np.array([len(jobs) for jobs in self.unit_jobs], dtype=np.int64)

    @cached_property
    def excess(self) -> Excess:
        """What running jobs hold beyond each limit."""
        return excess_of(self.problem)

    @cached_property
    def starts_new(self) -> BoolArray:
        """Shape (S,): whether the start is of a job that waits or moves; else it is of what stays of a running one."""
        return np.isin(self.start_kind, (NEW, MOVE))

    @cached_property
    def bundle_option(self) -> IntArray:
        """Shape (B,)."""
        option: IntArray = self.start_option[self.bundle_start]
        return option

    @cached_property
    def grant_option(self) -> IntArray:
        """Shape (Q,)."""
        option: IntArray = self.bundle_option[self.grant_bundle]
        return option

    @cached_property
    def grant_start(self) -> IntArray:
        """Shape (Q,): position in ``start``."""
        position: IntArray = self.bundle_start[self.grant_bundle]
        return position

    @cached_property
    def cell_gpu(self) -> IntArray:
        """Shape (C,): the first GPU of each cell."""
        return np.array([gpus[0] for gpus in self.cell_gpus], dtype=np.int64)

    @cached_property
    def cell_size(self) -> IntArray:
        """Shape (C,): GPUs in each cell."""
        return np.array([len(gpus) for gpus in self.cell_gpus], dtype=np.int64)

    @cached_property
    def cell_idle(self) -> IntArray:
        """Shape (C,): 1 where no running job holds a GPU of the cell, else 0 (such cells have one GPU)."""
        return np.array([int(self.state.gpu_jobs[gpus[0]] == 0) for gpus in self.cell_gpus], dtype=np.int64)

    @cached_property
    def cell_shared(self) -> BoolArray:
        """Shape (C,): whether waiting jobs may meet on the GPU of an idle cell (such cells have one GPU)."""
        shared = np.zeros(len(self.cell_gpus), dtype=bool)
        if self.problem.jobs_per_gpu != 1:
            meets = (self.problem.options.milli[self.grant_option] < 1000) | (not self.problem.shares_bind)
            shared[self.grant_cell[meets]] = True
        shared &= self.cell_idle == 1
        return shared

    @property
    def cell_met(self) -> BoolArray:
        """Shape (C,): whether a waiting job may hold the cell's GPU together with another job, waiting or running."""
        met: BoolArray = self.cell_shared | (self.cell_idle == 0)
        return met

    def utilisation(self, builder: ModelBuilder, cell: int) -> tuple[IntArray, IntArray]:
        """
        Cumulative utilisation of a cell of one GPU, running jobs included, in binaries.

        Returns (levels, digits): the percentages that can occur, ascending from what runs there now, and one column
        for each but the first, 1 where the utilisation is at least that level. Any function of it is then linear.
        """
        base = int(self.state.gpu_utilisation[self.cell_gpus[cell][0]])
        mine = np.flatnonzero(self.grant_cell == cell)
        percent = self.problem.options.utilisation[self.grant_option[mine]]
        levels = self._levels(cell, base, percent)
        name = f"utilisation {cell}"
        if name not in self._made:
            digits = builder.add_variables(0, 1, count=len(levels) - 1)
            steps = levels[1:] - levels[:-1]
            builder.add_row(np.append(self.grant[mine], digits), np.append(percent, -steps), 0, 0)
            rows = np.arange(len(digits) - 1)
            builder.add_parts(0, NO_UPPER, (rows, digits[:-1], 1), (rows, digits[1:], -1), count=len(rows))
            grants = self.grant[mine]
            builder.define(digits, lambda values: base + percent @ values[grants] >= levels[1:])
            self._made[name] = digits
        return levels, self._made[name]

    def _levels(self, cell: int, base: int, percent: IntArray) -> IntArray:
        """Sums that the utilisations of the jobs which fit on the GPU together can make, on top of ``base``."""
        gpu, mine = self.cell_gpus[cell][0], self.grant_cell == cell
        room = int(self.unit_size[self._grant_unit[mine]].sum())
        if self.problem.shares_bind:
            smallest = int(self.problem.options.milli[self.grant_option[mine]].min(initial=1000))
            room = min(room, int(self.state.gpu_free_milli[gpu]) // smallest)
        if self.problem.jobs_per_gpu is not None:
            room = min(room, self.problem.jobs_per_gpu - int(self.state.gpu_jobs[gpu]))
        sums = {base}
        for _ in range(room):
            more = sums | {s + int(p) for s in sums for p in np.unique(percent)}
            if len(more) == len(sums):
                break
            sums = more
        return np.array(sorted(sums), dtype=np.int64)

    def busy(self, builder: ModelBuilder) -> IntArray:
        """
        Return columns, shape (C,), that count the GPUs of a cell that waiting jobs make busy.

        A GPU that a running job holds already counts 0. The first call adds the columns to the model.
        """
        if "busy" not in self._made:
            self._made["busy"] = self._add_busy(builder)
        return self._made["busy"]

    def _add_busy(self, builder: ModelBuilder) -> IntArray:
        cells = len(self.cell_gpus)
        columns = builder.add_variables(0, self.cell_size * self.cell_idle)
        idle = self.cell_idle[self.grant_cell] == 1
        cell, grant, shared = self.grant_cell[idle], self.grant[idle], self.cell_shared
        # busy = sum of grants where GPUs go whole; else busy <= sum, and every grant makes its GPU busy
        builder.add_parts(0, np.where(shared, NO_UPPER, 0), (cell, grant, 1), (np.arange(cells), columns, -1))
        meet = np.flatnonzero(shared[cell])
        rows = np.arange(len(meet))
        most = -self.unit_size[self._grant_unit[idle][meet]]
        builder.add_parts(NO_LOWER, 0, (rows, grant[meet], 1), (rows, columns[cell[meet]], most), count=len(meet))

        def held(values: IntArray) -> IntArray:
            count = np.zeros(cells, dtype=np.int64)
            np.add.at(count, cell, values[grant])
            return np.where(shared, np.minimum(count, 1), count)

        builder.define(columns, held)
        return columns

    @cached_property
    def _grant_unit(self) -> IntArray:
        """Shape (Q,). A unit holds a GPU at most once a job."""
        unit: IntArray = self.start_unit[self.grant_start]
        return unit
