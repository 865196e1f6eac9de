"""What jobs cost where nothing is in their way: to compare jobs by, before anything is placed."""

from __future__ import annotations

from placeopt.problem import IntArray, Problem
from placeopt.terms.costs.communication import Communication, close_path
from placeopt.terms.costs.resource import ResourceCost
from placeopt.terms.objective import Weighted, weight_of


def cost_alone(problem: Problem, weighted: tuple[Weighted, ...]) -> IntArray:
    """Shape (O,): path of a job in each option with its GPUs close together, and what the option itself costs."""
    cost = weight_of(weighted, ResourceCost) * problem.options.cost_milli
    if path_price := weight_of(weighted, Communication):
        cost = cost + path_price * close_path(problem)
    return cost
