"""What tests of relaxations share: models solved by HiGHS, and the patterns of a round's nodes with their prices."""

from typing import Any, Literal

from placeopt.formulations import CapacityCut
from placeopt.formulations.node_patterns import (
    NOTHING_MERGED,
    PatternPricing,
    bundle_groups_of,
    job_groups_of,
    merged_bundles_of,
    node_states_of,
    proven_bound,
)
from placeopt.linear import LinearModel
from placeopt.problem import IntArray, Problem, State
from placeopt.solvers import Solution, SolveOptions, load


def solved(model: LinearModel) -> Solution:
    """Solve in integers."""
    return load("highs")(model, SolveOptions(time_limit_s=30))


def relaxed(model: LinearModel, **options: Any) -> Solution:
    """Solve the linear relaxation."""
    return load("highs")(model, SolveOptions(time_limit_s=30, relax=True, **options))


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
