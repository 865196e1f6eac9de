"""Prices of nodes and jobs from the relaxation of the cost: what a search for cheap plans is guided by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import PlaceoptError
from placeopt.formulations.cost_relaxation import CostRelaxation, WholeJobs, build_cost_relaxation, with_whole_jobs
from placeopt.heuristics.search import Guide
from placeopt.problem import IntArray
from placeopt.solvers.result import Solution, SolveOptions
from placeopt.solving.context import SolveContext

SIMPLEX_WORK = 20.0
"""Deterministic work that the relaxation may take."""
SHARE_OF_TIME = 0.5
"""Part of the time left that it may take."""


def guide_at(context: SolveContext, value: int) -> Guide | None:
    """Return the prices of plans of at least that value; None where the relaxation has none."""
    try:
        relaxation, solution = solve_cost_relaxation(context, value)
        if solution.duals is None or solution.status != "optimal":
            return None
        priced = with_whole_jobs(relaxation, solution.duals, context.budget.deadline)
        return guide_of(context, relaxation, priced)
    except PlaceoptError:
        context.budget.stopped()
        return None


def solve_cost_relaxation(context: SolveContext, value: int) -> tuple[CostRelaxation, Solution]:
    """Build and solve the relaxation of the cost of plans of at least that value."""
    relaxation = build_cost_relaxation(context.relaxed, context.weighted, value, context.budget.deadline)
    return relaxation, context.solvers.solve("highs", relaxation.model, relaxation_options(context))


def relaxation_options(context: SolveContext) -> SolveOptions:
    """Return the options of a solve of the relaxation."""
    return replace(context.budget.options(SIMPLEX_WORK, SHARE_OF_TIME * context.budget.left_s), relax=True)


def guide_of(context: SolveContext, relaxation: CostRelaxation, whole: WholeJobs) -> Guide:
    """Return what jobs cost beyond what they are worth, and rents of nodes by their classes."""
    model, prices = relaxation.model, whole.multipliers
    reduced = model.objective.astype(np.float64)
    np.subtract.at(reduced, model.columns, model.coefficients * prices[model.row_of_nonzero])
    surplus = np.zeros(len(context.problem.options), dtype=np.float64)
    surplus[relaxation.option] = reduced[: len(relaxation.option)]
    share, gpus, large = (_rents(relaxation, rows, prices) for rows in relaxation.capacity_rows)
    return Guide(surplus, 1000 * share + gpus, large, relaxation.node_classes.idle // 2)


def _rents(relaxation: CostRelaxation, rows: IntArray, prices: NDArray[np.float64]) -> IntArray:
    """Return shape (N,): what a unit of these rows, one for each class of nodes, saves; 0 where there are none."""
    place = relaxation.node_classes.place
    if not len(rows):
        return np.zeros(len(place), dtype=np.int64)
    each = np.maximum(0.0, -prices[rows] / relaxation.model.row_divisor[rows])
    rents: IntArray = np.where(place >= 0, np.rint(each[place]), 0).astype(np.int64)
    return rents
