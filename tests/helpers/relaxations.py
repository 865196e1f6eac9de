"""What tests of relaxations share: models solved by HiGHS, and the fillings of a round's nodes with their prices."""

from typing import Any

import numpy as np

from placeopt.formulations import CapacityCut, add_counts, decode
from placeopt.formulations.fillings import (
    BundleGroups,
    Master,
    NodePricing,
    Pool,
    Starts,
    Units,
    bundle_groups_of,
    pays_of,
    starts_of,
    units_of,
)
from placeopt.linear import NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import Allocation, IntArray, Problem, State
from placeopt.solvers import Solution, SolveOptions, load
from placeopt.terms import Cost


def solved(model: LinearModel) -> Solution:
    """Solve in integers."""
    return load("highs")(model, SolveOptions(time_limit_s=30))


def relaxed(model: LinearModel, **options: Any) -> Solution:
    """Solve the linear relaxation."""
    return load("highs")(model, SolveOptions(time_limit_s=30, relax=True, **options))


def least_cost(problem: Problem, term: Cost) -> tuple[int | None, Allocation | None]:
    """
    Return the least bound of a cost over plans that place every job, by ``counts``, and the plan that reaches it.

    The plan's score is what its columns say, unless the term's linear form only bounds it: then there is no plan.
    """
    builder = ModelBuilder()
    variables = add_counts(builder, State(problem), [term])
    builder.add_row(variables.start, np.ones(len(variables.start), dtype=np.int64), problem.num_jobs, NO_UPPER)
    columns, coefficients, constant = term.add_to(builder, variables)
    builder.set_objective(columns, coefficients, "min", constant)
    solution = solved(builder.build())
    if term.form(problem) != "exact":
        return solution.bound, None
    allocation = decode(variables, solution.values)
    assert term.score(problem, allocation) == solution.objective
    return solution.objective, allocation


MANY = 1 << 40
"""More branches than any unit of small rounds takes."""


class Fillings:
    """Bundle groups, starts, units, pool and master of a round as it stands."""

    def __init__(self, problem: Problem) -> None:
        self.problem, state = problem, State(problem)
        self.groups: BundleGroups = bundle_groups_of(problem)
        self.starts: Starts = starts_of(state, self.groups)
        self.units: Units = units_of(state, self.groups, self.starts)
        self.pool = Pool(len(self.units), len(self.groups))
        self.master = Master(self.starts, ~self.units.takes_nothing, self.units.count)

    def value_model(self) -> LinearModel:
        """Return the program over the columns of the pool."""
        return self.master.value_model(self.pool.columns)

    def bound(self, price: IntArray, most: IntArray) -> int:
        """Return what prices prove where units are paid no more than ``most``."""
        return self.master.value_bound(price, most, self.units.count)

    def pricing(self, steps: int = MANY) -> NodePricing:
        """Return what prices them, with so many branches for a unit."""
        return NodePricing(self.groups, self.starts, self.units, steps)

    def best(self, pays: IntArray) -> IntArray:
        """Shape (U,): what the best filling of each unit pays."""
        return self.pricing().price(pays, 0 * self.units.count).most

    def cut(self, price: IntArray) -> CapacityCut:
        """Return the cut at these prices of bundle groups."""
        pays = pays_of(self.problem, self.groups, price)
        return CapacityCut.of_prices(pays, self.best(price), self.units.count, self.master.scale)

    def capacity_price(self) -> IntArray:
        """Return prices of bundles by what all units have together of each amount."""
        pricing = self.pricing()
        model = self.master.capacity_model(pricing.takes, pricing.room)
        amounts = self.master.amount_prices(model, relaxed(model).duals, pricing.takes.shape[1])
        return self.master.whole_prices(pricing.takes @ amounts)
