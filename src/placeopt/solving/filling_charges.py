"""What a mix of fillings charges jobs for their cost, so that among jobs of equal worth the cheaper ones run."""

from __future__ import annotations

import numpy as np

from placeopt.formulations.fillings import CHARGES
from placeopt.problem import IntArray
from placeopt.solving.context import SolveContext
from placeopt.terms.objective import cost_alone

COST_SHARE = 1e-4
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
