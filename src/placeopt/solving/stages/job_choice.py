"""Which jobs a plan made anew should hold: those of a capacity relaxation, at the least cost by prices."""

from __future__ import annotations

import numpy as np

from placeopt.errors import PlaceoptError
from placeopt.problem import IntArray
from placeopt.solving.context import SolveContext
from placeopt.solving.handover import CapacityPlan

SHARE_OF_TIME, WORK = 0.05, 2.0
"""Part of the time left that the model may take, and deterministic work."""


def choose_jobs(context: SolveContext, plan: CapacityPlan, surplus: np.ndarray) -> IntArray:
    """
    Return the jobs, by number, of the cheapest set that is worth as much as ``plan``.

    ``surplus``, shape (O,), is what a job in each option costs beyond what it is worth.
    """
    problem, budget, relaxation, numbers = context.problem, context.budget, plan.relaxation, plan.jobs
    try:
        model = relaxation.model(surplus, plan.value, budget.deadline)
        options = budget.options(WORK, SHARE_OF_TIME * budget.left_s)
        solution = context.solvers.solve(budget.integer_solver, model, options)
        numbers = plan.jobs if solution.values is None else solution.values
    except PlaceoptError:
        budget.stopped()  # the most valuable set does as well
    counts = np.zeros(len(problem.class_communication), dtype=np.int64)
    np.add.at(counts, problem.options.job_class[relaxation.option], numbers)
    jobs = np.flatnonzero(np.array([placement is None for placement in context.open.placements], dtype=bool))
    jobs = jobs[np.argsort(problem.job_class[jobs], kind="stable")]
    of_class = problem.job_class[jobs]
    turn = np.arange(len(jobs)) - np.searchsorted(of_class, of_class)
    chosen: IntArray = np.sort(jobs[turn < counts[of_class]])
    return chosen
