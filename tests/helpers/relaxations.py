"""What tests of relaxations share: models solved by HiGHS, and the patterns of a round's nodes with their prices."""

from typing import Any, Literal

import numpy as np

from placeopt.formulations import CapacityCut, add_counts, decode
from placeopt.formulations.node_patterns import (
    NOTHING_MERGED,
    PatternPricing,
    bundle_groups_of,
    job_groups_of,
    merged_bundles_of,
    node_states_of,
    proven_bound,
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


class Patterns:
    """Bundle groups, node states and job groups of a round as it stands; ``merged``: bundles of gangs, too."""

    def __init__(self, problem: Problem, *, merged: bool = False) -> None:
        self.problem, self.state = problem, State(problem)
        self.bundle_groups = bundle_groups_of(problem, merged_bundles_of(self.state) if merged else NOTHING_MERGED)
        self.states = node_states_of(self.state, self.bundle_groups)
        self.job_groups = job_groups_of(self.state, self.bundle_groups)

    def pricing(self, rounding: Literal["down", "up"] = "down", kind: type = PatternPricing, **options: int) -> Any:
        """Return what prices them; no time ends it."""
        return kind(self.bundle_groups, self.states, rounding, lambda: None, **options)

    def bound(self, prices: IntArray, pays: IntArray, held: int = 0) -> int:
        """Return what prices, and what every state pays at them, prove of the value beside ``held``."""
        return proven_bound(self.job_groups, prices, pays, self.states.count, held)

    def cut(self, price: IntArray) -> CapacityCut:
        """Return the cut at these prices of bundle groups."""
        best = self.pricing().price(price, patterns=False)
        pays = self.problem.options.bundles * price[self.bundle_groups.of_option]
        return CapacityCut.of_prices(pays, best.pays, self.states.count, self.job_groups.scale)
