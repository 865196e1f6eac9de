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

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.terms.standing import excess_of

NEW, STAY, SHRINK, MOVE = range(4)
"""What a start does: begins a waiting job; or keeps, shrinks or moves a running one."""


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

    @cached_property
    def unit_size(self) -> IntArray:
        """Shape (U,): jobs in each unit."""
        return np.array([len(jobs) for jobs in self.unit_jobs], dtype=np.int64)

    @cached_property
    def excess(self) -> dict[str, IntArray]:
        """What running jobs hold beyond each limit (`excess_of`)."""
        return excess_of(State(self.problem))

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
    def bundle_demand(self) -> IntArray:
        """Shape (B, R): what one of each takes of its node."""
        options = self.problem.options
        demand: IntArray = (options.demand * options.bundle_workers[:, None])[self.bundle_option]
        return demand

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
