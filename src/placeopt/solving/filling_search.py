"""Column generation over fillings on one round: a mix, what its prices prove, and the mix in whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from placeopt.errors import OutOfTime
from placeopt.formulations.fillings import (
    RELAXES,
    Column,
    Master,
    NodePricing,
    Pool,
    bundle_groups_of,
    columns_of,
    requests_of,
    starts_of,
    units_of,
)
from placeopt.problem import IntArray
from placeopt.solvers.result import Basis
from placeopt.solving.context import SolveContext
from placeopt.terms.objective import value

FIRST_STEPS, MORE_STEPS = 1 << 14, 8
"""Branches for a unit at first, and how many times as many there are where so many find nothing."""
SIMPLEX_WORK = 2.0
"""Work of one linear program in deterministic mode."""
STEPS_PER_S = 1 << 14
"""Branches of pricing in deterministic mode per second of the time limit."""


class FillingSearch:
    """Column generation on one round."""

    def __init__(self, context: SolveContext) -> None:
        """Begin with the fillings of the best plan so far."""
        self._context, state = context, context.base
        self.bundle_groups = bundle_groups_of(context.problem)
        self.starts = starts_of(state, self.bundle_groups)
        self.units = units_of(state, self.bundle_groups, self.starts)
        self.pool = Pool(len(self.units), len(self.bundle_groups))
        best = context.incumbent.allocation
        self.pool.add(columns_of(context.problem, self.bundle_groups, self.units, best))
        self.master = Master(self.bundle_groups, self.starts, self.units, self.pool)
        self.pricing = NodePricing(self.bundle_groups, self.starts, self.units, FIRST_STEPS)
        self._held = value(context.problem, state.allocation())
        self._basis: Basis | None = None
        self.programs = 0
        self.mixed = self._held
        """What the mix of the last linear program is worth, rounded down."""

    def generate(self, ends: float) -> None:
        """
        Generate fillings until prices bound the value at that of the mix, or of the best plan, or within the gap.

        Raises ``OutOfTime`` at ``ends``, of ``time.monotonic()``.
        """
        self._ends = ends
        begin, least = self._begin(), np.inf
        if begin is not None:
            least, _ = self._price(begin)
        most = self._context.budget.steps(STEPS_PER_S)
        while not self._closed and (price := self._program()) is not None:
            if self.pricing.steps >= most:
                self._context.budget.note_limit("work")
                return
            bound, new = self._price(price)
            least = min(least, bound)
            if not new and (least <= self.mixed or not self.pricing.look_further(MORE_STEPS)):
                return

    @property
    def _closed(self) -> bool:
        return self._context.value_proven or self._context.is_closed

    def _begin(self) -> IntArray | None:
        """Return the prices at which all units together have no more room than they have; None without any."""
        model, budget = self.master.capacity_model(self.pricing.takes, self.pricing.room), self._context.budget
        solution = self._context.solvers.solve("highs", model, replace(budget.options(SIMPLEX_WORK), relax=True))
        if solution.status != "optimal" or solution.duals is None:
            return None
        amounts = self.master.amount_prices(model, solution.duals, self.pricing.takes)
        self.pricing.begin_at(amounts)
        return self.master.whole_prices(self.pricing.takes @ amounts)

    def _price(self, price: IntArray) -> tuple[int, int]:
        """Prove what prices prove; return that, and how many fillings that pay more than known ones were new."""
        found, most = [], []
        for unit in range(len(self.units)):
            if self._context.budget.stopped() or self._context.budget.is_past(self._ends):
                raise OutOfTime("the time limit came before all units were priced")
            priced = self.pricing.price(price, unit, self.pool.most(price, unit))
            most.append(priced.most)
            found += [Column(unit, filling) for filling in priced.fillings]
        bound = self._held + self.master.proven_bound(price, most)
        self._context.bounds.prove_value(bound, RELAXES)
        return bound, self.pool.add(found)

    def _program(self) -> IntArray | None:
        """Solve the linear program over the known fillings; return its prices, None where there are none."""
        budget = self._context.budget
        model = self.master.value_model(budget.deadline)
        options = replace(budget.options(SIMPLEX_WORK), relax=True, start=self._basis, keep_basis=True)
        solution = self._context.solvers.solve("highs", model, options)
        if solution.status != "optimal" or solution.duals is None or solution.bound is None:
            return None
        self.programs, self._basis, self.mixed = self.programs + 1, solution.basis, self._held + solution.bound
        return self.master.prices(model, solution.duals)

    def whole(self, seconds: float) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """Yield the jobs of a good mix in whole numbers, each with its option and one node a bundle."""
        budget = self._context.budget
        model = self.master.value_model(budget.deadline)
        options = budget.options(budget.work(1.0), seconds)
        solution = self._context.solvers.solve(budget.integer_solver, model, options)
        if solution.values is not None:
            number, used = self.master.chosen(solution.values)
            yield from requests_of(self._context.problem, self.bundle_groups, self.starts, self.units, number, used)

    def summary(self) -> str:
        """Say what was done."""
        return (
            f"{len(self.pool)} fillings of {len(self.units)} node states, {self.programs} linear programs; "
            f"mix worth {self.mixed}"
        )
