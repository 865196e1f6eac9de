"""Column generation over fillings on one round: a mix, what its prices prove, and the mix in whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from placeopt.errors import OutOfTime
from placeopt.formulations.cost_relaxation.model import CapacityCut
from placeopt.formulations.fillings import (
    CHARGES,
    RELAXES,
    Column,
    GridBound,
    Master,
    NodePricing,
    Pool,
    bundle_groups_of,
    columns_of,
    merged,
    pays_of,
    requests_of,
    shares_nest,
    starts_of,
    units_of,
)
from placeopt.linear import LinearModel
from placeopt.problem import IntArray
from placeopt.solvers.diving import rounded_down
from placeopt.solvers.result import Basis
from placeopt.solving.budget import OF_SLICE
from placeopt.solving.context import SolveContext
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.objective import cost_alone, value, weight_of

FIRST_STEPS, MORE_STEPS = 1 << 16, 8
"""
Branches of a pricing at first, some 50 ms, and how many times as many where so many find nothing. Of 35 kinds of nodes
of a round of 400 jobs that each are a kind of their own, 33 need fewer each, one 85,000, the idle nodes a million.
"""
FEW_STEPS = 1 << 8
"""Branches for a unit at first where tables over a grid bound all units anyway."""
INTEGER_GAP = 1 / (1 << 18)
"""The gap at which an integer program may end."""
STEPS_PER_S = 1 << 14
"""Branches of pricing in deterministic mode per second of the time limit."""


class FillingSearch:
    """Column generation on one round."""

    def __init__(self, context: SolveContext) -> None:
        """Begin with the fillings of the best plan so far."""
        self._context, state = context, context.base
        self._ends = context.budget.deadline  # of a slice once it is set up: half of that would be lost
        self.bundle_groups = bundle_groups_of(context.problem)
        self.starts = starts_of(state, self.bundle_groups, charges_of(context))
        self._states = units_of(state, self.bundle_groups, self.starts)
        nests = shares_nest(context.problem)
        self.units = merged(self._states) if nests else self._states
        self._is_merged = self.units is not self._states
        self.pool = Pool(len(self.units), len(self.bundle_groups))
        if not self._is_merged:
            best = context.incumbent.allocation
            self.pool.add(columns_of(context.problem, self.bundle_groups, self.units, best))
        self.master = Master(self.starts, ~self.units.takes_nothing, self.units.count)
        steps = FEW_STEPS * len(self.units) if nests else FIRST_STEPS
        self._pricing = NodePricing(self.bundle_groups, self.starts, self.units, steps, self._check_time)
        self._grid = GridBound(self.bundle_groups, self._states, self._check_time) if nests else None
        self._held = value(context.problem, state.allocation())
        self._basis: Basis | None = None
        self._least: int | None = None  # the best bound so far,
        self._best_price: IntArray | None = None  # and the prices that proved it
        self.programs = 0
        self._asked = 0  # fillings that the last mix in whole numbers was of, if its programs were solved
        self._whole: IntArray | None = None  # that mix, in numbers of starts and of fillings
        self.is_done = False
        """Whether more work would do no more."""
        self.mixed = self._held
        """What the mix of the last linear program is worth, rounded down."""

    def generate(self, close: float) -> None:
        """
        Generate fillings until prices bound the value within ``close``, a part of it, of that of the mix.

        Or until it is proven, or within the gap. Raises ``OutOfTime`` where the step ends.
        """
        budget = self._context.budget
        self._ends = budget.step_ends()
        if not self.programs:
            self._begin()
        most = self._pricing.steps + budget.steps(STEPS_PER_S)
        while not self._closed and (price := self._program()) is not None:
            if self._least is not None and self._least <= self.mixed + int(close * abs(self.mixed)):
                self.is_done = self._least <= self.mixed
                return
            if self._pricing.steps >= most:
                raise OutOfTime("the work ended before all units were priced")
            tried = [price]
            if self._best_price is not None and self._grid is None:  # tables over a grid make the latest ones as good
                tried.insert(0, (self._best_price + price) // 2)  # Wentges 1997
            if not any(map(self._price, tried)) and not self._pricing.look_further(MORE_STEPS):
                break
        self.is_done = True

    @property
    def _closed(self) -> bool:
        return self._context.value_proven or self._context.is_closed

    def _check_time(self) -> None:
        if self._context.budget.stopped() or self._context.budget.is_past(self._ends):
            raise OutOfTime("the time limit came before all units were priced")

    def _begin(self) -> None:
        """Price at what all units together have of every amount, or at what was left by an earlier round."""
        model, budget = self.master.capacity_model(self._pricing.takes, self._pricing.room), self._context.budget
        solution = self._context.solvers.solve("highs", model, replace(budget.whole_options(), relax=True))
        if solution.status == "optimal" and solution.duals is not None:
            amounts = self.master.amount_prices(model, solution.duals, self._pricing.takes.shape[1])
            self._pricing.begin_at(amounts)
            price = self.master.whole_prices(self._pricing.takes @ amounts)
            carried = self._context.handover.carried_prices
            if carried is not None:
                carried.put_into(self.bundle_groups, price, self.master.scale)
                price[self.units.takes_nothing] = 0
            self._price(price)

    def keep_prices(self) -> None:
        """Leave the prices that prove most to the next round."""
        carried = self._context.handover.carried_prices
        if carried is not None and self._best_price is not None:
            carried.keep(self.bundle_groups, self._best_price, self.master.scale)

    def _price(self, price: IntArray) -> int:
        """Take in what prices prove; return how many fillings that pay more than known ones were new."""
        priced = self._pricing.price(price, self.pool.most(price))
        if not self._is_merged:
            self._prove(price, priced.most)
        if self._grid is not None and not self._closed:
            paid = price.copy()
            paid[self._grid.free_of_charge] = 0
            most = self._grid.most(paid)
            self._prove(paid, most if self._is_merged else np.minimum(priced.most, most))
        return self.pool.add(Column(unit, filling) for unit, filling in priced.fillings)

    def _prove(self, price: IntArray, most: IntArray) -> None:
        """Take the bound at some prices, at which no filling of a state of nodes pays more than ``most``."""
        bound, context = self._held + self.master.value_bound(price, most, self._states.count), self._context
        if self._least is not None and bound >= self._least:
            return
        self._best_price, self._least = price, bound
        context.bounds.prove_value(bound, RELAXES)
        pays = pays_of(context.problem, self.bundle_groups, price)
        context.handover.capacity_cut = CapacityCut.of_prices(pays, most, self._states.count, self.master.scale)

    def has_more_than(self, worth: int) -> bool:
        """Whether the mix is worth more, and `whole` may find something new."""
        return self.mixed > worth and len(self.pool) > self._asked

    def bound_busy(self) -> None:
        """
        Say how many GPUs of each node bundles hold at most: where CPU or memory has run out, some stay idle.

        Not where options are worth nothing, which no filling counts.
        """
        handover = self._context.handover
        counted = bool((self._context.problem.options.value > 0).all())
        costs = weight_of(self._context.weighted, Fragmentation)
        if handover.most_busy is None and counted and self._grid is not None and costs:
            most = np.zeros(self._context.problem.num_nodes, dtype=np.int64)
            for nodes, held in zip(self._states.nodes, self._grid.most(self.bundle_groups.gpus).tolist(), strict=True):
                most[nodes] = held
            handover.most_busy = most

    def _program(self) -> IntArray | None:
        """Solve the linear program over the known fillings; return its prices, None where there are none."""
        budget = self._context.budget
        model = self.master.value_model(self.pool.columns, budget.deadline)
        options = replace(budget.whole_options(), relax=True, start=self._basis, keep_basis=True)
        solution = self._context.solvers.solve("highs", model, options)
        if solution.status != "optimal" or solution.duals is None or solution.bound is None:
            return None
        self.programs, self._basis, self.mixed = self.programs + 1, solution.basis, self._held + solution.bound
        return self.master.value_prices(model, solution.duals)

    def whole(self) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """
        Yield the jobs of a good mix in whole numbers, each with its option and one node a bundle.

        At first nodes that the linear program fills alike as a whole keep that, the others an integer program fills;
        where this loses value, one for all nodes goes on from there, and later from the mix before.
        """
        context, budget, starts = self._context, self._context.budget, len(self.starts.value)
        self._asked = len(self.pool)
        model = self.master.value_model(self.pool.columns, budget.deadline, charged=True)
        if self._whole is None:
            relaxed = context.solvers.solve("highs", model, replace(budget.whole_options(), relax=True))
            if relaxed.relaxed_values is None:
                return
            lower = model.lower.copy()
            lower[starts:] = rounded_down(relaxed.relaxed_values[starts:])
            whole = self._integers(replace(model, lower=lower), None)
        else:
            whole = np.pad(self._whole, (0, model.num_variables - len(self._whole)))
        if whole is None or self._held + int(self.starts.value @ whole[:starts]) < self.mixed:
            whole = self._integers(model, whole)
        self._whole = whole
        if whole is not None:
            number, used = self.master.chosen(whole, self.pool.columns)
            yield from requests_of(context.problem, self.bundle_groups, self.starts, self.units, number, used)

    def _integers(self, model: LinearModel, hint: IntArray | None) -> IntArray | None:
        """Return a good solution of an integer program, ``hint`` if there is no better one."""
        budget = self._context.budget
        options = replace(budget.step_options(), hint=hint, gap=INTEGER_GAP)
        solution = self._context.solvers.solve(budget.integer_solver, model, options)
        if solution.limit in OF_SLICE:
            self._asked = 0
        return hint if solution.values is None else solution.values

    def summary(self) -> str:
        """Say what was done."""
        return (
            f"{len(self.pool)} fillings of {len(self.units)} groups of {len(self._states)} node states, "
            f"{self.programs} linear programs; "
            f"mix worth {self.mixed}"
        )


COST_SHARE = 1 / 8192
"""Part of the value that may be lost for jobs that cost less."""


def charges_of(context: SolveContext) -> IntArray:
    """
    Return what a job is charged in each option for its least cost, shape (O,), in 1 / CHARGES of a value.

    All jobs of the best plan together, as close as they may be, are charged ``COST_SHARE`` of its value.
    """
    problem, best = context.problem, context.incumbent
    cost = cost_alone(problem, context.weighted)
    options = [p.option for job, p in enumerate(best.allocation) if p is not None and job not in problem.running]
    total = max(int(cost[options].sum()), 1)
    charges: IntArray = np.floor(cost * (COST_SHARE * CHARGES * max(best.value, 0) / total)).astype(np.int64)
    return charges
