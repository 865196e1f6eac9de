"""Cost: GPUs left free in domains that are neither empty nor full."""

from __future__ import annotations

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.model import Policy
from placeopt.problem import Allocation, FragmentationLevel, IntArray, Move, Problem, State
from placeopt.terms.protocols import Cost, Expression
from placeopt.terms.variables import Variables


class Fragmentation(Cost):
    """
    ``partial``: the sum over levels of weight x free GPUs in the level's partly used domains.

    Ours, for whole rounds: SC'17 eq. 5 is constant there once the jobs are chosen. A GPU is free if no job holds any
    of it.
    """

    name = "fragmentation"
    unit = "weighted GPUs"
    default_weight = 300
    omitted_by_cost_relaxation = "free GPUs in domains that are idle now"
    unsupported_by_columns = None  # columns charge the domains inside a node, the master those above

    def selected_by(self, policy: Policy) -> bool:
        """Return whether the policy's form is ``partial``."""
        return policy.fragmentation.form == "partial"

    def score(self, problem: Problem, allocation: Allocation) -> int:
        """Count free GPUs per domain."""
        busy = np.zeros(problem.num_gpus, dtype=bool)
        held = [gpu for placement in allocation if placement is not None for gpu in placement.gpus]
        busy[held] = True
        total = 0
        for level in problem.levels:
            inside = level.gpu_to_domain >= 0
            used = np.bincount(level.gpu_to_domain[inside & busy], minlength=len(level.total))
            free = level.total - used
            total += level.weight * int(free[used > 0].sum())
        return total

    def delta(self, state: State, move: Move) -> int:
        """Only domains with a GPU that becomes busy or free change."""
        before, after = state.placements[move.job], move.placement
        old = frozenset(before.gpus if before is not None else ())
        new = frozenset(after.gpus if after is not None else ())
        jobs = state.gpu_jobs
        change = {gpu: -1 for gpu in new - old if jobs[gpu] == 0}
        change.update({gpu: 1 for gpu in old - new if jobs[gpu] == 1})
        total = 0
        for level, free in zip(state.problem.levels, state.level_free, strict=True):
            per_domain: dict[int, int] = {}
            for gpu, sign in change.items():
                domain = int(level.gpu_to_domain[gpu])
                if domain >= 0:
                    per_domain[domain] = per_domain.get(domain, 0) + sign
            for domain, sign in per_domain.items():
                count, size = int(free[domain]), int(level.total[domain])
                total += level.weight * (_partial(count + sign, size) - _partial(count, size))
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
        v = variables
        busy = v.busy(builder)
        columns: list[IntArray] = []
        coefficients: list[IntArray] = []
        constant = 0
        cell_gpu = np.array([gpus[0] for gpus in v.cell_gpus], dtype=np.int64)
        for level, free in zip(v.problem.levels, v.state.level_free, strict=True):
            constant += self._add_level(builder, level, free, busy, cell_gpu, columns, coefficients)
        if not columns:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), constant
        return np.concatenate(columns), np.concatenate(coefficients), constant

    @staticmethod
    def _add_level(
        builder: ModelBuilder,
        level: FragmentationLevel,
        free: IntArray,
        busy: IntArray,
        cell_gpu: IntArray,
        columns: list[IntArray],
        coefficients: list[IntArray],
    ) -> int:
        domain = level.gpu_to_domain[cell_gpu]
        inside = np.flatnonzero(domain >= 0)
        idle = free == level.total  # no running job in the domain
        columns.append(busy[inside])
        coefficients.append(np.full(len(inside), -level.weight, dtype=np.int64))
        fresh, row = np.unique(domain[inside][idle[domain[inside]]], return_inverse=True)
        mine = inside[idle[domain[inside]]]
        used = builder.add_variables(0, 1, count=len(fresh))
        for sign, price in ((1, -level.total[fresh]), (-1, 1)):  # used where any GPU is busy, and only there
            parts = (row, busy[mine], sign), (np.arange(len(fresh)), used, price)
            builder.add_parts(NO_LOWER, 0, *parts, count=len(fresh))
        builder.define(used, lambda values: np.bincount(row, values[busy[mine]], len(fresh)) > 0)
        columns.append(used)
        coefficients.append(level.weight * level.total[fresh])
        return level.weight * int(free[~idle].sum())


def _partial(free: int, size: int) -> int:
    return free if 0 < free < size else 0
