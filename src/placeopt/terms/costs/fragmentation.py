"""Cost: GPUs left free in domains that are neither empty nor full."""

from __future__ import annotations

from functools import partial

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, ModelBuilder
from placeopt.model import Policy
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.terms.linearized_costs import CostPrices
from placeopt.terms.protocols import Cost, Expression, Part
from placeopt.terms.variables import Variables


class Fragmentation(Cost):
    """
    ``partial``: the sum over levels of weight x free GPUs in the level's partly used domains.

    Ours, for whole rounds: SC'17 eq. 5 is constant there once the jobs are chosen. A GPU is free if no job holds any
    of it.
    """

    name = "fragmentation"
    unit = "weighted GPUs"

    def selected_by(self, policy: Policy) -> bool:
        """Return whether the policy's form is ``partial``."""
        return policy.fragmentation.form == "partial"

    def of(self, state: State, part: Part) -> int:
        """Count the free GPUs of domains in which some are used."""
        total = 0
        for level, free in zip(state.problem.levels, state.level_free, strict=True):
            touched = range(len(free)) if part.is_all else {level.domain_of_gpu[gpu] for gpu in part.gpus} - {-1}
            left = ((free.item(domain), level.total.item(domain)) for domain in touched)
            total += level.weight * sum(count for count, size in left if count < size)
        return total

    def worst(self, problem: Problem) -> int:
        """All domains partly used, with one GPU each."""
        return sum(level.weight * int(np.maximum(level.total - 1, 0).sum()) for level in problem.levels)

    def gpu_classes(self, problem: Problem) -> IntArray | None:
        """GPUs alike: those that share all their domains."""
        inner = [level.gpu_to_domain for level in problem.levels if level.name in ("socket", "numa", "switch")]
        return np.unique(np.stack(inner), axis=1, return_inverse=True)[1] if inner else None

    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """Free GPUs of a used domain are ``size x used - busy``; where a running job uses it already, ``used`` is 1."""
        v, busy = variables, _add_busy(builder, variables)
        prices, constant = CostPrices(builder), 0
        for level, free in zip(v.problem.levels, v.state.level_free, strict=True):
            domain = level.gpu_to_domain[v.cell_gpu]
            inside = np.flatnonzero(domain >= 0)
            idle = free == level.total  # no running job in the domain
            mine = inside[idle[domain[inside]]]
            fresh, row = np.unique(domain[mine], return_inverse=True)
            used = builder.add_variables(0, 1, count=len(fresh))
            for sign, price in ((1, -level.total[fresh]), (-1, 1)):  # used where any GPU is busy, and only there
                parts = (row, busy[mine], sign), (np.arange(len(fresh)), used, price)
                builder.add_parts(NO_LOWER, 0, *parts, count=len(fresh))
            builder.define(used, partial(_any_busy, row, busy[mine]))
            prices.add(busy[inside], -level.weight)
            prices.add(used, level.weight * level.total[fresh])
            constant += level.weight * int(free[~idle].sum())
        return (*prices.hand_over(), constant)


def _add_busy(builder: ModelBuilder, v: Variables) -> IntArray:
    """Return columns, shape (C,), that count the GPUs of a cell that waiting jobs make busy; 0 where one is already."""
    cells = len(v.cell_gpus)
    columns = builder.add_variables(0, v.cell_size * v.cell_idle)
    idle = v.cell_idle[v.grant_cell] == 1
    cell, grant, shared = v.grant_cell[idle], v.grant[idle], v.cell_shared
    # busy = sum of grants where GPUs go whole; else busy <= sum, and every grant makes its GPU busy
    builder.add_parts(0, np.where(shared, NO_UPPER, 0), (cell, grant, 1), (np.arange(cells), columns, -1))
    meet = np.flatnonzero(shared[cell])
    rows = np.arange(len(meet))
    most = v.unit_size[v.start_unit[v.grant_start[idle][meet]]]  # a unit holds a GPU at most once a job
    builder.add_parts(NO_LOWER, 0, (rows, grant[meet], 1), (rows, columns[cell[meet]], -most), count=len(meet))

    def held(values: IntArray) -> IntArray:
        count = np.zeros(cells, dtype=np.int64)
        np.add.at(count, cell, values[grant])
        return np.where(shared, np.minimum(count, 1), count)

    builder.define(columns, held)
    return columns


def _any_busy(domain: IntArray, busy: IntArray, values: IntArray) -> BoolArray:
    """Shape (D,): whether any of the columns ``busy``, each of a cell of a ``domain``, is above 0."""
    found: BoolArray = np.bincount(domain, values[busy]) > 0
    return found
