"""Stage ``relaxation``: a bound on the cost of rounds of any size, at the value of the best plan."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import OutOfTime, PlaceoptError
from placeopt.formulations.cost_relaxation import CostRelaxation, WholeJobs, build_cost_relaxation, with_whole_jobs
from placeopt.heuristics.search import Guide
from placeopt.problem import IntArray
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.result import Solution, SolveOptions
from placeopt.solving.context import SolveContext
from placeopt.solving.solver_call import Solve

SIMPLEX_WORK = 20.0
"""Deterministic work that the relaxation may take."""
PART = 0.5
"""Part of the time left that it may take."""
MOST_PRICES, SHARPEN_SHARE, WORTH_IT = 8, 0.05, 1000
"""Times that whole jobs are priced, part of the time left for that, and the gain to go on for, one part in so many."""


@dataclass(frozen=True)
class Bounded:
    """What the relaxation gave: the value that the bound holds at, and prices for a search."""

    value: int
    guide: Guide


def run_cost_relaxation(context: SolveContext, solve: Solve) -> Bounded | None:
    """
    Bound the cost of every plan that is worth as much as the best one; None where there is no such bound.

    It is the plan's bound once the value is proven; before that it stands in the record of the stage.
    """
    started, best = time.monotonic(), context.incumbent
    if best is None or not context.weighted or context.proven:
        return None
    try:
        relaxation, solution = _solve(context, solve, best.value)
    except PlaceoptError as error:
        context.stopped()
        context.record("flows", "skipped", started, str(error), "cost")
        return None
    detail = f"relaxation of {relaxation.model.num_variables} columns, {relaxation.node_classes.count} classes of nodes"
    if solution.bound is not None:
        context.prove_cost(max(solution.bound, 0), relaxation.relaxes)
    priced = None if solution.duals is None else _sharpen(context, solve, relaxation, solution.duals)
    if solution.status != "optimal" or priced is None:
        context.record("flows", "failed", started, f"{detail}: {solution.message or solution.limit}", "cost")
        return None
    context.record("flows", "proved", started, detail, "cost")
    return Bounded(best.value, _guide(context, relaxation, priced))


def _sharpen(
    context: SolveContext, solve: Solve, relaxation: CostRelaxation, duals: NDArray[np.float64]
) -> WholeJobs | None:
    """
    Take in what the same prices prove of whole jobs, then better ones, as long as there is time and gain.

    Returns the last prices; None where there was no time for any.
    """
    began, whole = time.monotonic(), None
    for _ in range(MOST_PRICES):
        before = context.cost_bound or 0
        try:
            whole = with_whole_jobs(relaxation, duals, context.budget.deadline)
        except OutOfTime:
            context.stopped()
            break
        bound = dual_bound(whole.model, whole.multipliers)
        context.prove_cost(max(bound, 0), relaxation.relaxes)
        spent = time.monotonic() - began
        late = not context.budget.deterministic and spent > SHARPEN_SHARE * context.budget.left_s
        if bound < before + max(1, before // WORTH_IT) or late or context.stopped():
            break
        solution = solve("highs", whole.raised_costs, _options(context))
        if solution.duals is None:
            break
        duals = solution.duals
    return whole


def prices(context: SolveContext, solve: Solve, least: int) -> Guide | None:
    """Return what the relaxation says about plans worth ``least``, where there may be any."""
    try:
        relaxation, solution = _solve(context, solve, least)
        if solution.duals is None or solution.status != "optimal":
            return None
        return _guide(context, relaxation, with_whole_jobs(relaxation, solution.duals, context.budget.deadline))
    except PlaceoptError:
        context.stopped()
        return None


def _solve(context: SolveContext, solve: Solve, least: int) -> tuple[CostRelaxation, Solution]:
    relaxation = build_cost_relaxation(context.relaxed, context.weighted, least, context.budget.deadline)
    return relaxation, solve("highs", relaxation.model, _options(context))


def _options(context: SolveContext) -> SolveOptions:
    return replace(context.budget.options(SIMPLEX_WORK, PART * context.budget.left_s), relax=True)


def _guide(context: SolveContext, relaxation: CostRelaxation, whole: WholeJobs) -> Guide:
    """What jobs cost beyond what they are worth, and rents of nodes by their classes."""
    model, prices = relaxation.model, whole.multipliers
    reduced = model.objective.astype(np.float64)
    np.subtract.at(reduced, model.columns, model.coefficients * prices[model.row_of_nonzero])
    surplus = np.zeros(len(context.problem.options), dtype=np.float64)
    surplus[relaxation.option] = reduced[: len(relaxation.option)]
    share, gpus, large = (_rents(relaxation, rows, prices) for rows in relaxation.capacity_rows)
    return Guide(surplus, 1000 * share + gpus, large, relaxation.node_classes.idle // 2)


def _rents(relaxation: CostRelaxation, rows: IntArray, prices: NDArray[np.float64]) -> IntArray:
    """Shape (N,): what a unit of these rows, one a class of nodes, saves; 0 where there are none."""
    place = relaxation.node_classes.place
    if not len(rows):
        return np.zeros(len(place), dtype=np.int64)
    each = np.maximum(0.0, -prices[rows] / relaxation.model.row_divisor[rows])
    rents: IntArray = np.where(place >= 0, np.rint(each[place]), 0).astype(np.int64)
    return rents
